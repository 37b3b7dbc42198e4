#!/usr/bin/env python3
"""Real models with weights that are cut over devices, drawn by a seed: as the compiler finds no reason to cut small models, a partition file says so.

    sharded_models.py [NAME...] [--seeds N]        e.g. encoder/bert-tiny-mlm-vespa

The models take turns at all meshes of up to 8 devices along data, stage and tensor, N each; some run as processes. Along tensor some weights are cut along
some dimension, whether it divides or not. Outputs must be those of one device, within 1e-4 of the output's range; and bit for bit, if nothing is cut along
tensor. Needs numpy, and says skipped without it.
"""

import argparse
import itertools
import pathlib
import random
import sys
import tempfile

from harness import ALL, SKIPPED, Failure, compile_model, data_folder, input_ports, main, run_artifact, write_npy
from models import MODELS, ROOM, WIDE
from shards import compile_sharded, draw, weights_of

try:
    import numpy
except ImportError:
    print("skipped: this Python has no numpy")
    sys.exit(SKIPPED)

TOLERANCE = 1e-4
MOST_DEVICES = 8
EVERY_RANKS = 5  # one of so many runs is of processes


def all_meshes():
    """Every number of devices along the three axes, in an order that mixes them."""
    sizes = range(1, MOST_DEVICES + 1)
    meshes = [dict(zip(("data", "stage", "tensor"), mesh)) for mesh in itertools.product(sizes, repeat=3) if 1 < numpy.prod(mesh) <= MOST_DEVICES]
    random.Random(0).shuffle(meshes)
    return meshes


def same(expected, found, what, bits):
    a, b = numpy.load(expected), numpy.load(found)
    for name in a:
        x, y = a[name], b[name]
        if bits and x.tobytes() != y.tobytes():
            raise Failure(f"{what}: output {name} has other bits")
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


def inputs_of(name, work):
    """Flags that bind a model's shapes, and those that feed it."""
    folder = data_folder() / "models" / name
    model = folder / "model.onnx"
    flags = MODELS[name][0] if name in MODELS else ROOM.get(name, ())
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
    return flags, inputs


def check_model(name, meshes, work):
    model = data_folder() / "models" / name / "model.onnx"
    flags, inputs = inputs_of(name, work)
    one, cut, split, expected, found = (work / f for f in ("one.partita", "cut.partita", "split.yaml", "one.npz", "cut.npz"))
    compile_model(model, one, *flags, "--quiet")
    run_artifact(one, "--threads", "1", *inputs, "--output", expected)
    weights, noise, count = weights_of(model), random.Random(name), 0
    for number, mesh in ((number, dict(mesh)) for number, mesh in meshes):
        shards = compile_sharded(model, cut, flags, split, mesh, draw(weights, noise, mesh["tensor"]), weights)
        ranks = int(numpy.prod(list(mesh.values()))) if number % EVERY_RANKS == 0 else 0
        what = f"{name}: {mesh}, {len(shards)} weights cut, {'processes' if ranks else 'threads'}"
        run_artifact(cut, "--threads", "1", *inputs, "--output", found, ranks=ranks)
        try:
            same(expected, found, what, bits=mesh["tensor"] == 1)
        except Failure as failure:
            raise Failure(f"{failure}\n{split.read_text()}") from None
        count += len(shards)
    print(f"{name}: {', '.join('x'.join(map(str, mesh.values())) for _, mesh in meshes)} devices, {count} weights cut")


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        meshes = itertools.cycle(enumerate(all_meshes()))
        names = options.names or [name for name in (*MODELS, *WIDE) if ALL or name != "cnn/fns-candy"]  # it takes half a minute
        if not options.names and len(names) * options.seeds < len(all_meshes()):
            raise Failure(f"{len(names)} models leave some of {len(all_meshes())} meshes out: give more --seeds")
        for name in names:
            check_model(name, list(itertools.islice(meshes, options.seeds)), pathlib.Path(folder))


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
