#!/usr/bin/env python3
"""NaN in one sample: NaN in exactly those outputs that depend on it, through ReLU, MaxPool, Clip, Min and Max that library calls compute on their way
out; the same bytes with --strict-nan, on 1 and 2 devices, as threads and as MPI processes; a remark says that a step was computed again.

Where NaN comes from: a remark names the input and sample, the parameter, or the first op that made it, with device and micro-batch."""

import array
import math
import pathlib
import re
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
                again = "met NaN where" in said
                if again != (path == broken and not flags):
                    raise Failure(f"{devices} devices, {name}, {path.name}: the run says\n{said}")
                expect(said, f"output 'y' has NaN from sample {BROKEN} on: the input 'x' has NaN in sample {BROKEN}" if path == broken else None)
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


def expect(said, remark):
    """Whether a run says where NaN comes from, and nothing of it if `remark` is None."""
    found = [line for line in said.splitlines() if "has NaN" in line or "made NaN" in line]
    if len(found) != (remark is not None) or (remark and remark not in found[0]):
        raise Failure(f"not '{remark}', but\n{said}")


WIDTH = 8


def write_ops(path, body, weight="w1", value=None, kind="float"):
    """A model of products with two unit matrices, w1 and w2, around `body`, which makes `b` of `a`. One element of one of them is `value`."""
    def matrix(name):
        one = "15360" if kind == "float16" else "1.0"  # the text has the bits of halves
        unit = [one if i % (WIDTH + 1) == 0 else "0" for i in range(WIDTH * WIDTH)]
        if name == weight and value:
            unit[3] = value
        return f"{kind}[{WIDTH}, {WIDTH}] {name} = {{{', '.join(unit)}}}"

    path.write_text(f"""<ir_version: 10, opset_import: ["" : 20]>
nan ({kind}[N, {WIDTH}] x) => ({kind}[N, {WIDTH}] y) <{matrix("w1")}, {matrix("w2")}>
{{
  a = MatMul(x, w1)
  {body}
  c = MatMul(b, w2)
  p = Softmax(c)
  y = MatMul(p, w1)
}}
""")


def write_rows(path, bad=None, kind="f"):
    """Samples of numbers from 1 to 2; those of `bad` have another value as their third number."""
    values = [1 + (i % 7) / 8 for i in range(SAMPLES * WIDTH)]
    for sample, value in (bad or {}).items():
        values[sample * WIDTH + 2] = value
    write_npy(path, (SAMPLES, WIDTH))
    header = path.read_bytes()[: -4 * SAMPLES * WIDTH]
    if kind == "e":
        header = header.replace(b"<f4", b"<f2")
    path.write_bytes(header + struct.pack(f"<{len(values)}{kind}", *values))


def check_origins(work):
    """NaN that an op makes of numbers."""
    model, rows = work / "ops.onnxtxt", work / "rows.npy"
    bodies = {
        "Log": ("b = Log(a)", {5: -1.0, 7: -2.0}),
        "Sqrt": ("n = Add(a, a) r = Sqrt(n) b = Mul(r, r)", {5: -1.0}),
        "Softmax": ("q = Exp(a) b = Identity(q)", {5: 1000.0, 6: 1000.0}),
    }
    for op, (body, bad) in bodies.items():
        write_ops(model, body)
        for devices, count in ((1, 1), (2, 2), ("remote-cpu:2", 2)):
            artifact = work / "ops.partita"
            program = "partita-test-run" if count != devices else "partita-run"
            compile_model(model, artifact, "--dim", "N=1", "--devices", devices, "--micro-batches", 2)
            for ranks in (0, count):
                write_rows(rows)
                expect(run_artifact(artifact, "--input", rows, "--threads", 1, ranks=ranks, program=program), None)
                write_rows(rows, bad)
                said = run_artifact(artifact, "--input", rows, "--threads", 1, ranks=ranks, program=program)
                expect(said, "output 'y' has NaN from sample 5 on: the first op that made NaN is '")
                if not re.search(rf"the first op that made NaN is '[^']*{op}[^']*' on (remote-)?cpu:[01], in micro-batch 1 of step 2$", said, re.M):
                    raise Failure(f"{op} on {devices} devices: {said}")


def check_parameter(work):
    """NaN in a parameter: it is named, with the op that reads it, although the parameter is packed when it is loaded."""
    model, rows, artifact = work / "parameter.onnxtxt", work / "rows.npy", work / "parameter.partita"
    write_rows(rows)
    write_ops(model, "b = Tanh(a)", weight="w2", value="nan")
    compile_model(model, artifact, "--dim", "N=1", "--micro-batches", 2)
    said = run_artifact(artifact, "--input", rows, "--threads", 1)
    expect(said, "output 'y' has NaN from sample 0 on: the parameter 'w2' of '")


def check_halves(work):
    model, rows, artifact = work / "halves.onnxtxt", work / "halves.npy", work / "halves.partita"
    write_ops(model, "b = Log(a)", kind="float16")
    compile_model(model, artifact, "--dim", "N=1", "--micro-batches", 2)
    for bad, remark in ((None, None), ({5: -1.0}, "from sample 5 on: the first op that made NaN is '"), ({4: math.nan}, "the input 'x' has NaN in sample 4")):
        write_rows(rows, bad, kind="e")
        expect(run_artifact(artifact, "--input", rows, "--threads", 1), remark)


def check_masked(work):
    """NaN that does not get to an output is only mentioned by what has met it."""
    model, rows, artifact = work / "masked.onnxtxt", work / "rows.npy", work / "masked.partita"
    write_ops(model, "z = Sub(a, a) g = Greater(a, z) l = Log(a) b = Where(g, l, z)")
    compile_model(model, artifact, "--dim", "N=1", "--micro-batches", 2)
    write_rows(rows, {5: -1.0})
    said = run_artifact(artifact, "--input", rows, "--threads", 1)
    if "the output" in said:
        raise Failure(said)


def test():
    with tempfile.TemporaryDirectory() as work:
        check(pathlib.Path(work))
        check_origins(pathlib.Path(work))
        check_parameter(pathlib.Path(work))
        check_halves(pathlib.Path(work))
        check_masked(pathlib.Path(work))


main(test, use_workers=True)  # compile for remote-cpu
