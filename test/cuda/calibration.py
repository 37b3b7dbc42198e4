#!/usr/bin/env python3
"""What `partita-run --calibrate` measures of GPUs, on test/gpu-emulator: it is written, one entry for each architecture, and the compiler predicts with
it. Rates mean nothing there; the number of processors and their clock are those that the driver says. A driver that fails, or a machine without one,
leaves the processor's part of the file."""

import json
import os
import pathlib
import re
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "executed"))
from harness import ALL, BIN, REPOSITORY, SKIPPED, Failure, compile_model, main, run

EMULATOR = pathlib.Path(os.environ.get("PARTITA_GPU_EMULATOR", REPOSITORY / "build" / "test" / "gpu-emulator" / "lib"))
MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"
ALONE = {"processors", "clock", "memory", "launch", "unit", "copy", "host"}


def calibrate(machine, seconds="0.02", **environment):
    env = {"LD_LIBRARY_PATH": str(EMULATOR), **{name: str(value) for name, value in environment.items()}}
    said = run(["taskset", "-c", "0", BIN / "partita-run", "--calibrate", machine, "--calibrate-seconds", seconds], env=env)
    return json.loads(machine.read_text()), said


def check_device(machine, architecture, processors, clock, rates):
    (device,) = machine["devices"]
    if (device["kind"], device["architecture"]) != ("cuda", architecture) or set(device["rates"]) != rates:
        raise Failure(f"other devices than {architecture} with {sorted(rates)}: {device}")
    if device["rates"]["processors"] != processors or abs(device["rates"]["clock"] - clock) > 1e-3 or min(device["rates"].values()) <= 0:
        raise Failure(f"other rates than the driver says: {device}")
    return device["name"]


def check(work):
    alone, two, none = work / "alone.json", work / "two.json", work / "none.json"
    measured, said = calibrate(alone, seconds="0.1")
    name = check_device(measured, "sm_90", 132, 1.98, ALONE)
    if not re.search(r"^processors +132", said, re.MULTILINE) or f"{name} (sm_90)" not in said:
        raise Failure("the table does not show the GPU:\n" + said)
    # Two GPUs copy from each other, with streams in another order.
    counts = work / "counts"
    settings = {"CUDA_EMU_DEVICES": 2, "CUDA_EMU_SM": 80, "CUDA_EMU_SEED": 3, "CUDA_EMU_COUNTS": counts}
    other = check_device(calibrate(two, **settings)[0], "sm_80", 108, 1.41, ALONE | {"peer"})
    counted = dict(line.split() for line in counts.read_text().splitlines())
    if counted["peer-copies"] == "0" or counted["staged-copies"] != "0":
        raise Failure(f"the way between two GPUs was not measured: {counted}")

    artifact = work / "a.partita"
    flags = ("--dim", "batch=4", "--devices", "2")
    for machine, expected in ((alone, name), (two, other)):
        text = compile_model(MODEL, artifact, *flags, "--target", "cuda:sm_80", "--machine", machine)
        if f"predicted for {expected}: step" not in text:
            raise Failure(f"times are not those of {expected}:\n{text}")
    # The same file predicts for the machine's cores, too.
    if "with 1 core a device" not in compile_model(MODEL, artifact, *flags, "--machine", alone):
        raise Failure("the machine's cores are forgotten")
    # A model's work is measured on cores.
    compile_model(MODEL, artifact, *flags, "--target", "cuda:sm_80", "--machine", two)
    text = run([BIN / "partita-run", artifact, "--calibrate", two], env={"LD_LIBRARY_PATH": str(EMULATOR)}, expect=1)
    if "are predicted by the figures of the device" not in text:
        raise Failure(f"the work of a GPU was measured: {text}")

    if "devices" in calibrate(none, LD_LIBRARY_PATH="")[0]:
        raise Failure("a GPU was measured without a driver")
    # Calls of the driver fail, here and there; every failure is told, and the cores are measured all the same.
    for call in (3, 20, 60, 200) if ALL else (3, 60):
        measured, said = calibrate(none, CUDA_EMU_FAIL=call, CUDA_EMU_QUIET=1)
        if "devices" in measured or "remark: not measured: " not in said or not measured["teams"]:
            raise Failure(f"call {call} of the driver failed:\n{said[-2000:]}")
    print("GPUs are measured on the emulator, and what was measured is predicted with")


if __name__ == "__main__":
    if not (EMULATOR / "libcuda.so.1").exists():
        print(f"skipped: no emulator at {EMULATOR} (set PARTITA_GPU_EMULATOR)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)))
