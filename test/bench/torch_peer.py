"""PyTorch that trains, in a process of its own that waits to be told to measure. The tasks are those of training.py.

    python torch_peer.py export TASK FOLDER                           model.onnx with the parameters' names, in.npz with inputs and target
    python torch_peer.py exact TASK FILE.npz                          each parameter's gradient in f64, and as NAME.f32 in f32
    python torch_peer.py step TASK eager|compiled THREADS [cuda] [bf16]   the loss and all gradients
    python torch_peer.py train TASK eager|compiled THREADS [cuda] [bf16]  the same with AdamW, and gradients summed over micro-batches

The last two carry out a step, print a line, and then measure for as many seconds as each line says that they read: they print the median, in ms a step.
With `cuda`, the model and the samples are on GPU 0, products have no TF32, and GROUP steps are waited for at once.
With `bf16`, products are of bf16 (torch.autocast).
"""

import sys

import numpy as np
import torch
from export_models import MODELS, with_experts
from peers import median_ms

IMAGES = 20000  # from which training draws
GROUP = 5


def mnist():
    """The network of examples/mnist."""
    nn = torch.nn
    images = (nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU())
    rows = (nn.Flatten(), nn.Linear(320, 256), nn.ReLU(), nn.Linear(256, 10))
    return nn.Sequential(*images, *rows), (torch.randn(1, 1, 28, 28),), ["image"]


class Task:
    """name: that of a model, and `-BATCHxMICRO` with other sizes than a step of one sample."""

    def __init__(self, name, device="cpu", halves=False):
        self.device, self.halves = device, halves
        self.name, _, sizes = name.partition("-")
        self.micro, self.batch = (int(n) for n in (sizes or "1x1").split("x"))
        torch.manual_seed(0)
        self.model, inputs, names = {"mnist": mnist, **MODELS}[self.name]()
        self.input, self.like = names[0], inputs[0]
        self.model.eval()  # no dropout, and normalisation by the running statistics
        # Where biases are 0, what is 0 before stays on the kink of ReLU6: its derivative is a convention there, and that of ONNX's Clip another one.
        with torch.no_grad():
            for parameter in self.model.parameters():
                if parameter.dim() == 1:
                    parameter += 0.05 * torch.randn_like(parameter)
        self.model.to(device)

    def samples(self, count):
        """Inputs and targets."""
        return [tensor.to(self.device) for tensor in self.draw(count)]

    def draw(self, count):
        noise = torch.Generator().manual_seed(1)
        shape = (count, *self.like.shape[1:])
        if not self.like.is_floating_point():
            tokens = torch.randint(0, 30000, (count, shape[1] + 1), generator=noise)
            return tokens[:, :-1], torch.randn(*shape, 768, generator=noise) if self.name == "bert_base" else tokens[:, 1:].contiguous()
        return torch.randn(shape, generator=noise), torch.randint(0, 10, (count,), generator=noise)

    def loss(self, x, target):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.halves):
            y = self.model(x)
            if target.is_floating_point():
                return torch.nn.functional.mse_loss(y, target)
            return torch.nn.functional.cross_entropy(y.flatten(0, -2), target.flatten())

    def write(self, folder):
        x, target = self.samples(self.batch)
        np.savez(f"{folder}/in.npz", **{self.input: x.numpy(), "target": target.numpy()})
        torch.onnx.export(with_experts(self.model, "batched_mm"), (x,), f"{folder}/model.onnx", input_names=[self.input], output_names=["output"], dynamo=True, external_data=True, optimize=False)

    def write_exact(self, path):
        found = {}
        with_experts(self.model, "eager")
        for suffix, dtype in ((".f32", torch.float32), ("", torch.float64)):
            self.model.to(dtype).zero_grad()
            x, target = (t.to(dtype) if t.is_floating_point() else t for t in self.samples(self.batch))
            self.loss(x, target).backward()
            # One that has two names is in the model by one of them.
            found |= {f"{name}{suffix}": p.grad.numpy().copy() for name, p in self.model.named_parameters(remove_duplicate=False) if p.grad is not None}
        np.savez(path, **found)

    def step(self, compiled):
        """The loss and its gradients."""
        loss = torch.compile(self.loss) if compiled else self.loss
        x, target = self.samples(self.batch)

        def step():
            self.model.zero_grad()
            loss(x, target).backward()

        return step

    def train(self, compiled):
        """A step of training. The next samples are drawn as an epoch's order says."""
        loss = torch.compile(self.loss) if compiled else self.loss
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.001, fused=True)
        taken = self.batch * self.micro
        x, target = self.samples(IMAGES if self.like.is_floating_point() else 8 * taken)
        order = torch.empty(0, dtype=torch.int64, device=self.device)

        def step():
            nonlocal order
            if len(order) < taken:
                order = torch.randperm(len(x), device=self.device)
            for part in order[:taken].split(self.batch):
                (loss(x[part], target[part]) / self.micro).backward()
            order = order[taken:]
            optimizer.step()
            optimizer.zero_grad()

        return step


def main():
    what, name, *others = sys.argv[1:]
    device = "cuda" if "cuda" in others else "cpu"
    task = Task(name, device, "bf16" in others)
    if what == "export":
        task.write(others[0])
    elif what == "exact":
        task.write_exact(others[0])
    else:
        torch.set_num_threads(int(others[1]))
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        step = {"step": task.step, "train": task.train}[what](others[0] == "compiled")
        step()
        group = 1 if device == "cpu" else GROUP

        def steps():
            for _ in range(group):
                step()
            if device != "cpu":
                torch.cuda.synchronize()

        print("ready", flush=True)
        for line in sys.stdin:
            print(median_ms(steps, float(line)) / group, flush=True)


if __name__ == "__main__":
    main()
