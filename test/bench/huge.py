#!/usr/bin/env python3
"""Plans of GPTs that no machine holds: how long the compiler takes, how much memory it needs, and what each device would need.

    huge.py [--layers 80] [--width 10240] [--tokens 2048] [--words 50304] [--stages 8] [--replicas 512] [FLAG ...]

The model's weights are external data in a file that is not there; a plan needs their sizes alone. By default a GPT of 100 billion parameters is trained by
512 replicas of 8 stages, which share parameters, gradients and what AdamW keeps. Further flags are partita-compile's. Needs onnx and numpy.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto

from language_models import Gpt2

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))


class Huge(Gpt2):
    """GPT-2 with weights in a file that is not there."""

    bytes = 0

    def weight(self, *shape):
        tensor = TensorProto(name=f"weight_{len(self.weights)}", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        size = 4 * int(np.prod(shape, dtype=np.int64))
        for key, value in (("location", "weights.bin"), ("offset", self.bytes), ("length", size)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        self.bytes += size
        self.weights.append(tensor)
        return tensor.name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("layers", 80), ("width", 10240), ("tokens", 2048), ("words", 50304), ("stages", 8), ("replicas", 512)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "huge.onnx"
        model = Huge(options.layers, options.width, options.tokens, options.words)
        onnx.save(model.model, path)
        flags = ["--dim", "batch=1", "--loss", "cross_entropy:logits:label,axis=-1", "--optimizer", "adamw", "--schedule", "1f1b", "--devices", options.stages * options.replicas,
                 "--data-parallel", options.replicas, "--micro-batches", options.stages * options.replicas, "--zero", 3, "--plan", "--json"]
        begin = time.monotonic()
        done = subprocess.run([BIN / "partita-compile", path, *map(str, flags), *more], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        seconds, kib = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    plan = json.loads(done.stdout)[0]
    print(f"{model.bytes / 4e9:.1f} billion parameters, {options.stages * options.replicas} devices: {seconds:.1f} s, {kib / 1024:.0f} MiB")
    print("| stage | states of a device, MiB | peak of a device, GiB |\n| --- | --- | --- |")
    for number, parts in enumerate(plan["memory"]):
        print(f"| {number} | {parts['state_bytes'] / 2**20:.0f} | {parts['peak_bytes'] / 2**30:.1f} |")


if __name__ == "__main__":
    main()
