#!/usr/bin/env python3
"""What half floats cost on a CPU: a small transformer and a small CNN in f32, f16 and bf16, in turns, beside ONNX Runtime's f32 and f16.

    halves.py [--threads 1] [--turns 15] [--width 384] [--layers 4] [--keep FOLDER] [NAME ...]

Says medians and the least in ms, and the ratio of each to Partita's f32 turn by turn: its median and quartiles. NAME: only models whose names contain one of these.
`make` is used by test/executed/half_floats.py, too. Needs onnx, onnxruntime and numpy.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
SECONDS = 0.4  # a measurement


class Graph:
    """A model in one float type; weights of one seed, so that all types have the same but for rounding."""

    def __init__(self, kind):
        self.kind, self.nodes, self.weights = TYPES[kind], [], []
        self.generator = np.random.default_rng(0)

    def constant(self, values):
        name = f"w{len(self.weights)}"
        array = helper.make_tensor(name, self.kind, np.shape(values), np.asarray(values, np.float32).ravel())
        self.weights.append(array)
        return name

    def weight(self, *shape, scale=None):
        return self.constant(self.generator.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0] if len(shape) == 2 else np.prod(shape[1:]))))

    def integers(self, *values):
        name = f"w{len(self.weights)}"
        self.weights.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def node(self, op, *inputs, **attributes):
        result = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [result], name=result, **attributes))
        return result

    def linear(self, x, rows, columns):
        return self.node("Add", self.node("MatMul", x, self.weight(rows, columns)), self.weight(columns, scale=0.1))

    def norm(self, x, width):
        return self.node("LayerNormalization", x, self.constant(1 + 0.1 * self.generator.standard_normal(width)), self.weight(width, scale=0.1), axis=-1)

    def model(self, shape, result, sizes):
        x = helper.make_tensor_value_info("x", self.kind, shape)
        y = helper.make_tensor_value_info(result, self.kind, sizes)
        graph = helper.make_graph(self.nodes, "halves", [x], [y], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def transformer(kind, width=384, layers=4, tokens=128, head=64):
    g = Graph(kind)
    heads = width // head
    x = "x"
    for _ in range(layers):
        n = g.norm(x, width)
        q, k, v = (g.node("Transpose", g.node("Reshape", g.linear(n, width, width), g.integers(1, tokens, heads, head)), perm=[0, 2, 1, 3]) for _ in range(3))
        scores = g.node("Mul", g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2])), g.constant(1 / np.sqrt(head)))
        mixed = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
        mixed = g.node("Reshape", g.node("Transpose", mixed, perm=[0, 2, 1, 3]), g.integers(1, tokens, width))
        x = g.node("Add", x, g.linear(mixed, width, width))
        inner = g.node("Gelu", g.linear(g.norm(x, width), width, 4 * width), approximate="tanh")
        x = g.node("Add", x, g.linear(inner, 4 * width, width))
    return g.model([1, tokens, width], g.norm(x, width), [1, tokens, width])


def cnn(kind, size=96):
    g = Graph(kind)
    x, channels = "x", 3

    def conv(x, inner, outer, kernel, stride=1, group=1):
        y = g.node("Conv", x, g.weight(outer, inner // group, kernel, kernel, scale=np.sqrt(2 / (inner // group * kernel**2))), g.weight(outer, scale=0.1),
                   pads=[kernel // 2] * 4, strides=[stride] * 2, group=group)
        s = [g.constant(np.abs(1 + 0.1 * g.generator.standard_normal(outer))) for _ in range(2)]
        b = [g.weight(outer, scale=0.1) for _ in range(2)]
        return g.node("BatchNormalization", y, s[0], b[0], b[1], s[1])

    for outer, stride in ((32, 2), (64, 2), (64, 1), (128, 2), (128, 1)):
        y = g.node("Relu", conv(x, channels, outer, 3, stride))
        y = g.node("HardSwish", conv(y, outer, outer, 3, group=outer))
        y = conv(y, outer, outer, 1)
        x, channels = (g.node("Add", x, y) if channels == outer else y), outer
    y = g.node("Flatten", g.node("GlobalAveragePool", x))
    y = g.node("Softmax", g.linear(y, channels, 100), axis=-1)
    return g.model([1, 3, size, size], y, [1, 100])


def make(name, kind, **sizes):
    """The model in a type, its input in f32, and the name of its output."""
    model = {"transformer": transformer, "cnn": cnn}[name](kind, **sizes)
    onnx.checker.check_model(model)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return model, np.random.default_rng(1).standard_normal(shape).astype(np.float32), model.graph.output[0].name


def partita(artifact, threads):
    text = subprocess.run([BIN / "partita-run", artifact, "--benchmark", "--seconds", str(SECONDS), "--threads", str(threads), "--json"],
                          check=True, capture_output=True, text=True).stdout
    return json.loads(text)["median_ms"]


def peer(path, x, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def measure():
        times, end = [], time.perf_counter() + SECONDS
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            session.run(None, {"x": x})
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)

    measure()
    return measure


def bench(name, options, folder):
    sizes = {"width": options.width, "layers": options.layers} if name == "transformer" else {}
    measures = {}
    for kind in TYPES:
        model, x, _ = make(name, kind, **sizes)
        path, artifact = folder / f"{name}-{kind}.onnx", folder / f"{name}-{kind}.partita"
        onnx.save(model, path)
        subprocess.run([BIN / "partita-compile", path, "--threads", str(options.threads), "-o", artifact], check=True, capture_output=True)
        measures[kind] = lambda artifact=artifact: partita(artifact, options.threads)
        if kind != "bf16":  # it computes few ops of bf16 on CPUs
            measures["ONNX Runtime " + kind] = peer(str(path), x.astype(np.float32 if kind == "f32" else np.float16), options.threads)
    times = {what: [] for what in measures}
    for turn in range(options.turns):
        order = list(measures)
        for what in order[turn % len(order):] + order[: turn % len(order)]:
            times[what].append(measures[what]())
    print(f"{name}, {options.threads} thread(s), {options.turns} turns")
    for what, all_times in times.items():
        ratios = [t / base for t, base in zip(all_times, times["f32"])]
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"  {what:17} {statistics.median(all_times):8.3f} ms, least {min(all_times):8.3f}; times f32: {middle:.2f} ({low:.2f} to {high:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or pathlib.Path(folder)
        folder.mkdir(exist_ok=True, parents=True)
        for name in ("transformer", "cnn"):
            if not options.names or any(part in name for part in options.names):
                bench(name, options, folder)


if __name__ == "__main__":
    main()
