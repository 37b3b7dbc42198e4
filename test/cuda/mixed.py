#!/usr/bin/env python3
"""Runs models on GPUs and CPUs together, on test/gpu-emulator, each as one or two of three mixtures (PARTITA_TEST_ALL=1: all), with streams in two of four
orders, and compares with their reference vectors. Partition files that say the whole decision make the same artifacts. Work goes where it is fast.

PARTITA_GPU_EMULATOR is the folder with the emulator's libcuda.so.1. Skipped where it is missing.
"""

import json
import pathlib
import sys
import tempfile

from cuts import TOO_LONG, compile_mesh
import execute
from execute import TARGET, run_on_gpus, seeds_for
from harness import BIN, REPOSITORY, Failure, data_folder, main, run, some

# Stages of both kinds, in either order; with tensors and micro-batches cut, too.
MIXTURES = ("cuda:1,cpu:1", "cpu:1,cuda:1,cpu:1", "cpu:2,cuda:2")
CUT = MIXTURES[2]
SHORT = [name for name in execute.MODELS if name not in execute.LONG]


def run_mixture(folder, name, devices):
    case, partition = data_folder() / "models" / name / "model.onnx", folder / f"{name.replace('/', '-')}{devices}.yaml"
    said = ("--emit-partition", partition)
    if devices == CUT:
        artifact, vectors = compile_mesh(folder, name, {"stage": 2, "tensor": 2}, (), f'targets: [cpu, "{TARGET[1]}"]\n', said)
    else:
        artifact, vectors = execute.compile_for_gpus(folder, name, "--devices", devices, more=said)
    again = artifact.with_suffix(".again")
    run([BIN / "partita-compile", case, "--quiet", "-o", again, "--partition", partition, *execute.shape_flags(name)])
    if again.read_bytes() != artifact.read_bytes():
        return f"{name}: {devices}: the partition file makes another artifact:\n{partition.read_text()}"
    again.unlink()
    gpus = ",".join(f"cuda:0*{kind[5:]}" for kind in devices.split(",") if kind.startswith("cuda:"))
    for seed in seeds_for(name, devices):
        if wrong := run_on_gpus(name, artifact, vectors, "--devices", gpus, "--threads", "1", "--no-pin", seed=seed):
            return f"{devices}, seed {seed}: {wrong}"
    return None


def check_uneven(folder):
    """The faster device gets most of equal layers, so that both take about as long: the GPU, or, with its figures turned round, the CPU."""
    layers, model = 16, folder / "layers.mlir"
    wide = "tensor<512x512xf32>"
    dots = "".join(f"  %d{i} = nn.dot %r{i}, %w batch [] x [] contract [1] x [0] : {wide}, {wide} -> {wide}\n  %r{i + 1} = nn.relu %d{i} : {wide}\n" for i in range(layers))
    model.write_text(f"""nn.weight @w "w" : {wide} = dense<0.001> : {wide}
func.func @main(%r0: {wide}) -> {wide} {{
  %w = nn.parameter @w : {wide}
{dots}  return %r{layers} : {wide}
}}
""")
    tools = REPOSITORY / "test" / "tools" / "partita-compile" / "Inputs"
    # Of a GPU that computes as such; four times as fast as the CPU; a fiftieth as fast.
    for clock, least, most in ((1.83, 0.9, 1), (2e-4, 0.75, 0.9), (1e-6, 0, 0.1)):
        machine = folder / f"{clock}.json"
        machine.write_text(run([sys.executable, tools / "with_device.py", tools / "machine.json", f"clock={clock}"]))
        for kinds in ("cuda:1,cpu:1", "cpu:1,cuda:1"):
            plan = json.loads(run([BIN / "partita-compile", model, "--json", "-o", folder / "uneven.partita", *TARGET, "--devices", kinds, "--machine", machine]))
            stages = {stage["device"].split(":")[0]: stage for stage in plan["stages"]}
            share = stages["cuda"]["flops"] / sum(stage["flops"] for stage in plan["stages"])
            ns = {kind: stage["predicted_ms"] for kind, stage in stages.items()}
            print(f"{kinds}, a GPU at {clock} GHz: it gets {share:.0%} of the work; predicted ms: {ns}")
            if not least < share < most:
                raise Failure(f"the GPU gets {share}, not {least} to {most}")
            if clock == 2e-4 and max(ns.values()) > 1.5 * min(ns.values()):
                raise Failure("one device waits for the other")


def check():
    execute.need_emulator()
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        mixtures = [(name, MIXTURES[0]) for name in sorted(execute.LONG - TOO_LONG)] + [(name, devices) for turn, name in enumerate(SHORT) for devices in some(MIXTURES, 2, turn)]
        execute.summarise(execute.in_threads(lambda each: run_mixture(folder, *each), mixtures), "models on GPUs and CPUs")
        check_uneven(folder)


if __name__ == "__main__":
    main(check, use_workers=True)
