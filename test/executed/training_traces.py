#!/usr/bin/env python3
"""What devices did in a training, by its trace: each unit of a step once, in the order of the schedule, with no more micro-batches under way than it
has, and every unit after what it needs."""

import collections
import itertools
import json
import pathlib
import sys
import tempfile

from harness import SKIPPED, Failure, main, run_artifact

try:
    import numpy  # noqa: F401
    from training import write_data
    from training_processes import case, compile_case
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

STEPS, STAGES, MICRO_BATCHES = 4, 4, 8


def gpipe(stage):
    """All forward, then all backward."""
    return [f"F{stage} #{m}" for m in range(MICRO_BATCHES)] + [f"B{stage} #{m}" for m in range(MICRO_BATCHES)]


def one_forward_one_backward(stage):
    """As many forward as stages follow, then a forward and a backward in turn."""
    ahead = min(MICRO_BATCHES, STAGES - 1 - stage)
    order = [f"F{stage} #{m}" for m in range(ahead)]
    for m in range(MICRO_BATCHES):
        order += [f"F{stage} #{m + ahead}"] if m + ahead < MICRO_BATCHES else []
        order.append(f"B{stage} #{m}")
    return order


# How many micro-batches a stage holds at most, and its order where the literature has one.
SCHEDULES = {
    "gpipe": (lambda stage: MICRO_BATCHES, gpipe),
    "1f1b": (lambda stage: min(MICRO_BATCHES, STAGES - stage), one_forward_one_backward),
    "zb_h1": (lambda stage: min(MICRO_BATCHES, STAGES), None),
}


def units_of(trace):
    """By step and device: units as (name, begin, end), in the order of their beginnings. The last stage computes gradients with its forward."""
    found, colours = collections.defaultdict(list), collections.defaultdict(set)
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event["ph"] == "X" and event.get("cat") == "unit":
            colours[event["name"][0].replace("B", "I")].add(event["cname"])
            found[event["args"]["step"], event["tid"]].append((event["name"], event["ts"], event["ts"] + event["dur"]))
    if len(set().union(*colours.values())) != len(colours) or any(len(each) != 1 for each in colours.values()):
        raise Failure(f"phases have the colours {dict(colours)}")
    return {key: sorted(units, key=lambda unit: unit[1]) for key, units in found.items()}


def check_order(name, stage, units):
    """The order of a stage in a step."""
    held, order = SCHEDULES[name]
    names = [unit for unit, _, _ in units if unit[0] in "FBIW"]
    # What a unit does after its values are sent follows at once.
    for before, late in zip(["", *names], names):
        if "." in late and before.split(".")[0].split(" ")[0] + before[before.index(" "):] != late.split(".")[0] + late[late.index(" "):]:
            raise Failure(f"{name}: stage {stage} computes {late} after {before}")
    names = [unit for unit in names if "." not in unit]
    if len(set(names)) != len(names):
        raise Failure(f"{name}: stage {stage} computes a unit twice: {names}")
    for letter in "FBIW":
        numbers = [int(unit.split("#")[1]) for unit in names if unit[0] == letter]
        if numbers and numbers != list(range(MICRO_BATCHES)):
            raise Failure(f"{name}: {letter}{stage} has micro-batches {numbers}")
    # The last unit of a micro-batch frees what its forward kept. On the last stage that is the forward itself.
    last = {unit.split("#")[1]: index for index, unit in enumerate(names)}
    most = max(sum(1 for unit in names[: index + 1] if unit[0] == "F" and last[unit.split("#")[1]] >= index) for index in range(len(names)))
    if most > held(stage):
        raise Failure(f"{name}: stage {stage} holds {most} micro-batches, not {held(stage)}: {names}")
    if order and any(unit[0] == "B" for unit in names) and names != order(stage):
        raise Failure(f"{name}: stage {stage} has the order {names}, not {order(stage)}")


def check_needs(name, by_device):
    """A forward begins after that of the stage before, a backward after that of the stage behind."""
    when = {unit: (begin, end) for units in by_device.values() for unit, begin, end in units}
    for stage, m in itertools.product(range(1, STAGES), range(MICRO_BATCHES)):
        if when[f"F{stage} #{m}"][0] < when[f"F{stage - 1} #{m}"][1]:
            raise Failure(f"{name}: F{stage} of micro-batch {m} begins before F{stage - 1} has ended")
    for stage in range(STAGES):
        updates = [units for units in by_device.values() if any(unit.startswith(f"U{stage} ") for unit, _, _ in units)]
        if len(updates) != 1 or not updates[0][-1][0].startswith("U"):
            raise Failure(f"{name}: stage {stage} is not updated once, at the end")


def check(work):
    which = case("mnist-momentum", MICRO_BATCHES)
    data = write_data(work, which, "f32")
    trace = work / "trace.json"
    for name in SCHEDULES:
        artifact = compile_case(work, which, work / "piped.partita", "--devices", STAGES, "--schedule", name)
        said = run_artifact(artifact, "--train", *data, "-t", 1, "--order", "in-order", "--steps", STEPS, "--profile", trace, "--profile-table", alone=True)
        if f"medians of {STEPS - 1} steps" not in said or "samples were waited for" not in said:
            raise Failure(f"{name}: --profile-table says\n{said}")
        units = units_of(trace)
        steps = sorted({step for step, _ in units})
        if steps != list(range(1, STEPS)):
            raise Failure(f"{name}: the trace has the steps {steps}")
        for step in steps:
            by_device = {device: found for (of, device), found in units.items() if of == step}
            if len(by_device) != STAGES:
                raise Failure(f"{name}: {len(by_device)} devices did something")
            for device, found in by_device.items():
                check_order(name, device, found)
            check_needs(name, by_device)
    print(f"{len(SCHEDULES)} schedules ran in their order")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)))
