#!/usr/bin/env python3
"""Decisions as ONNX's own annotations of devices: what --emit-onnx writes is a valid model, the same but for the annotations, and loaded again without
flags it gives the same artifact, byte for byte.

    emit_onnx.py [NAME...] [--seeds N]        e.g. encoder/bert-tiny-mlm-vespa

For each model: pipelines, tensors that the compiler cuts, and N times weights that are cut at random, in meshes whose axes stand in any order. Needs
numpy, onnx and onnx_ir, and says skipped without them.
"""

import argparse
import pathlib
import random
import sys
import tempfile

from harness import SKIPPED, Failure, compile_model, cpu_level, data_folder, main
from models import MODELS, WIDE
from shards import compile_sharded, draw, weights_of

try:
    import onnx
    import onnx_ir
except ImportError:
    print("skipped: this Python has no onnx or no onnx_ir")
    sys.exit(SKIPPED)

BATCHES = ("--micro-batches", "2")  # which annotations cannot say
MESHES = ({"stage": 2, "tensor": 2}, {"tensor": 3}, {"tensor": 2, "stage": 2})


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from nodes_of(inner)


def bare(path):
    """The bytes of a model without its annotations, and how many nodes have some."""
    model, count = onnx.load(path, load_external_data=False), 0
    del model.configuration[:]
    model.ir_version = 0
    for owner in [model.graph, *model.functions]:
        for node in nodes_of(owner):
            count += len(node.device_configurations) > 0
            del node.device_configurations[:]
    return model.SerializeToString(deterministic=True), count


def check_written(model, written):
    """The ONNX checker and onnx_ir take it, and nothing but annotations is new."""
    proto = onnx.load(written)
    try:
        onnx.checker.check_model(onnx.load(model))
    except onnx.checker.ValidationError:
        pass  # the model itself is not valid
    else:
        onnx.checker.check_model(proto)
    if proto.ir_version < 11 or len(proto.configuration) != 1:
        raise Failure(f"{written}: IR version {proto.ir_version}, {len(proto.configuration)} configurations")
    known = onnx_ir.load(written)
    configuration = known.device_configurations[0]
    for node in known.graph.all_nodes():
        for annotation in node.device_configurations:
            if annotation.configuration is not configuration:
                raise Failure(f"{node.name}: another configuration")
            for spec in annotation.sharding_specs:
                if spec.value not in (*node.inputs, *node.outputs):
                    raise Failure(f"{node.name}: {spec.value} is not one of its tensors")
                groups = {entry.key: entry.value for entry in spec.index_to_device_group_map}
                devices = [d for entry in spec.device for d in groups.get(entry, [entry])]
                if len(set(devices)) != len(devices) or not set(devices) <= set(range(configuration.num_devices)):
                    raise Failure(f"{node.name}: {spec.value.name} on devices {devices} of {configuration.num_devices}")
    (before, _), (after, count) = bare(model), bare(written)
    if before != after and onnx.load(model).ir_version > 2:  # older ones get an opset, and types of attributes
        raise Failure(f"{written}: it differs from {model} in more than annotations")
    return count


def check_split(model, flags, split, work, what):
    first, second, written = work / "first.partita", work / "second.partita", work / "model.onnx"
    # A model that combines samples has one micro-batch.
    batches = BATCHES if not compile_model(model, first, *flags, *BATCHES, *split, "--quiet", expect=None)[0] else ("--micro-batches", "1")
    text = compile_model(model, first, *flags, *batches, *split, "--emit-onnx", written)
    count = check_written(model, written)
    again = compile_model(written, second, *flags, *batches)
    same = first.read_bytes() == second.read_bytes()
    if not same and "in different stages" not in text:
        raise Failure(f"{what}: loaded again, the annotated model gives another artifact\n{text}\n{again}")
    return count, same


def check_model(name, seeds, work):
    model = data_folder() / "models" / name / "model.onnx"
    # Artifacts are compared, and not run.
    flags = ("--no-optimize", "--cpu-level", cpu_level(), *(MODELS[name][0] if name in MODELS else ()))
    if name not in MODELS:
        for port, shape, *_ in WIDE[name][0]:
            flags += ("--shape", f"{port}={'x'.join(map(str, shape))}")
    splits = [("--devices", "1"), ("--devices", "3"), ("--devices", "4", "--tensor-parallel", "2")]
    results = [check_split(model, flags, split, work, f"{name}: {' '.join(split)}") for split in splits]
    weights, noise, file = weights_of(model), random.Random(name), work / "split.yaml"
    for seed in range(seeds):
        mesh = noise.choice(MESHES)
        shards = compile_sharded(model, work / "cut.partita", flags, file, mesh, draw(weights, noise, mesh["tensor"]), weights)
        what = f"{name}: {mesh}, {len(shards)} weights cut (seed {seed})"
        results.append(check_split(model, flags, ("--partition", file), work, what))
    exact = sum(same for _, same in results)
    print(f"{name}: {len(results)} splits, {results[0][0]} nodes annotated; {exact} artifacts are the same")
    if not exact:
        raise Failure(f"{name}: no artifact is the same")


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
