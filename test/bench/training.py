#!/usr/bin/env python3
"""Times training beside PyTorch, eager and compiled, in turns: what a gradient step of models takes, and what a training learns in a second.

    training.py [--target cuda:sm_90] [--mixed-precision] [--threads 2] [--turns 7] [--seconds 3] [--keep FOLDER] [TASK ...]

A task is `step:MODEL`, the loss and all gradients of one sample (`step:MODEL-1xB`: of B), or `train:MODEL-NxB`, steps of AdamW of N micro-batches of B samples; by default those of the
list below; with a --target of GPUs, all sides run on GPU 0; with --mixed-precision, products are of bf16 (PyTorch's by autocast), and no gradients
are compared. Prints the median of each and its quartiles, how many times as fast as the better of PyTorch's two Partita is in each turn, and how
far the gradients of parameters are from those that PyTorch computes in f64, as a part of their length: the largest and the median of Partita's, and of PyTorch's
in f32. Exit status 1: one differs by more than 1e-4, and by more than twice what PyTorch's does.

Needs torch, torchvision, transformers, onnx and onnxscript (run.sh makes such an environment), and nothing else at work.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
TORCH = REPOSITORY / "test" / "bench" / "torch_peer.py"
TASKS = ["step:resnet50", "step:mobilenet_v2", "step:resnet50-1x8", "step:mobilenet_v2-1x8", "step:bert_base", "step:gpt2", "train:mnist-10x40", "train:mnist-1x400", "train:gpt2-1x4"]
NEAR = 1e-4  # gradients, as a part of their length


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def machine(options):
    """partita-compile's flags that say what it compiles for."""
    mixed = ["--mixed-precision", "bf16"] if options.mixed_precision else []
    return ["--target", options.target, *mixed] if options.target.startswith("cuda") else ["--target", options.target, "--threads", options.threads, *mixed]


class Torch:
    """A process of PyTorch's."""

    def __init__(self, what, name, kind, options):
        self.options = options
        command = [sys.executable, TORCH, what, name, kind, str(options.threads), *(["cuda"] if options.target.startswith("cuda") else []),
                   *(["bf16"] if options.mixed_precision else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def wait(self):
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"training.py: {' '.join(map(str, self.process.args))} does not run")

    def measure(self):
        """Ms a step."""
        self.process.stdin.write(f"{self.options.seconds}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Step:
    """An artifact of a loss and its gradients."""

    def __init__(self, name, folder, options):
        self.folder, self.options, self.samples = folder, options, 1
        run(sys.executable, TORCH, "export", name, folder, stderr=subprocess.DEVNULL)
        loss = "mse:output" if name.startswith("bert_base") else "cross_entropy:output"
        run(BIN / "partita-compile", folder / "model.onnx", "--gradients", "--loss", loss, *machine(options), "--quiet", "-o", folder / "step.partita")

    def run(self, *flags):
        return run(BIN / "partita-run", self.folder / "step.partita", "--threads", self.options.threads, "--input", self.folder / "in.npz", *flags)

    def measure(self):
        return json.loads(self.run("--benchmark", "--json", "--warmup", 1, "--runs", 3, "--seconds", self.options.seconds))["median_ms"]

    def compare(self, name):
        """The differences of gradients from those in f64, by parameter: Partita's, and PyTorch's in f32. A gradient that is 0 but for rounding, as that of
        the keys' bias in an attention, is measured by the length of all of them."""
        run(sys.executable, TORCH, "exact", name, self.folder / "exact.npz", stderr=subprocess.DEVNULL)
        self.run("--output", self.folder / "out.npz")
        found, exact = np.load(self.folder / "out.npz"), np.load(self.folder / "exact.npz")
        wanted = {name: array for name, array in exact.items() if not name.endswith(".f32")}
        whole, apart, lacking = np.sqrt(sum(np.square(array).sum() for array in wanted.values())), {}, {}
        for parameter, gradient in wanted.items():
            length = max(np.linalg.norm(gradient), 1e-6 * whole)
            if f"{parameter}.grad" in found:
                apart[parameter] = [np.linalg.norm(array - gradient) / length for array in (found[f"{parameter}.grad"], exact[f"{parameter}.f32"])]
            else:
                lacking[parameter] = gradient
        for parameter, gradient in lacking.items():
            if not any(np.array_equal(gradient, wanted[other]) for other in apart if wanted[other].shape == gradient.shape):
                sys.exit(f"training.py: there is no gradient of {parameter}")
        return apart


class Train:
    """An artifact that learns, and samples for it."""

    def __init__(self, name, folder, options):
        self.folder, self.options = folder, options
        model, _, sizes = name.partition("-")
        self.micro, batch = (int(n) for n in sizes.split("x"))
        self.samples = self.micro * batch
        noise = np.random.default_rng(0)
        if model == "mnist":
            run(sys.executable, REPOSITORY / "examples" / "mnist" / "make_model.py", folder / "model.onnx", "--batch", batch)
            data = {"image": noise.standard_normal((20000, 1, 28, 28)).astype(np.float32), "target": noise.integers(0, 10, 20000)}
        else:
            run(sys.executable, TORCH, "export", name, folder, stderr=subprocess.DEVNULL)
            shape = np.load(folder / "in.npz")["target"].shape
            data = {key: noise.integers(0, 30000, (8 * self.samples, *shape[1:])) for key in ("input_ids", "target")}
        self.data = []
        for key, array in data.items():
            np.save(folder / f"{key}.npy", array)
            self.data += ["--data", f"{key}={folder / key}.npy"]
        output = "logits" if model == "mnist" else "output"
        run(BIN / "partita-compile", folder / "model.onnx", "--loss", f"cross_entropy:{output}", "--optimizer", "adamw", "--micro-batches", self.micro,
            *machine(options), "--quiet", "-o", folder / "train.partita")
        self.steps = 1
        self.steps = max(1, round(options.seconds * 1e3 / 5 / self.measure()))  # a line

    def measure(self):
        """Ms a step: the median of lines, without the first, which is of steps that warm up."""
        said = run(BIN / "partita-run", self.folder / "train.partita", "--train", "--json", "--threads", self.options.threads, *self.data,
                   "--steps", 6 * self.steps, "--report-every", self.steps)
        return float(np.median([self.samples * 1e3 / json.loads(line)["samples_per_second"] for line in said.splitlines()[1:]]))


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def spread(values):
    """The median, and the quartiles."""
    low, middle, high = map(number, np.percentile(values, (25, 50, 75)))
    return f"{middle} ({low} to {high})"


def bench(task, options, folder):
    what, _, name = task.partition(":")
    folder.mkdir(parents=True, exist_ok=True)
    mine = {"step": Step, "train": Train}[what](name, folder, options)
    apart = mine.compare(name) if what == "step" and not options.mixed_precision else {}
    peers = [Torch(what, name, kind, options) for kind in ("eager", "compiled")]
    for peer in peers:
        peer.wait()
    sides, times = [*peers, mine], []
    for turn in range(options.turns):
        found = {}
        for i in range(3):
            which = (i + turn) % 3
            found[which] = sides[which].measure()
        times.append([found[i] for i in range(3)])
    for peer in peers:
        peer.close()
    times = np.array(times)
    figures = times if what == "step" else mine.samples * 1e3 / times
    row = [task, *(spread(figures[:, i]) for i in range(3)), spread(times[:, :2].min(axis=1) / times[:, 2])]
    for side in range(2):
        parts = [each[side] for each in apart.values()]
        row.append(f"{max(parts):.1e}, {np.median(parts):.1e}" if parts else "")
    print("| " + " | ".join(row) + " |", flush=True)
    return {parameter: each for parameter, each in apart.items() if not each[0] <= max(NEAR, 2 * each[1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=TASKS)
    parser.add_argument("--target", default="cpu", help="what Partita compiles for; PyTorch runs on GPU 0 if it is one (default: %(default)s)")
    parser.add_argument("--mixed-precision", action="store_true", help="products of bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a measurement")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for models and artifacts")
    options = parser.parse_args()
    print(f"{options.target}, {options.threads} threads, {options.turns} turns; ms a step, or samples a second\n")
    print("| task | PyTorch eager | compiled | Partita | times the better one | gradients off: largest, median | PyTorch's off |\n|" + " --- |" * 7, flush=True)
    wrong = {}
    for task in options.tasks:
        with tempfile.TemporaryDirectory() as folder:
            wrong |= bench(task, options, options.keep / task.replace(":", "-") if options.keep else pathlib.Path(folder))
    for parameter, (part, peer) in wrong.items():
        print(f"the gradient of {parameter} differs by {part:.1e} of its length, and PyTorch's in f32 by {peer:.1e}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
