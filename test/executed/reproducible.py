#!/usr/bin/env python3
"""`reproducible: true`: the bits of one device, however tensors are cut. Weights of small graphs and of real models are cut over 2, 3 and 4 devices, drawn by
a seed, along every dimension that is not summed over; those that are summed over are refused, with the node and the weight.

    reproducible.py [NAME...] [--seeds N]        e.g. encoder/bert-tiny-mlm-vespa; with PARTITA_TEST_ALL=1 the slowest model, too

Needs numpy, and says skipped without it.
"""

import argparse
import pathlib
import random
import re
import sys
import tempfile

from harness import ALL, SKIPPED, Failure, compile_model, data_folder, main, run_artifact

try:
    import numpy
except ImportError:
    print("skipped: this Python has no numpy")
    sys.exit(SKIPPED)

from sharded_models import inputs_of
from shards import draw, text_of, weights_of
from sharding import CASES, graph, write_inputs

MODELS = ("encoder/bert-tiny-mlm-vespa", "encoder/bert-toy-ort", "encoder/bert-dummy-vespa", "decoder/gpt2-nopast-pt1.3", "encdec/t5-random-encoder-vespa",
          "cnn/mnist-burn", "cnn/mnist-pytorch-java", "cnn/super-resolution", "detection/ultraface-slim-320", "cnn/mobilenetv2-qdq-int8", "rnn/byte-bilstm-tract",
          *(("cnn/fns-candy",) if ALL else ()))  # it takes half a minute


def same_bits(expected, found, what):
    a, b = numpy.load(expected), numpy.load(found)
    for name in a:
        x, y = a[name], b[name]
        if x.dtype != y.dtype or x.shape != y.shape or x.tobytes() != y.tobytes():
            share = (x != y).mean() if x.shape == y.shape else 1
            raise Failure(f"{what}: output {name} has other bits in {share:.2%} of its elements")


def compile_cut(model, artifact, flags, split, mesh, shards, weights):
    """Weights that a sum needs whole, or that have folded away, are left out; returns those that are cut, and how many a sum needs."""
    refused, batches = 0, 2
    while True:
        split.write_text(text_of(mesh, shards, weights, "reproducible: true\n", batches))
        status, text = compile_model(model, artifact, "--partition", split, *flags, "--quiet", expect=None)
        if status == 0:
            return shards, refused
        if batches > 1 and "the model is computed whole" in text:
            batches = 1
            continue
        summed = re.search(r"node '.*: '.*' sums over a dimension of '(.*?)' that is cut along 'tensor'", text)
        gone = re.search(r"no weight and no input matches '(.*?)'(?:;|\n|$)", text)
        name = summed[1] if summed else gone and next((n for n in shards if re.sub(r"([\[\]*?{}\\])", r"\\\1", n) == gone[1]), None)
        if name not in shards:
            raise Failure(f"{model}: {mesh} {shards}\n{text}")
        refused += summed is not None
        del shards[name]


def check_cuts(name, model, flags, feeds, weights, seeds, work, turn):
    one, cut, split, expected, found = (work / f for f in ("one.partita", "cut.partita", "split.yaml", "one.npz", "cut.npz"))
    compile_model(model, one, *flags, "--reproducible", "--quiet")
    run_artifact(one, "--threads", "1", *feeds, "--output", expected)
    noise, count, refused = random.Random(name), 0, 0
    for seed in range(seeds):
        devices = 2 + (seed + turn + 1) % 3
        shards, dropped = compile_cut(model, cut, flags, split, {"tensor": devices}, draw(weights, noise, devices), weights)
        run_artifact(cut, "--threads", "1", *feeds, "--output", found)
        try:
            same_bits(expected, found, f"{name}: {len(shards)} weights cut over {devices} devices (seed {seed})")
        except Failure as failure:
            raise Failure(f"{failure}\n{split.read_text()}") from None
        count, refused = count + len(shards), refused + dropped
    devices = 2 + turn % 3
    compile_model(model, cut, *flags, "--reproducible", "--tensor-parallel", devices, "--quiet")
    run_artifact(cut, "--threads", "1", *feeds, "--output", found)
    same_bits(expected, found, f"{name}: --tensor-parallel {devices}")
    print(f"{name}: {seeds} times other weights cut, {count} in all, gives the bits of one device; a sum needs {refused} others whole")


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for turn, (name, (inputs, outputs, weights, nodes, constants, _)) in enumerate(CASES.items()):
            if options.names and name not in options.names:
                continue
            model = work / "m.onnxtxt"
            model.write_text(graph(inputs, outputs, weights, nodes, constants))
            check_cuts(name, model, ("--dim", "n=2"), write_inputs(work, inputs), weights, 3 * options.seeds, work, turn)
        for turn, name in enumerate(options.names or MODELS):
            if name not in CASES:
                model = data_folder() / "models" / name / "model.onnx"
                check_cuts(name, model, *inputs_of(name, work), weights_of(model), options.seeds, work, turn)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
