#!/usr/bin/env python3
"""Trains a GPT-2 on two replicas of one core each, in turns: beside one device of one core, and beside PyTorch's DDP and FSDP in two processes.

    replicas.py [--turns 5] [--seconds 4] [--micro-batches 4] [--batch 4] [--layers 4] [--width 256] [--tokens 64] [--torch PYTHON]

Each side has AdamW, and gradients that are summed over micro-batches before replicas add them up. `--torch` is a Python with PyTorch; without it PyTorch is
left out. "times one device" compares a side with its own one device in the same turn. "two at once" are two trainings of one device, each on its own core, which have
nothing to do with each other: what two cores can do that share caches and memory. Needs onnx and numpy.
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx

import pipelines
from language_models import Gpt2
from pipelines import Training, quartiles

PEER = pathlib.Path(__file__).with_name("torch_replicas.py")
PARTITA = {"two replicas": (), "zero 1": ("--zero", 1), "zero 3": ("--zero", 3), "reproducible": ("--reproducible",)}
TORCH = {"DDP": ("ddp", 2), "FSDP": ("fsdp", 2)}


class Torch:
    def __init__(self, kind, processes, options):
        words = [options.torch, PEER, kind, processes, options.seconds]
        self.words = [str(word) for word in (*words, *(getattr(options, name) for name in ("micro_batches", "batch", "layers", "width", "tokens")), pipelines.WORDS)]
        self.speeds = []

    def measure(self):
        done = subprocess.run(self.words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(self.words)}\n{done.stderr[-2000:]}")
        self.speeds.append(float(done.stdout.split()[-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind, default in (("turns", int, 5), ("seconds", float, 4), ("micro-batches", int, 4), ("batch", int, 4), ("layers", int, 4), ("width", int, 256), ("tokens", int, 64)):
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--torch")
    parser.set_defaults(machine=None)
    options = parser.parse_args()
    pipelines.BATCH = options.batch
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, noise, data = folder / "gpt2.onnx", np.random.default_rng(1), []
        onnx.save(Gpt2(options.layers, options.width, options.tokens, pipelines.WORDS, seed=2).model, model)
        for name in ("ids", "target"):
            np.save(folder / f"{name}.npy", noise.integers(0, pipelines.WORDS, (64 * options.micro_batches * options.batch, options.tokens)))
            data += ["--data", f"{name}={folder}/{name}.npy"]
        one = Training("one", model, data, folder, options)
        replicas = {name: Training(name.replace(" ", ""), model, data, folder, options, "--data-parallel", 2, *flags) for name, flags in PARTITA.items()}
        torch = {"one device": Torch("ddp", 1, options)} | {name: Torch(*words, options) for name, words in TORCH.items()} if options.torch else {}
        for training in (one, *replicas.values()):
            training.samples, training.speeds = options.micro_batches * options.batch, []
        both = argparse.Namespace(speeds=[])
        for _ in range(options.turns):
            one.speeds.append(one.wait(one.start("0")))
            pair = [one.start(core) for core in ("0", "1")]
            both.speeds.append(sum(one.wait(process) for process in pair))
            for training in replicas.values():
                training.speeds.append(training.wait(training.start()))
            for peer in torch.values():
                peer.measure()
    print(f"{'':<22} {'samples/s':<28} times one device")
    for library, sides in (("Partita", {"one device": one, "two at once": both} | replicas), ("PyTorch", torch)):
        for name, side in sides.items():
            ratios = [speed / single for speed, single in zip(side.speeds, sides["one device"].speeds)]
            print(f"{library + ' ' + name:<22} {quartiles(side.speeds):<28} {quartiles(ratios) if name != 'one device' else ''}")


if __name__ == "__main__":
    main()
