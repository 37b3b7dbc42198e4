#!/usr/bin/env python3
"""Runs models on several devices of one GPU, on test/gpu-emulator, each with streams in two of four orders, and compares with their reference vectors.

    cuts.py             as pipelines of 2 or 4 devices, with the bits of one device; on a mesh of MESHES, with weights cut as a seed draws it; in turns
    cuts.py NAME...     these models only, e.g. cnn/mnist-burn

The compiler finds no reason to cut tensors of models as small as these, so partition files say which. Each such plan has a collective.
With PARTITA_TEST_ALL=1 each is run on all of them. PARTITA_GPU_EMULATOR is the folder with the emulator's libcuda.so.1. Skipped where it is missing.
"""

import pathlib
import random
import sys
import tempfile

import execute
from execute import emulated, run_on_gpus, seeds_for
from harness import BIN, Failure, data_folder, input_names, main, run, some
import shards

PIPELINES = ("2", "4")
MESHES = ({"tensor": 2}, {"tensor": 4}, {"stage": 2, "tensor": 2})
TOO_LONG = {"cnn/mobilenetv2-qdq-int8", "rnn/gtcrn-stream-simple"}  # ten seconds a run
MOST_DRAWS = 20


def compile_mesh(folder, name, mesh, target=None, more="", flags=()):
    """The artifact of a shared model with weights cut along `tensor`, and the folder with its reference vectors. `more`: lines for the partition file."""
    case = data_folder() / "models" / name
    file = folder / "-".join([name.replace("/", "-"), *(f"{axis}{size}" for axis, size in mesh.items())])
    artifact, partition = pathlib.Path(f"{file}.partita"), pathlib.Path(f"{file}.yaml")
    flags = [*(execute.TARGET if target is None else target), *execute.shape_flags(name), *flags]
    weights, noise = shards.weights_of(case / "model.onnx"), random.Random(f"{name} {mesh}")
    for _ in range(MOST_DRAWS):
        drawn = shards.draw(weights, noise, mesh["tensor"])
        shards.compile_sharded(case / "model.onnx", artifact, flags, partition, mesh, drawn, weights, more)
        if "along tensor" in run([BIN / "partita-run", artifact, "--plan"]):
            return artifact, case / "refeval_data_set_0"
    raise Failure(f"{name}: no collective in a plan for {mesh}, whichever weights are cut:\n{partition.read_text()}")


def run_mesh(folder, name, mesh):
    artifact, vectors = compile_mesh(folder, name, mesh)
    devices = mesh.get("stage", 1) * mesh["tensor"]
    for seed in seeds_for(name, mesh):
        if wrong := run_on_gpus(name, artifact, vectors, "--devices", f"cuda:0*{devices}", seed=seed):
            return f"{mesh}, seed {seed}: {wrong}\n{artifact.with_suffix('.yaml').read_text()}"
    return None


def run_pipelines(folder, name, counts):
    one, vectors = execute.compile_for_gpus(folder, name)
    outputs = folder / f"{one.name}.npz"
    inputs = [word for k, port in enumerate(input_names(data_folder() / "models" / name / "model.onnx")) for word in ("--input", f"{port}={vectors / f'input_{k}.pb'}")]
    emulated(BIN / "partita-run", one, *inputs, "--output", outputs)
    for devices in counts:
        artifact, _ = execute.compile_for_gpus(folder, name, "--devices", devices)
        for seed in seeds_for(name, devices):
            status, said = emulated(
                BIN / "partita-run", artifact, *inputs, "--devices", f"cuda:0*{devices}", "--compare", outputs, "--rtol", "0", "--atol", "0", seed=seed, expect=None)
            if status:
                return f"{name}: {devices} stages, seed {seed}: other bits than on one device: {said.strip()}"
    return None


def check():
    execute.need_emulator()
    names = sys.argv[1:] or [name for name in execute.longest_first(execute.MODELS) if name not in TOO_LONG]
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        pipelines = [(name, some(PIPELINES, 2, turn)) for turn, name in enumerate(names)]
        execute.summarise(execute.in_threads(lambda each: run_pipelines(folder, *each), pipelines), "pipelines")
        cuts = [(name, mesh) for turn, name in enumerate(names) for mesh in some(MESHES, 3, turn)]
        execute.summarise(execute.in_threads(lambda each: run_mesh(folder, *each), cuts), "models with tensors cut")


if __name__ == "__main__":
    main(check, use_workers=True)
