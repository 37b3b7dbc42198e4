#!/usr/bin/env python3
"""What was measured of a model's work reaches the compiler: the same work has the same key before and after stages are cut and with any number of
devices, its prediction is that by rates times what was measured of it, and the stages' times are sums of that. Measurements of another machine,
other numbers of cores and broken files are refused, and leave the file as it was."""

import json
import pathlib
import re
import tempfile

import numpy as np

from harness import BIN, REPOSITORY, Failure, compile_model, main, run

MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"
RUN = BIN / "partita-run"


def instructions(machine, *flags):
    """[(key, predicted, by rates)] of the units' work, and the sums by stage. Of a training, that of the plan that learns, which is printed first."""
    text = run([BIN / "partita-compile", MODEL, "--dim", "batch=16", "--machine", machine, "--threads", "1", "--emit", "plan", *flags])
    work, sums, at = [], [], None
    modules = [match.start() for match in re.finditer("^module", text, re.MULTILINE)]
    for line in text[: (modules[1:] or [len(text)])[0]].splitlines():
        if match := re.search(r"plan\.unit .* ns (\d+)", line):
            sums.append([int(match[1]), 0])
            at = sums[-1]
        elif "plan.load" in line:
            at = None
        elif at and ("plan.call" in line or "plan.dispatch" in line):
            values = {name: int(re.search(rf"{name} = (-?\d+) ", line)[1]) for name in ("predicted_ns", "modelled_ns", "work_key")}
            work.append((values["work_key"] % 2**64, values["predicted_ns"], values["modelled_ns"]))
            at[1] += values["predicted_ns"]
    if not work:
        raise Failure("no work in the plan:\n" + text[:2000])
    for duration, total in sums:
        if not total <= duration <= total + 1000 + len(work):
            raise Failure(f"a stage is said to take {duration} ns, its work {total}")
    return work


def check_ratios(work, times, what):
    for key, predicted, rated in work:
        measured, expected = times[f"{key:016x}"]
        ratio = measured / expected
        if abs(predicted - rated * ratio) > 2 + ratio:  # whole nanoseconds
            raise Failure(f"{what}: {key:016x} was measured as {measured} where rates say {expected}; predicted {predicted}, by rates {rated}")


def check(work):
    machine = work / "machine.json"
    run(["taskset", "-c", "0", RUN, "--calibrate", machine, "--calibrate-seconds", "0.1"])
    flags = ("--dim", "batch=16", "--machine", machine, "--threads", "1")
    one, two = work / "one.partita", work / "two.partita"
    compile_model(MODEL, one, *flags)
    first = instructions(machine)
    if any(predicted != rated for _, predicted, rated in first):
        raise Failure("nothing was measured of the model, and yet rates are corrected")

    def measure(artifact, *more, **options):
        return run([RUN, artifact, "--calibrate", machine, "--threads", "1", "--seconds", "0.05", "--no-pin", *more], **options)

    report = json.loads(measure(one, "--json"))
    if report["kinds_of_work"] != len({key for key, *_ in first}) or report["median_ms"] <= 0:
        raise Failure(f"{len(first)} pieces of work, and this report: {report}")
    known = json.loads(machine.read_text())["teams"][0]["work"]
    if list(known) != ["1"]:
        raise Failure(f"measured with one device, and times are there for {list(known)}")
    check_ratios(instructions(machine), known["1"], "one device")
    # The same work on two devices, which nobody has measured there.
    cut = instructions(machine, "--devices", "2")
    if {key for key, *_ in cut} != {key for key, *_ in first}:
        raise Failure("work has other keys on two devices")
    check_ratios(cut, known["1"], "two devices, measured on one")
    compile_model(MODEL, two, *flags, "--devices", "2")
    if "kinds of work" not in measure(two):
        raise Failure("no report")
    known = json.loads(machine.read_text())["teams"][0]["work"]
    if list(known) != ["1", "2"]:
        raise Failure(f"measured with one and two devices, and times are there for {list(known)}")
    check_ratios(instructions(machine, "--devices", "2"), known["2"], "two devices")
    check_ratios(instructions(machine), known["1"], "one device again")

    # The plan that learns, by some steps of training.
    learn = ("--loss", "cross_entropy:probabilities:label", "--optimizer", "adamw", "--micro-batches", "3")
    compile_model(MODEL, work / "learn.partita", *flags, *learn)
    np.save(work / "image.npy", np.zeros((48, 1, 8, 8), np.float32))
    np.save(work / "label.npy", np.zeros(48, np.int64))
    steps = ("--train", "--data", f"image={work}/image.npy", "--data", f"label={work}/label.npy", "--steps", "4")
    if "kinds of work" not in run([RUN, work / "learn.partita", *steps, "--threads", "1", "--no-pin", "--calibrate", machine]):
        raise Failure("no report of a training")
    known, learned = json.loads(machine.read_text())["teams"][0]["work"], instructions(machine, *learn)
    if len({key for key, *_ in learned} & {int(key, 16) for key in known["1"]}) < 20:
        raise Failure(f"of a training's work little is known: {known['1']}")
    check_ratios([each for each in learned if f"{each[0]:016x}" in known["1"]], known["1"], "a training")

    before = machine.read_bytes()
    for what, words, command in [
        ("other cores", "give --threads 1", [RUN, one, "--calibrate", machine, "--threads", "2"]),
        ("no file", "first write it with partita-run --calibrate", [RUN, one, "--calibrate", work / "none.json"]),
        ("training, with lines of JSON", "leave out --json to --calibrate", [RUN, work / "learn.partita", *steps, "--calibrate", machine, "--json"]),
        ("benchmark", "leave out --benchmark", [RUN, one, "--calibrate", machine, "--benchmark"]),
    ]:
        text = run(command, expect=1)
        if words not in text:
            raise Failure(f"{what}: {text}")
    other = work / "other.partita"
    compile_model(MODEL, other, "--dim", "batch=16")
    if "compile it again with --machine" not in measure(other, expect=1):
        raise Failure("an artifact that knows nothing of the machine was measured")
    if machine.read_bytes() != before:
        raise Failure("a refused measurement changed the file")
    for what, old, new in [("cut off", before[:-20], None), ("no times", before, (b'"work": {', b'"work": [{')), ("other version", before, (b": 4,", b": 3,"))]:
        machine.write_bytes(old.replace(*new) if new else old)
        broken = machine.read_bytes()
        if "partita-run --calibrate" not in measure(one, expect=1):
            raise Failure(f"{what}: the message does not say what to do")
        if "partita-run --calibrate" not in compile_model(MODEL, other, *flags, expect=1):
            raise Failure(f"{what}: the compiler's message does not say what to do")
        if machine.read_bytes() != broken:
            raise Failure(f"{what}: a refused file was written")
    print(f"{len(first)} pieces of work are predicted as they were measured, on one device and on two")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)))
