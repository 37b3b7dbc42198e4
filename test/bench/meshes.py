#!/usr/bin/env python3
"""What replicas and shards gain: GPT-2 or BERT on one device, on two that share its tensors, and on two that have a replica each, all of one core.

    meshes.py [--model gpt2] [--layers 12] [--width 768] [--tokens 128] [--words 50257] [--rounds 5] [--json FILE]

The model is as exporters write it, with random weights; as it stands, GPT-2 124M (or, with --model bert, BERT-base). The arrangements take turns; a line has the median of the rounds' medians and their
quartiles, and what that is of one device. Latency is that of a step of one micro-batch; samples a second those of steps that follow one another. Needs
onnx and numpy.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import onnx

from language_models import Bert, Gpt2
from scale import BIN

MODELS = {"gpt2": Gpt2, "bert": Bert}

ARRANGEMENTS = {  # flags of partita-compile, threads a device
    "one device": ([], 1),
    "one device of two cores": ([], 2),
    "two share the tensors": (["--tensor-parallel", "2"], 1),
    "two replicas": (["--data-parallel", "2", "--micro-batches", "1"], 1),
}


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
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    for name, standard in (("layers", 12), ("width", 768), ("tokens", 128), ("words", 50257), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = {name: ([], []) for name in ARRANGEMENTS}
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.onnx"
        onnx.save(MODELS[options.model](options.layers, options.width, options.tokens, options.words, seed=1).model, model)
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
