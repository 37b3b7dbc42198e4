#!/usr/bin/env python3
"""NaN in one sample: NaN in exactly those outputs that depend on it, through ReLU, MaxPool, Clip, Min and Max that library calls compute on their way
out; the same bytes with --strict-nan, on 1 and 2 devices, as threads and as MPI processes; a remark says that a step was computed again."""

import array
import math
import pathlib
import struct
import tempfile

from harness import Failure, compile_model, main, run_artifact, write_npy

SAMPLES, CHANNELS, SIZE = 9, 4, 4  # more than the steps that are under way at a time
BROKEN = 3  # the sample with NaN, at row 4 and column 4 of its first plane


def numbers(count, seed):
    return ", ".join(f"{math.sin(seed + 1.7 * i):.4f}" for i in range(count))


def write_model(path):
    path.write_text(f"""<ir_version: 10, opset_import: ["" : 20]>
nan (float[N, 3, 8, 8] x) => (float[N, {CHANNELS}, {SIZE}, {SIZE}] y)
<float[8, 3, 3, 3] w1 = {{{numbers(216, 1)}}}, float[{CHANNELS}, 8, 1, 1] w2 = {{{numbers(8 * CHANNELS, 2)}}},
 float[{CHANNELS}, {CHANNELS}, 1, 1] w3 = {{{numbers(CHANNELS * CHANNELS, 3)}}}, float low = {{-2.0}}, float high = {{6.0}}, float one = {{0.5}}>
{{
  c1 = Conv <pads = [1, 1, 1, 1]> (x, w1)
  r1 = Relu(c1)
  p1 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r1)
  c2 = Conv(p1, w2)
  k2 = Clip(c2, low, high)
  c3 = Conv(k2, w3)
  m3 = Max(c3, one)
  y = Min(m3, high)
}}
""")


def put_nan(path):
    """Into one element of a file that `write_npy` has written."""
    data = bytearray(path.read_bytes())
    begin = len(data) - 4 * SAMPLES * 3 * 64
    at = begin + 4 * (BROKEN * 3 * 64 + 4 * 8 + 4)
    data[at : at + 4] = struct.pack("<f", math.nan)
    path.write_bytes(data)


def read(path):
    values = array.array("f")
    values.frombytes(path.read_bytes()[-4 * SAMPLES * CHANNELS * SIZE * SIZE :])
    return values


def is_broken(i):
    row, column = i // SIZE % SIZE, i % SIZE
    return i // (CHANNELS * SIZE * SIZE) == BROKEN and row in (1, 2) and column in (1, 2)


def check(work):
    model, whole, broken = work / "nan.onnxtxt", work / "whole.npy", work / "broken.npy"
    write_model(model)
    for path in (whole, broken):
        write_npy(path, (SAMPLES, 3, 8, 8), seed=5)
    put_nan(broken)
    answers = {}
    for devices in (1, 2):
        artifact = work / f"{devices}.partita"
        compile_model(model, artifact, "--dim", "N=1", "--devices", devices, "--micro-batches", 2)
        for name, flags, ranks in (("threads", (), 0), ("strict", ("--strict-nan",), 0), ("processes", (), devices)):
            outputs = work / f"{devices}-{name}"
            for path in (whole, broken):
                said = run_artifact(artifact, "--input", path, "--output", outputs, "--threads", 1, *flags, ranks=ranks)
                again = "met NaN" in said
                if again != (path == broken and not flags):
                    raise Failure(f"{devices} devices, {name}, {path.name}: the run says\n{said}")
                answers[devices, name, path.stem] = read(outputs / "y.npy")
    first = answers[1, "threads", "broken"]
    for i, value in enumerate(first):
        if math.isnan(value) != is_broken(i):
            raise Failure(f"element {i} is {value}")
        if not is_broken(i) and value != answers[1, "threads", "whole"][i]:
            raise Failure(f"element {i} is {value}, and {answers[1, 'threads', 'whole'][i]} without NaN in another one")
    for (devices, name, which), values in answers.items():
        if values.tobytes() != answers[1, "threads", which].tobytes():
            raise Failure(f"{devices} devices, {name}, {which}: not the bytes of one device")


def test():
    with tempfile.TemporaryDirectory() as work:
        check(pathlib.Path(work))


main(test)
