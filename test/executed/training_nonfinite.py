#!/usr/bin/env python3
"""Steps whose loss or gradients are not finite (--on-nonfinite): they change no state, so a training that skips one has the bits of a training without its
samples, on one device, in a pipeline, in replicas and in processes. The message names the input, or the op and the micro-batch, that the number comes from.
A training that stops has written a checkpoint, from which it goes on as if nothing had been.

    training_nonfinite.py
"""

import json
import pathlib
import re
import sys
import tempfile

from harness import SKIPPED, Failure, compile_model, main, run_artifact

try:
    import numpy as np
    import onnx
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

from training_cases import BATCH, MICRO_BATCHES, Case, build

STEPS = 6
PER_STEP = BATCH * MICRO_BATCHES
BAD_STEP, BAD_MICRO_BATCH = 2, 5  # from 0 on
# With momentum, running statistics, and without a number of the step: a step that was skipped has none.
CASE = Case("nonfinite", "cnn", "sgd", {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.01}, micro=MICRO_BATCHES)
FLAGS = [*CASE.flags(), "--cpu-level", "v3"]
ARRANGEMENTS = [
    ("one device", [], 0),
    ("pipeline, clipped", ["--devices", 3, "--schedule", "zb_h1", "--clip-norm", 0.5], 0),
    ("replicas in processes", ["--devices", 2, "--data-parallel", 2, "--zero", 1], 2),
]


def write_data(work, name, arrays):
    flags = []
    for port, array in arrays.items():
        path = work / f"{name}.{port}.npy"
        np.save(path, array)
        flags += ["--data", f"{port}={path}"]
    return flags


def prepare(work):
    """The flags of data: clean, without the samples of a step, and with a sample that is bad there."""
    clean = {name: array[: STEPS * PER_STEP] for name, array in CASE.files("f32").items()}
    gone = {name: np.delete(array, slice(BAD_STEP * PER_STEP, (BAD_STEP + 1) * PER_STEP), 0) for name, array in clean.items()}
    data = {"clean": write_data(work, "clean", clean), "gone": write_data(work, "gone", gone)}
    # Sums of products overflow; and a number that is infinite at once.
    for name, pixels, value in (("large", ..., 3e38), ("infinite", (0, 3, 3), np.inf)):
        bad = {port: array.copy() for port, array in clean.items()}
        bad["image"][BAD_STEP * PER_STEP + BAD_MICRO_BATCH * BATCH + 1][pixels] = value
        data[name] = write_data(work, name, bad)
    model = work / "cnn.onnx"
    onnx.save(build("cnn", np.float32), model)
    return model, data


def train(artifact, *flags, ranks=0, steps=STEPS, **options):
    return run_artifact(artifact, "--train", "--order", "in-order", "--steps", steps, *flags, ranks=ranks, **options)


def artifacts_of(work, arrangement):
    """One that skips steps, and one that knows nothing of them."""
    return work / f"{arrangement}.guarded.partita", work / f"{arrangement}.plain.partita"


def check_skipped(work, model, data):
    for name, flags, ranks in ARRANGEMENTS:
        guarded, plain = artifacts_of(work, name)
        compile_model(model, guarded, *FLAGS, *flags, "--on-nonfinite", "skip")
        compile_model(model, plain, *FLAGS, *flags)
        exports = {}
        runs = [(plain, "gone", STEPS - 1), (guarded, "large", STEPS)] + [(plain, "clean", STEPS), (guarded, "clean", STEPS)] * (ranks == 0)
        for artifact, which, steps in runs:
            exported = work / "exported.onnx"
            said = train(artifact, *data[which], "--export", exported, ranks=ranks, steps=steps)
            exports[artifact == guarded, which] = exported.read_bytes()
            if ("1 step skipped" in said) != (which == "large"):
                raise Failure(f"{name}, {artifact.stem}, {which}: {said}")
        if exports.get((False, "clean")) != exports.get((True, "clean")):
            raise Failure(f"{name}: --on-nonfinite changes the bits of finite steps")
        if exports[False, "gone"] != exports[True, "large"]:
            raise Failure(f"{name}: a step that is skipped changes parameters")
        print(f"{name}: a step is skipped, and its samples leave no trace")


def check_said(work, model, data):
    """What a training says that skips, stops, or knows nothing of it."""
    skips, plain = artifacts_of(work, "one device")
    stops = work / "stops.partita"
    compile_model(model, stops, *FLAGS, "--devices", 2, "--on-nonfinite", "stop")
    lines = [json.loads(line) for line in train(skips, *data["infinite"], "--json", "--report-every", 1, steps=4).splitlines() if line.startswith("{")]
    if [line.get("skipped") for line in lines] != [None, None, 1, 1]:
        raise Failure(f"skipped: {lines}")
    origin = rf"the first op with such a result is '[^']+' on cpu:[01], in micro-batch {BAD_MICRO_BATCH}"
    place = f"the input 'image' has a number that is not finite in sample {BAD_MICRO_BATCH * BATCH + 1} of the step"
    step = BAD_STEP + 1
    for artifact, which, expected, status in (
            (skips, "infinite", rf"remark: the (loss|norm of the gradients) of step {step} is not finite: {place}\. The step is skipped", 0),
            (skips, "large", rf"remark: the (loss|norm of the gradients) of step {step} is not finite: {origin}\. The step is skipped", 0),
            (stops, "infinite", rf"error: the (loss|norm of the gradients) of step {step} is not finite: {place}\. No parameter has changed", 1),
            (stops, "large", rf"error: the (loss|norm of the gradients) of step {step} is not finite: {origin}\. No parameter has changed", 1),
            (plain, "large", rf"error: the loss of step {step} is not finite, and the parameters are lost\..* With --on-nonfinite of partita-compile", 1)):
        said = train(artifact, *data[which], expect=status)
        if not re.search(expected, said):
            raise Failure(f"{artifact.stem}, {which}: {said}\nand not: {expected}")
    print("inputs, ops and micro-batches are named")


def check_resumed(work, model, data):
    artifact, folder = work / "stops.partita", work / "run"
    undisturbed, resumed = work / "undisturbed.onnx", work / "resumed.onnx"
    train(artifact, *data["clean"], "--export", undisturbed)
    said = train(artifact, *data["large"], "--checkpoint", folder, ranks=2, expect=1)
    if "A checkpoint has been written; --resume goes on before this step" not in said or not (folder / f"step-{BAD_STEP:08}").is_dir():
        raise Failure(f"no checkpoint: {said}")
    train(artifact, *data["clean"], "--checkpoint", folder, "--resume", "--export", resumed, ranks=2)
    if undisturbed.read_bytes() != resumed.read_bytes():
        raise Failure("the resumed training has other bits")
    print("a training that has stopped goes on")


def test(work):
    model, data = prepare(work)
    check_skipped(work, model, data)
    check_said(work, model, data)
    check_resumed(work, model, data)



if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: test(pathlib.Path(folder)), use_workers=True, optimize=8)
