#!/usr/bin/env python3
"""PyTorch's own schedules, as files: for 2, 4 and 8 devices and 2 to 32 micro-batches, each table that torch.distributed.pipelining makes is given to
`partita-compile --schedule FILE`, and the plan trains a chain of small layers for two steps.

    torch_orders.py [--devices 2 4 8] [--micro-batches 2 3 4 8 16 32] [--only WORD]

A table whose micro-batches ascend has to train to the bytes of one device. One that does not has to be remarked upon, and to train to numbers within 1e-6.
Where Partita has a schedule of that name, its order is compared with the table's, device by device: "same" or "other". Needs torch, numpy and onnx.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper
from torch.distributed.pipelining import schedules

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
WIDTH, BATCH, STEPS = 4, 2, 2

# Torch's class, stages of a device, and Partita's schedule of that name.
KINDS = (
    ("ScheduleGPipe", 1, "gpipe"),
    ("Schedule1F1B", 1, "1f1b"),
    ("ScheduleLoopedBFS", 2, "looped"),
    ("ScheduleInterleaved1F1B", 2, "interleaved"),
    ("ScheduleInterleavedZeroBubble", 2, None),
    ("ScheduleZBVZeroBubble", 2, "zb_v"),
    ("ScheduleDualPipeV", 2, None),
)


def fake_stage(index, stages, ranks, rank):
    """As much of a stage as a schedule looks at to make its table."""
    class Stage:
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return None
    stage = Stage()
    stage.stage_index, stage.num_stages, stage.group_size, stage.group_rank = index, stages, ranks, rank
    stage.is_first, stage.is_last, stage.has_backward = index == 0, index == stages - 1, True
    stage.submod, stage.device, stage.stage_index_to_group_rank = None, "cpu", {}
    return stage


def table_of(kind, laps, ranks, micro):
    """The rows of a table, with a cell for each time; null if torch makes none of that shape."""
    made, stages = getattr(schedules, kind), ranks * laps
    try:
        if issubclass(made, schedules.PipelineScheduleSingle):
            schedule = made(fake_stage(0, stages, ranks, 0), micro)
            order = schedule._get_pipeline_order()
        else:
            isV = kind in ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")
            mine = [0, stages - 1] if isV else list(range(0, stages, ranks))
            order = made([fake_stage(i, stages, ranks, 0) for i in mine[:laps]], micro).pipeline_order
    except (ValueError, AssertionError) as error:
        return None, str(error).splitlines()[0][:80]
    rows = [["" if action is None else str(action) for action in order[rank]] for rank in range(ranks)]
    if kind == "Schedule1F1B":  # its table has 1F1, 1F2, ... for the forwards of the last rank, where torch runs 1F0, 1F1, ...
        first = f"{ranks - 1}F"
        rows[-1] = [f"{first}{int(cell.removeprefix(first)) - 1}" if cell.startswith(first) else cell for cell in rows[-1]]
    return rows, ""


def write_model(path, layers):
    noise = np.random.default_rng(5)
    nodes, inits, last = [], [], "x"
    for i in range(layers):
        inits.append(numpy_helper.from_array((0.5 * noise.standard_normal((WIDTH, WIDTH))).astype(np.float32), f"w{i}"))
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"h{i}"], name=f"matmul{i}"), helper.make_node("Tanh", [f"h{i}"], [f"t{i}"], name=f"tanh{i}")]
        last = f"t{i}"
    values = [helper.make_tensor_value_info(name, 1, [BATCH, WIDTH]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], inits)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return last


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stderr[-1500:]}")
    return done.stdout + done.stderr


def orders_of(plan):
    """The units of each program of a plan, in order, without those of a step."""
    orders, program = {}, None
    for line in plan.splitlines():
        if found := re.search(r"plan\.program @(\w+)", line):
            program = orders.setdefault(found[1], [])
        elif (found := re.search(r"plan\.run @([FBIW]\w*) micro_batch (\d+)", line)) and program is not None:
            program.append(f"{found[1]}.{found[2]}")
    return [order for order in orders.values() if order]


def is_same(theirs, ours):
    """Whether orders are the same. Ours may have the last stage's backward in its forward, where nobody waits for it."""
    known = {unit.split(".")[0] for order in ours for unit in order}
    return [[unit for unit in order if unit.split(".")[0] in known] for order in theirs] == ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[2, 3, 4, 8, 16, 32])
    parser.add_argument("--only", default="", help="schedules of torch whose name holds this word")
    options = parser.parse_args()
    counts, wrong = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, table, artifact = folder / "chain.onnx", folder / "orders.csv", folder / "chain.partita"
        y = write_model(model, 2 * max(options.devices))
        noise, rows = np.random.default_rng(6), STEPS * BATCH * max(options.micro_batches)
        for name in ("x", "target"):
            np.save(folder / f"{name}.npy", noise.standard_normal((rows, WIDTH)).astype(np.float32))
        learn = ("--loss", f"mse:{y}:target", "--optimizer", "sgd,learning_rate=0.1")
        data = ("--data", f"x={folder}/x.npy", "--data", f"target={folder}/target.npy", "--order", "in-order", "--steps", STEPS, "--threads", 1, "--no-pin")

        def train(*flags):
            said = call(BIN / "partita-compile", model, *learn, *flags, "-o", artifact)
            call(BIN / "partita-run", artifact, "--train", *data, "--export", folder / "out.onnx")
            return said, (folder / "out.onnx").read_bytes()

        def weights(data):
            return [numpy_helper.to_array(tensor) for tensor in onnx.load_from_string(data).graph.initializer]

        print(f"{'schedule':<30} {'stages':>6} {'devices':>7} {'micro-batches':>13}  {'bytes':<8} {'order':<6}")
        for micro in options.micro_batches:
            _, whole = train("--micro-batches", micro)
            for kind, laps, ours in KINDS:
                if options.only not in kind:
                    continue
                for ranks in options.devices:
                    order, refused = table_of(kind, laps, ranks, micro)
                    where = f"{kind:<30} {laps * ranks:>6} {ranks:>7} {micro:>13}  "
                    if order is None:
                        print(where + f"torch makes none: {refused}")
                        counts["none by torch"] += 1
                        continue
                    table.write_text("".join(",".join(row) + "\n" for row in order))
                    try:
                        said, found = train("--devices", ranks, "--schedule", table)
                    except RuntimeError as error:
                        print(where + f"FAILED: {error}")
                        wrong += 1
                        continue
                    descends = "does not take all micro-batches in ascending order" in said
                    apart = max(np.abs(a - b).max() for a, b in zip(weights(found), weights(whole)))
                    is_right = found == whole or (descends and apart < 1e-6)
                    text = "equal" if found == whole else f"{apart:.1e}"
                    same = ""
                    if ours and is_right:
                        flags = (model, *learn, "--devices", ranks, "--emit", "plan")
                        plans = [call(BIN / "partita-compile", *flags, "--schedule", what, *more)
                                 for what, more in ((table, ()), (ours, ("--micro-batches", micro)))]
                        same = "same" if is_same(*map(orders_of, plans)) else "other"
                    print(where + f"{text:<8} {same:<6}{' descends' if descends else ''}{'' if is_right else ' WRONG'}", flush=True)
                    counts["descending" if descends else "ascending"] += 1
                    if same:
                        counts[f"{ours} {same}"] += 1
                    wrong += not is_right
    print(", ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
