#!/usr/bin/env python3
"""What replicas and shards gain: GPT-2 on one device, on two that share its tensors, and on two that have a replica each, all of one core.

    meshes.py [--layers 6] [--width 768] [--tokens 128] [--words 50257] [--rounds 5] [--json FILE]

The model is GPT-2 as exporters write it, with random weights. The arrangements take turns; a line has the median of the rounds' medians and their
quartiles, and what that is of one device. Latency is that of a step of one micro-batch; samples a second those of steps that follow one another. Needs
onnx and numpy.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np
import onnx

import scale
from scale import BIN

ARRANGEMENTS = {  # flags of partita-compile, threads a device
    "one device": ([], 1),
    "one device of two cores": ([], 2),
    "two share the tensors": (["--tensor-parallel", "2"], 1),
    "two replicas": (["--data-parallel", "2", "--micro-batches", "1"], 1),
}


def write_model(options, path):
    noise = np.random.default_rng(1)
    scale.TOKENS, scale.WORDS = options.tokens, options.words
    scale.Gpt2.weight = lambda self, *shape: self.constant((noise.standard_normal(shape) * (0.02 if len(shape) > 1 else 1)).astype(np.float32))
    onnx.save(scale.Gpt2(options.layers, options.width).model, path)


def measure(artifact, threads):
    """Latency in ms and samples a second."""
    command = [BIN / "partita-run", artifact, "--benchmark", "--threads", str(threads), "--runs", "10", "--warmup", "3", "--json"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["median_ms"], result["stream_samples_per_s"]


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:8.2f} ({low:.2f} to {high:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, standard in (("layers", 6), ("width", 768), ("tokens", 128), ("words", 50257), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = {name: ([], []) for name in ARRANGEMENTS}
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "gpt2.onnx"
        write_model(options, model)
        for number, (flags, _) in enumerate(ARRANGEMENTS.values()):
            subprocess.run([BIN / "partita-compile", model, "--dim", "batch=1", *flags, "--quiet", "-o", f"{folder}/{number}.partita"], check=True)
        for _ in range(options.rounds):
            for number, (name, (_, threads)) in enumerate(ARRANGEMENTS.items()):
                for list_, value in zip(found[name], measure(f"{folder}/{number}.partita", threads)):
                    list_.append(value)
    one = [statistics.median(values) for values in found["one device"]]
    print(f"{'':26}{'latency, ms':32}{'of one':10}{'samples/s':32}of one")
    for name, lists in found.items():
        shares = [statistics.median(values) / first for values, first in zip(lists, one)]
        print(f"{name:26}{quartiles(lists[0]):32}{shares[0]:<10.3f}{quartiles(lists[1]):32}{shares[1]:.3f}")
    if options.json:
        options.json.write_text(json.dumps({name: {"latency_ms": a, "samples_per_second": b} for name, (a, b) in found.items()}, indent=2))


if __name__ == "__main__":
    main()
