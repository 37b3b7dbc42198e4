"""A GPT-2 that PyTorch trains in processes of one core each, with DDP or FSDP: what replicas.py measures beside Partita.

    python torch_replicas.py ddp|fsdp PROCESSES SECONDS MICRO_BATCHES BATCH LAYERS WIDTH TOKENS WORDS

A step has MICRO_BATCHES of BATCH samples for all processes together. Prints the samples that they learn from in a second.
"""

import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn

HEAD = 64


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, width // HEAD, HEAD).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, layers, width, tokens, words):
        super().__init__()
        self.table, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(tokens, width))
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.table(ids) + self.places)))


def train(rank, kind, processes, seconds, micro, batch, layers, width, tokens, words, folder):
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=processes)
    torch.manual_seed(2)
    model = Gpt2(layers, width, tokens, words)
    if kind == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (processes,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    elif processes > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=kind != "fsdp")
    own = micro // processes
    ids = torch.randint(0, words, (own, batch, tokens + 1))

    def step():
        for m in range(own):
            last = m == own - 1
            if hasattr(model, "require_backward_grad_sync"):
                model.require_backward_grad_sync = last
            if kind == "fsdp":
                model.set_requires_gradient_sync(last)
            logits = model(ids[m, :, :-1])
            (nn.functional.cross_entropy(logits.flatten(0, 1), ids[m, :, 1:].flatten()) / micro).backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    times, more = [], torch.ones(1)
    begin = time.monotonic()
    while more.item():
        before = time.monotonic()
        step()
        times.append(time.monotonic() - before)
        more[0] = float(time.monotonic() - begin < seconds)
        dist.broadcast(more, 0)
    if rank == 0:
        print(micro * batch / statistics.median(times), flush=True)
    dist.barrier()
    os._exit(0)  # the end of a group of FSDP aborts now and then


def main():
    kind, processes, seconds, *sizes = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        words = (kind, int(processes), float(seconds), *map(int, sizes), folder)
        torch.multiprocessing.spawn(train, words, nprocs=int(processes))


if __name__ == "__main__":
    main()
