#!/usr/bin/env python3
"""Indices that are out of range: an error with op, node, position, value and what is allowed, for every op that takes some, with i32 and i64, below,
above and far away; none for the first and the last index that are allowed. Nothing else fails with them: a session goes on, samples of others are
answered. On one device and two, with stages, replicas, tensors that are cut, processes, and as --reference. On the kind of devices that PARTITA_TEST_TARGET says."""

import array
import math
import os
import pathlib
import re
import struct
import sys
import tempfile

from harness import BIN, SKIPPED, Failure, compile_model, main, run, run_artifact

KINDS = {"float": ("f4", "f"), "int64": ("i8", "q"), "int32": ("i4", "i")}


def write_tensor(path, kind, shape, values):
    descr, code = KINDS[kind]
    header = f"{{'descr': '<{descr}', 'fortran_order': False, 'shape': ({''.join(f'{s}, ' for s in shape)}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array(code, values).tobytes())


def read_floats(path, count):
    values = array.array("f")
    values.frombytes(path.read_bytes()[-4 * count :])
    return values


def waves(count, seed=0):
    return [round(math.sin(seed + 1.7 * i), 4) for i in range(count)]


def size_of(shape):
    return math.prod(shape)


def position(place, shape):
    at = []
    for size in reversed(shape):
        at.insert(0, place % size)
        place //= size
    return ", ".join(map(str, at))


class Case:
    """A model of one node, its operand of indices, and for each index the least and the largest that is allowed (by its place in the last dimension, or
    one pair for all)."""

    def __init__(self, op, arguments, inputs, operand, result, allowed, attributes="", opset=20, types=("int64", "int32")):
        self.op, self.arguments, self.inputs, self.operand, self.result = op, arguments, inputs, operand, result
        self.allowed, self.attributes, self.opset, self.types = allowed, attributes, opset, types

    def text(self, kind):
        def typed(name, shape):
            return (kind if name == "i" else "float") + (f"[{', '.join(map(str, shape))}]" if shape else "") + f" {name}"

        inputs = ", ".join(typed(name, shape) for name, shape in self.inputs.items())
        outputs = self.result.split(" ")[-1]
        return (f'<ir_version: 10, opset_import: ["" : {self.opset}]>\ncase ({inputs}) => ({self.result}) {{\n'
                f"  [picks] {outputs} = {self.op} {self.attributes} ({self.arguments})\n}}\n")


CASES = [
    Case("Gather", "x, i", {"x": (7, 3), "i": (2, 5)}, "indices", "float[2, 5, 3] y", [(-7, 6)]),
    Case("Gather", "x, i", {"x": (2, 6, 3), "i": (4,)}, "indices", "float[2, 4, 3] y", [(-6, 5)], "<axis = 1>"),
    Case("Gather", "x, i", {"x": (5, 2), "i": ()}, "indices", "float[2] y", [(-5, 4)]),
    Case("GatherElements", "x, i", {"x": (4, 6), "i": (3, 6)}, "indices", "float[3, 6] y", [(-4, 3)]),
    Case("GatherElements", "x, i", {"x": (4, 6), "i": (4, 9)}, "indices", "float[4, 9] y", [(-6, 5)], "<axis = -1>"),
    Case("GatherND", "x, i", {"x": (3, 5, 2), "i": (4, 2)}, "indices", "float[4, 2] y", [(-3, 2), (-5, 4)], types=("int64",)),
    Case("GatherND", "x, i", {"x": (2, 3, 5), "i": (2, 4, 1)}, "indices", "float[2, 4, 5] y", [(-3, 2)], "<batch_dims = 1>", types=("int64",)),
    Case("ScatterElements", "x, i, u", {"x": (5, 4), "i": (3, 4), "u": (3, 4)}, "indices", "float[5, 4] y", [(-5, 4)]),
    Case("ScatterElements", "x, i, u", {"x": (5, 4), "i": (5, 2), "u": (5, 2)}, "indices", "float[5, 4] y", [(-4, 3)],
         '<axis = 1, reduction = "add">'),
    Case("ScatterND", "x, i, u", {"x": (5, 4, 2), "i": (3, 2), "u": (3, 2)}, "indices", "float[5, 4, 2] y", [(-5, 4), (-4, 3)], types=("int64",)),
    Case("ScatterND", "x, i, u", {"x": (6, 2), "i": (3, 1), "u": (3, 2)}, "indices", "float[6, 2] y", [(-6, 5)], '<reduction = "max">',
         types=("int64",)),
    Case("TensorScatter", "x, u, i", {"x": (2, 3, 6, 2), "u": (2, 3, 2, 2), "i": (2,)}, "write_indices", "float[2, 3, 6, 2] y", [(0, 4)], opset=24,
         types=("int64",)),
    Case("ReverseSequence", "x, i", {"x": (4, 3), "i": (3,)}, "sequence_lens", "float[4, 3] y", [(0, 4)], types=("int64",)),
    Case("GRU", "x, w, r, , i", {"x": (4, 3, 2), "w": (1, 6, 2), "r": (1, 6, 2), "i": (3,)}, "sequence_lens", "float[4, 1, 3, 2] y", [(0, 4)],
         "<hidden_size = 2>", types=("int32",)),
    Case("RoiAlign", "x, b, i", {"x": (2, 1, 4, 4), "b": (3, 4), "i": (3,)}, "batch_indices", "float[3, 1, 2, 2] y", [(0, 1)],
         "<output_height = 2, output_width = 2, sampling_ratio = 1>", types=("int64",)),
    Case("NegativeLogLikelihoodLoss", "x, i", {"x": (3, 4, 2), "i": (3, 2)}, "target", "float y", [(0, 3)], '<reduction = "mean">'),
    Case("SoftmaxCrossEntropyLoss", "x, i", {"x": (3, 4), "i": (3,)}, "labels", "float y", [(0, 3)]),
]


def expect(text, *needles):
    for needle in needles:
        if needle not in text:
            raise Failure(f"the run does not say {needle!r}:\n{text}")


def far_away(kind):
    return [2**31 - 1, -(2**31)] if kind == "int32" else [2**62, -(2**63), 2**32]


def check_case(case, kind, work):
    model, artifact = work / "case.onnxtxt", work / "case.partita"
    model.write_text(case.text(kind))
    compile_model(model, artifact)
    shape = case.inputs["i"]
    count, ranges = size_of(shape), case.allowed
    for seed, (name, given) in enumerate(case.inputs.items()):
        if name != "i":
            write_tensor(work / f"{name}.npy", "float", given, waves(size_of(given), seed))

    def attempt(values, status):
        write_tensor(work / "i.npy", kind, shape, values)
        inputs = [f"--input={name}={work / name}.npy" for name in case.inputs]
        return run_artifact(artifact, *inputs, "--output", work / "out", "--threads", 1, expect=status)

    def edge(high):
        return [ranges[at % len(ranges)][high] for at in range(count)]

    attempt(edge(0), 0)
    attempt(edge(1), 0)
    for place in {0, count // 2, count - 1}:
        low, high = ranges[place % len(ranges)]
        for value in [low - 1, high + 1, *far_away(kind)]:
            values = edge(1)
            values[place] = value
            at = f" at [{position(place, shape)}]" if shape else ""
            expect(attempt(values, 1), "error: ", f"{case.op} 'picks': {value}{at} of its {case.operand} 'i' is out of range: {low} to {high} are allowed")


def check_known(work):
    """Indices that the model has: an error when compiling."""
    model = work / "known.onnxtxt"
    model.write_text("""<ir_version: 10, opset_import: ["" : 20]>
known (float[4, 2] x) => (float[3, 2] y) <int64[3] i = {0, -4, 4}> { [picks] y = Gather(x, i) }
""")
    text = run([BIN / "partita-compile", model, "-o", work / "known.partita"], expect=1)
    expect(text, "picks", "Gather: 4 at [2] of its indices 'i' is out of range: -4 to 3 are allowed")


# A model whose samples are rows of indices, with enough behind them for two stages.
WORDS, WIDTH, LENGTH, SAMPLES = 40, 16, 5, 11
BAD_SAMPLE, BAD_PLACE = 7, 3


def write_embedding(path):
    def weights(count, seed):
        return ", ".join(map(str, waves(count, seed)))

    path.write_text(f"""<ir_version: 10, opset_import: ["" : 20]>
embedding (int64[N, {LENGTH}] ids) => (float[N, {LENGTH}, {WIDTH}] y)
<float[{WORDS}, {WIDTH}] table = {{{weights(WORDS * WIDTH, 1)}}}, float[{WIDTH}, {WIDTH}] w1 = {{{weights(WIDTH * WIDTH, 2)}}},
 float[{WIDTH}, {WIDTH}] w2 = {{{weights(WIDTH * WIDTH, 3)}}}>
{{
  [embed] e = Gather(table, ids)
  m1 = MatMul(e, w1)
  t1 = Tanh(m1)
  m2 = MatMul(t1, w2)
  y = Tanh(m2)
}}
""")


ROWS = "mesh: {tensor: 2}\nshard: {table: [tensor, null]}\n"
COLUMNS = "mesh: {tensor: 2}\nshard: {table: [null, tensor]}\n"
SAMPLES_CUT = "mesh: {tensor: 2}\nshard: {ids: [tensor, null]}\n"
STAGES_AND_ROWS = "mesh: {stage: 2, tensor: 2}\nshard: {table: [tensor, null]}\n"
PLANS = {  # flags, partition file, processes
    "one": (("--dim", "N=1"), None, 0),
    "batch": (("--dim", "N=2", "--micro-batches", 2), None, 0),
    "reference": (("--dim", "N=2", "--reference"), None, 0),
    "stages": (("--dim", "N=2", "--devices", 2, "--micro-batches", 3), None, 0),
    "processes": (("--dim", "N=1", "--devices", 2, "--micro-batches", 2), None, 2),
    "data": (("--dim", "N=1", "--data-parallel", 2, "--micro-batches", 2), None, 0),
    "data-processes": (("--dim", "N=1", "--data-parallel", 2, "--micro-batches", 2), None, 2),
    "rows": (("--dim", "N=2"), ROWS, 0),
    "rows-processes": (("--dim", "N=2"), ROWS, 2),
    "columns": (("--dim", "N=2"), COLUMNS, 0),
    "samples": (("--dim", "N=2"), SAMPLES_CUT, 0),
    "both": (("--dim", "N=2", "--micro-batches", 2), STAGES_AND_ROWS, 0),
}


def check_plans(work):
    model = work / "embedding.onnxtxt"
    write_embedding(model)
    good = [(7 * i) % WORDS - (WORDS if i % 3 == 0 else 0) for i in range(SAMPLES * LENGTH)]
    shape, place = (SAMPLES, LENGTH), BAD_SAMPLE * LENGTH + BAD_PLACE
    write_tensor(work / "good.npy", "int64", shape, good)
    first = None
    for name, (flags, partition, ranks) in PLANS.items():
        artifact = work / f"{name}.partita"
        if partition:
            (work / "partition.yaml").write_text(partition)
            flags = (*flags, "--partition", work / "partition.yaml")
        compile_model(model, artifact, *flags)
        outputs = work / f"{name}-out"
        run_artifact(artifact, "--input", work / "good.npy", "--output", outputs, "--threads", 1, ranks=ranks)
        values = read_floats(outputs / "y.npy", SAMPLES * LENGTH * WIDTH)
        first = first or values
        if max(abs(a - b) for a, b in zip(first, values)) > 1e-5:
            raise Failure(f"{name}: other results than with one device")
        for value in (WORDS, -WORDS - 1, 2**40):
            bad = list(good)
            bad[place] = value
            write_tensor(work / "bad.npy", "int64", shape, bad)
            status, text = run_artifact(artifact, "--input", work / "bad.npy", "--output", outputs, "--threads", 1, ranks=ranks, expect=None)
            if status == 0:
                raise Failure(f"{name}: the run with the index {value} succeeded")
            before = re.search(r"after the first (\d+) samples: ", text)
            at = re.search(rf"Gather 'embed': {value} at \[(\d+), (\d+)\] of its indices 'ids' is out of range: -{WORDS} to {WORDS - 1} are allowed "
                           r"\(sample (\d+), micro-batch \d+\)", text)
            sample = BAD_SAMPLE - int(before[1] if before else 0)
            if not at or tuple(map(int, at.groups())) != (sample, BAD_PLACE, sample):
                raise Failure(f"{name}: the run with the index {value} says\n{text}")


def test():
    gpus = os.environ.get("PARTITA_TEST_TARGET", "").startswith("cuda")
    if gpus and not pathlib.Path(os.environ.get("LD_LIBRARY_PATH", ""), "libcuda.so.1").exists():
        print("skipped: no emulated GPUs")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_known(work)
        for case in CASES:
            for kind in case.types:
                check_case(case, kind, work)
        check_plans(work)


main(test, use_workers=True, optimize=8)
