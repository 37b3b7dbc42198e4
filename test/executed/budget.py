#!/usr/bin/env python3
"""--memory: where the fastest stages do not fit the devices, others are taken that do, with the same bits and within the plan as it runs; what cannot
fit is an error that names the device, its peak step and its largest tensors, leaves no artifact, and gives advice that holds."""

import json
import pathlib
import re
import tempfile

from harness import Failure, compile_model, main, run_artifact, write_npy

WIDTH = 512
KIB, MIB = 1 << 10, 1 << 20


def write_model(path):
    """Convolutions first, which take time, then layers with much larger weights, which take room: the two pull the cut apart."""
    inits, nodes, last = [], [], "x"
    for i in range(6):
        inits.append(f"float[4,4,3,3] k{i} = {{{', '.join(['0.03', '-0.02', '0.05'] * 48)}}}")
        nodes += [f"[conv{i}] c{i} = Conv <pads = [1,1,1,1]> ({last}, k{i})", f"[relu{i}] r{i} = Relu (c{i})"]
        last = f"r{i}"
    nodes += [f"[pool] p = GlobalAveragePool ({last})", "[flat] f = Flatten (p)"]
    last, rows = "f", 4
    for i in range(5):
        inits.append(f"float[{rows},{WIDTH}] w{i} = {{{', '.join(['0.02', '-0.01'] * (rows * WIDTH // 2))}}}")
        nodes += [f"[fc{i}] g{i} = MatMul ({last}, w{i})", f"[tanh{i}] {'y' if i == 4 else f'h{i}'} = Tanh (g{i})"]
        last, rows = f"h{i}", WIDTH
    path.write_text('<ir_version: 10, opset_import: ["" : 21]>\n'
                    f"g (float[1,4,64,64] x) => (float[1,{WIDTH}] y)\n<{', '.join(inits)}>\n{{\n" + "\n".join(nodes) + "\n}\n")


def write_wide(path):
    """Large values between stages and no weights: what is sent takes the room."""
    nodes = "\n".join(f"[n{i}] v{i + 1} = Softmax <axis = {1 + i % 2}> (v{i})" for i in range(4))
    path.write_text(f'<ir_version: 10, opset_import: ["" : 21]>\ng (float[1,256,1024] v0) => (float[1,256,1024] v4)\n{{\n{nodes}\n}}\n')


def plan_of(text):
    return json.JSONDecoder().raw_decode(text[text.index("{"):])[0]


def check_fits(work, model, feed, expected, memory, *flags):
    """Compiles within `memory`; the plan, the run and the file that the compiler writes keep to it."""
    artifact, again, split = work / "fits.partita", work / "again.partita", work / "fits.yaml"
    plan = plan_of(compile_model(model, artifact, *flags, "--memory", f"{memory}B", "--json", "--emit-partition", split))
    what = f"{' '.join(map(str, flags))} in {memory} bytes"
    for stage in plan["stages"]:
        if stage["peak_bytes"] > memory:
            raise Failure(f"{what}: {stage['name']} of {stage['device']} is planned with {stage['peak_bytes']}")
    out = work / "out.npz"
    run_artifact(artifact, "--threads", 1, *feed, "--output", out)
    if out.read_bytes() != expected:
        raise Failure(f"{what}: not the bytes of one device")
    measured = json.loads(run_artifact(artifact, "--benchmark", "--runs", 2, "--warmup", 1, "--no-pin", "--threads", 1, "--json", alone=True))
    for device in measured["memory"]:
        if device["used_bytes"] > memory:
            raise Failure(f"{what}: {device['device']} uses {device['used_bytes']}")
    compile_model(model, again, "--partition", split)
    if artifact.read_bytes() != again.read_bytes():
        raise Failure(f"{what}: the partition file that the compiler wrote gives another artifact:\n{split.read_text()}")
    return plan


def check_refused(work, model, memory, *needles, flags=()):
    artifact = work / "refused.partita"
    text = compile_model(model, artifact, *flags, "--memory", f"{memory}B", expect=1)
    for needle in (r"error: device cpu:\d needs .* but has room for", r"fullest, with .* in use, at '.*' in unit F\d, micro-batch \d", *needles):
        if not re.search(needle, text):
            raise Failure(f"{memory} bytes: the error does not say {needle!r}:\n{text}")
    if text.count("error:") != 1 or artifact.exists():
        raise Failure(f"{memory} bytes: more than one error, or an artifact is left:\n{text}")
    return text


def check(work):
    model, wide, one, out = work / "model.onnxtxt", work / "wide.onnxtxt", work / "one.partita", work / "out.npz"
    write_model(model)
    write_npy(work / "x.npy", (3, 4, 64, 64))
    feed = ("--input", f"x={work / 'x.npy'}")
    compile_model(model, one)
    run_artifact(one, "--threads", 1, *feed, "--output", out)
    expected = out.read_bytes()

    fastest = plan_of(compile_model(model, one, "--devices", 2, "--json"))
    peak = max(stage["peak_bytes"] for stage in fastest["stages"])
    if check_fits(work, model, feed, expected, peak, "--devices", 2)["stages"] != fastest["stages"]:
        raise Failure("the fastest stages fit, and others were taken")
    within = check_fits(work, model, feed, expected, peak - 512 * KIB, "--devices", 2)
    if within["predicted_ms"] < fastest["predicted_ms"]:
        raise Failure("stages that fit are faster than the fastest")
    for flags in (("--devices", 4), ("--devices", 3, "--schedule", "looped"), ("--devices", 4, "--schedule", "sequential")):
        check_fits(work, model, feed, expected, peak - 512 * KIB, *flags)

    # The advice holds, and what it says is needed: one device less does not fit.
    text = check_refused(work, model, 3 * MIB, r"largest weights: 'w\d' 1048576 bytes", r"what would fit: \d devices", flags=("--devices", 2))
    devices = int(re.search(r"--devices (\d+)\)", text).group(1))
    check_fits(work, model, feed, expected, 3 * MIB, "--devices", devices)
    check_refused(work, model, 3 * MIB, flags=("--devices", devices - 1))
    check_refused(work, model, MIB, "neither .* would fit", flags=("--devices", 2))
    compile_model(model, work / "none.partita", "--memory", "much", expect=1)

    # Also where only the partition file says it.
    split = work / "said.yaml"
    split.write_text("devices: [0, 1]\nmemory: 3MiB\n")
    text = compile_model(model, work / "said.partita", "--partition", split, expect=1)
    if "has room for 3.00 MiB" not in text:
        raise Failure(f"the file's memory is not kept:\n{text}")

    # Two buffers of a megabyte between the stages: one micro-batch needs one.
    write_wide(wide)
    flags = ("--devices", 2, "--micro-batches", 4)
    several = plan_of(compile_model(wide, one, *flags, "--json"))
    peak = max(stage["peak_bytes"] for stage in several["stages"])
    check_refused(work, wide, peak - 512 * KIB, r"'v\d|'n\d", r"one micro-batch in flight \(--micro-batches 1\)", flags=flags)
    compile_model(wide, one, "--devices", 2, "--micro-batches", 1, "--memory", f"{peak - 512 * KIB}B")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)), use_workers=True)
    print("plans keep to the memory of their devices")
