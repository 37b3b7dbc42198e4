#!/usr/bin/env python3
"""Real models with weights that are cut over devices, drawn by a seed: as the compiler finds no reason to cut small models, a partition file says so.

    sharded_models.py [NAME...] [--seeds N]        e.g. encoder/bert-tiny-mlm-vespa

For each model, N times: some of its weights are cut along a dimension that divides, over 2, 3 or 4 devices, alone and with replicas and stages. Outputs
must be those of one device, within 1e-4 of the output's range. Needs numpy and onnx, and says skipped without them.
"""

import argparse
import pathlib
import random
import re
import sys
import tempfile

from harness import SKIPPED, Failure, compile_model, data_folder, input_ports, main, run_artifact, write_npy
from models import MODELS, WIDE

try:
    import numpy
    import onnx
except ImportError:
    print("skipped: this Python has no numpy or no onnx")
    sys.exit(SKIPPED)

LEAST_ELEMENTS = 8
TOLERANCE = 1e-4


def weights_of(path):
    """Names and shapes of the initializers and constants that may be cut."""
    graph = onnx.load(path, load_external_data=False).graph
    tensors = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            tensors.update({node.output[0]: list(a.t.dims) for a in node.attribute if a.name == "value"})
    return {name: dims for name, dims in tensors.items() if dims and numpy.prod(dims) >= LEAST_ELEMENTS}


def draw(weights, noise, devices):
    """Some weights, each with the dimension along which it is cut."""
    shards = {}
    for name, dims in weights.items():
        fitting = [d for d, size in enumerate(dims) if size and size % devices == 0]
        if fitting and noise.random() < 0.4:
            shards[name] = noise.choice(fitting)
    return shards


def text_of(mesh, shards, weights):
    text = f"mesh: {{{', '.join(f'{axis}: {size}' for axis, size in mesh.items())}}}\nmicro_batches: 2\n"
    if shards:
        text += "shard:\n"
    for name, dim in shards.items():
        entry = ["null"] * len(weights[name])
        entry[dim] = "tensor"
        glob = re.sub(r"([\[\]*?{}\\])", r"\\\1", name)
        text += f"  {quoted(glob)}: [{', '.join(entry)}]\n"
    return text


def quoted(name):
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def compile_sharded(model, artifact, flags, split, mesh, shards, weights):
    """Weights that have folded away cannot be named: they are left out."""
    while True:
        split.write_text(text_of(mesh, shards, weights))
        status, text = compile_model(model, artifact, "--partition", split, *flags, "--quiet", expect=None)
        if status == 0:
            return shards
        gone = re.search(r"no weight and no input matches '(.*?)'(?:;|\n|$)", text)
        name = gone and next((n for n in shards if re.sub(r"([\[\]*?{}\\])", r"\\\1", n) == gone[1]), None)
        if not name:
            raise Failure(f"{model}: {mesh} {shards}\n{text}")
        del shards[name]


def same(expected, found, what):
    a, b = numpy.load(expected), numpy.load(found)
    for name in a:
        x, y = a[name], b[name]
        if x.dtype.kind != "f":
            if x.dtype == y.dtype and x.shape == y.shape and (x == y).mean() > 0.99:
                continue
            raise Failure(f"{what}: output {name} differs")
        finite = numpy.isfinite(x)
        if x.shape != y.shape or not (finite == numpy.isfinite(y)).all():
            raise Failure(f"{what}: output {name} has other infinities")
        spread = max(float(numpy.ptp(x[finite])) if finite.any() else 0.0, 1e-6)
        worst = float(numpy.abs(x.astype("f8") - y)[finite].max()) if finite.any() else 0.0
        if worst > TOLERANCE * spread:
            raise Failure(f"{what}: output {name} is {worst} off, of a range of {spread}")


def check_model(name, seeds, work):
    folder = data_folder() / "models" / name
    model = folder / "model.onnx"
    flags = MODELS[name][0] if name in MODELS else ()
    feeds = WIDE[name][0] if name not in MODELS else None
    inputs = []
    if feeds is None:
        vectors = sorted((folder / "refeval_data_set_0").glob("input_*.pb"))
        for port, vector in zip(input_ports(model), vectors):
            inputs += ["--input", f"{port['name']}={vector}"]
    else:
        flags = tuple(flags)
        for seed, (port, shape, kind, low, high) in enumerate(feeds):
            path = work / f"input{seed}.npy"
            write_npy(path, shape, kind, seed=seed, low=low, high=high)
            inputs += ["--input", f"{port}={path}"]
            described = next(p for p in input_ports(model) if p["name"] == port)
            if any(not isinstance(size, int) for size in described["shape"]):
                flags += ("--shape", f"{port}={'x'.join(map(str, shape))}")
    one, cut, split, expected, found = (work / f for f in ("one.partita", "cut.partita", "split.yaml", "one.npz", "cut.npz"))
    compile_model(model, one, *flags, "--quiet")
    run_artifact(one, "--threads", "1", *inputs, "--output", expected)
    weights, noise, count = weights_of(model), random.Random(name), 0
    for seed in range(seeds):
        devices = noise.choice((2, 2, 3, 4))
        mesh = noise.choice(({"tensor": devices}, {"tensor": devices}, {"stage": 2, "tensor": devices}, {"data": 2, "tensor": devices}))
        shards = compile_sharded(model, cut, flags, split, mesh, draw(weights, noise, devices), weights)
        what = f"{name}: {mesh}, {len(shards)} weights cut (seed {seed})"
        run_artifact(cut, "--threads", "1", *inputs, "--output", found)
        try:
            same(expected, found, what)
        except Failure as failure:
            raise Failure(f"{failure}\n{split.read_text()}") from None
        count += len(shards)
    print(f"{name}: {seeds} times other weights cut, {count} in all")


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or [*MODELS, *WIDE]:
            check_model(name, options.seeds, pathlib.Path(folder))


if __name__ == "__main__":
    main(check, use_workers=True)
