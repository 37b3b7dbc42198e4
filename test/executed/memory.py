#!/usr/bin/env python3
"""The memory plan is a promise: what a run holds is within what was planned, on every device.

Real models, one device and two, one core a device and two, and with the library told that the processor has no AVX-512, where it chooses other
algorithms and other orders of the weights. A step writes its arena to the last planned byte and not beyond, and takes nothing from the heap.

Ranks that share a model's weights have their part of them in memory, and no more: as the system measures it, when they are loaded and at the peak,
although the hashes of whole weights are checked.
"""

import itertools
import json
import os
import pathlib
import re
import tempfile

from harness import Failure, compile_model, data_folder, main, run_artifact, some
from weight_files import external, model, node, value_info

MODELS = {
    "cnn/mnist-burn": (),
    "cnn/conv-bn-fusion": (),
    "detection/yunet-n-640": (),
    "detection/ultraface-slim-320": (),
    "encoder/bert-tiny-mlm-vespa": ("--dim", "batch=2", "--dim", "tokens=200"),
}
# Padding to whole blocks, and the workspace that a small model does not need.
SLACK = 1.15, 2 << 20

MIB = 1 << 20
LARGE, SMALL = (4096, 8448), (64, 96)  # two weights of 132 MiB; what is left without them
# What is read in windows: while hashes are checked, and while parts are cut out of weights.
WINDOWS = 24 * MIB


def has_avx512():
    return "avx512bw" in pathlib.Path("/proc/cpuinfo").read_text().split()


def check_device(device, what, threads, slack):
    planned, used = device["planned_bytes"], device["used_bytes"]
    if used > planned:
        raise Failure(f"{what}, {device['device']}: planned {planned} bytes, used {used}")
    if slack and planned > used * SLACK[0] + SLACK[1] * threads:
        raise Failure(f"{what}, {device['device']}: planned {planned} bytes where {used} are used")
    if device["arena_touched_bytes"] != device["arena_bytes"]:
        raise Failure(f"{what}, {device['device']}: planned {device['arena_bytes']} bytes of arena, used {device['arena_touched_bytes']}")


def check_refusal(work):
    """What needs more scratch than planned is refused with what to do; then it runs."""
    model, artifact = work / "wide.onnxtxt", work / "wide.partita"
    values = ", ".join(str(i % 7 - 3) for i in range(8 * 3 * 31 * 31))
    model.write_text(
        '<ir_version: 8, opset_import: ["" : 17]>\n'
        "g (float[1, 3, 512, 512] x) => (float[1, 8, 512, 512] y)\n"
        f"<float[8, 3, 31, 31] w = {{{values}}}>\n{{ y = Conv <pads = [15, 15, 15, 15]> (x, w) }}\n"
    )
    flags = ("--benchmark", "--runs", 1, "--warmup", 0, "--threads", 1)
    avx2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    compile_model(model, artifact)
    text = run_artifact(artifact, *flags, env=avx2, expect=1, alone=True)
    found = re.search(r"compile the model again with --workspace (\d+)", text)
    if not found:
        raise Failure(f"a convolution without room is refused with another message:\n{text}")
    compile_model(model, artifact, "--workspace", found.group(1))
    run_artifact(artifact, *flags, env=avx2, alone=True)
    print("what has no room is refused")


def write_layers(path, width, inner):
    """Two layers: x W1, relu, W2. The weights' file has a block of numbers at each end, and a hole between."""
    size = width * inner * 4
    with open(path.with_suffix(".bin"), "wb") as data:
        for block in range(2):
            for at in (0, size - 4096):
                data.seek(block * size + at)
                data.write(os.urandom(1024) * 4)
    weights = [external("w1", (width, inner), path.with_suffix(".bin").name, 0, size),
               external("w2", (inner, width), path.with_suffix(".bin").name, size, size)]
    nodes = [node("MatMul", ["x", "w1"], "a"), node("Relu", ["a"], "b"), node("MatMul", ["b", "w2"], "y")]
    path.write_bytes(model(nodes, weights, [value_info("x", (4, width))], [value_info("y", (4, width))]))
    return 2 * size


def measure_ranks(artifact, ranks):
    """(devices, loaded, peak) of each process."""
    text = run_artifact(artifact, "--benchmark", "--runs", 2, "--warmup", 1, "--threads", 1, "--json", ranks=ranks, alone=True)
    found = json.JSONDecoder().raw_decode(text, text.index("{"))[0]["processes"]  # mpirun may have something to say behind it
    if len(found) != max(ranks, 1):
        raise Failure(f"{len(found)} processes are described, and {ranks} ran")
    return [(len(each["devices"]), each["loaded_resident_bytes"], each["peak_resident_bytes"]) for each in found]


def check_ranks(work):
    files = {}
    for name, (width, inner) in (("large", LARGE), ("small", SMALL)):
        files[name] = work / f"{name}.onnx"
        weights = write_layers(files[name], width, inner)
        total = weights if name == "large" else total
    for devices, ranks in ((1, 0), (4, 4), (4, 2), (4, 1), (3, 2)):
        flags = ("--tensor-parallel", devices, "--weights", "beside") if devices > 1 else ("--weights", "beside")
        measured = {}
        for name, file in files.items():
            compile_model(file, work / f"{name}.partita", *flags)
            measured[name] = measure_ranks(work / f"{name}.partita", ranks)
        for (mine, loaded, peak), (_, base, base_peak) in zip(measured["large"], measured["small"]):
            part = total * mine / devices
            what = f"{mine} of {devices} devices, {ranks or 1} processes"
            print(f"{what}: a part of {part / MIB:.1f} MiB; {(loaded - base) / MIB:.1f} MiB more are resident when loaded, "
                  f"{(peak - base_peak) / MIB:.1f} MiB at the peak")
            if not 0.95 * part < loaded - base < 1.05 * part + 2 * MIB:
                raise Failure(f"{what}: a part of {part} bytes of the weights, but {loaded - base} are resident when loaded")
            # One weight after the other is cut out, or put into the library's order.
            if peak - base_peak > 1.5 * part + WINDOWS:
                raise Failure(f"{what}: a part of {part} bytes of the weights, but {peak - base_peak} were resident at the peak")


def check(work):
    check_ranks(work)
    check_refusal(work)
    models, artifact = data_folder() / "models", work / "model.partita"
    ways = [((1, "ALL"), (2, "AVX2")), ((1, "AVX2"), (2, "ALL"))]
    for turn, ((name, flags), devices) in enumerate(itertools.product(MODELS.items(), (1, 2))):
        compile_model(models / name / "model.onnx", artifact, "--devices", devices, *flags)
        # Of one device the ones, of two the others; the next model has them the other way round.
        for threads, isa in itertools.chain(*some(ways, 2, turn // 2 + devices)):
            what = f"{name}, {devices} devices of {threads} cores, {isa}"
            flags_of_run = ("--benchmark", "--runs", 2, "--warmup", 1, "--no-pin", "--threads", threads, "--json")
            text = run_artifact(artifact, *flags_of_run, env={"ONEDNN_MAX_CPU_ISA": isa}, alone=True)
            remarks, brace, rest = text.partition("{")
            if not brace:
                raise Failure(f"{what}: no JSON:\n{text}")
            if remarks:
                print(f"{what}: {remarks.strip()}")
            result = json.loads(brace + rest)
            for device in result["memory"]:
                # AVX2's algorithms pad less than the plan has room for.
                check_device(device, what, threads, slack=isa == "ALL" and has_avx512())
            if result["heap_allocations"]:
                raise Failure(f"{what}: {result['heap_allocations']} allocations from the heap in two steps")
        print(f"{name}, {devices} devices: within the plan")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)), use_workers=True)
