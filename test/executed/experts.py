#!/usr/bin/env python3
"""Layers of experts, MoE and QMoE of com.microsoft: each activation, gates as pairs, as halves and as a third product; floats and weights of 2, 4 and 8 bits, with blocks and without;
few rows and many, and experts that nobody chooses. They give what NumPy gives, and what ONNX Runtime gives where it has the form; on one device, in stages, as --reference, without
library calls, and with the weights cut along each dimension: by experts, by rows and along the sum.

    experts.py [CASE...]"""

import os
import pathlib
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (tools/setup.sh installs it)")
    sys.exit(77)

from harness import BIN, TARGET, Failure, compile_model, main, run, run_artifact, some


def logistic(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * logistic(x), "identity": lambda x: x,
             "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))}


class Layer:
    """A model of one layer, and what it computes. `bits` of 0: floats. `router`: whether the weights of the chosen experts are an input of their own."""

    def __init__(self, name, rows=5, hidden=32, inner=16, experts=4, k=2, function="silu", fusion=0, gated=False, bias=True, normalize=0, bits=0, block=0, zeros=False, router=False,
                 shape=None, spread=True, runtime=True, **attributes):
        self.name, self.k, self.function, self.fusion, self.normalize, self.router, self.runtime = name, k, function, fusion, normalize, router, runtime
        self.said = attributes.pop("said", bits)  # of the weights, by the model
        self.noise, self.bits, self.block, self.zeros, self.attributes = np.random.default_rng(len(name)), bits, block, zeros, attributes
        self.x = self.noise.standard_normal(shape or (rows, hidden)).astype(np.float32)
        rows = self.x.size // hidden
        self.scores = self.noise.standard_normal((rows, experts)).astype(np.float32)
        if not spread:  # nobody chooses the first ones
            self.scores[:, : experts - k] -= 100
        self.chosen = self.noise.uniform(0.1, 1, (rows, experts)).astype(np.float32)
        self.weights, self.floats, self.biases = {}, {}, {}
        for layer, columns, depth in (("fc1", inner * (2 if fusion else 1), hidden), ("fc2", hidden, inner), ("fc3", inner if gated else 0, hidden)):
            if not columns:
                continue
            self.biases[layer] = self.noise.standard_normal((experts, columns)).astype(np.float32) * bias
            if bias:
                self.weights[f"{layer}_bias"] = self.biases[layer]
            self.floats[layer] = self.pack(layer, (experts, columns, depth)) if bits else self.noise.uniform(-0.3, 0.3, (experts, columns, depth)).astype(np.float32)
            if not bits:
                self.weights[layer] = self.floats[layer]

    def pack(self, layer, shape):
        experts, columns, depth = shape
        bits = self.attributes.get(f"{layer}_expert_weight_bits", self.bits)
        blocks = -(-depth // self.block) if self.block else 1
        numbers = self.noise.integers(0, 1 << bits, shape)
        scales = self.noise.uniform(0.5, 1, (experts, columns, blocks)).astype(np.float32) / (1 << bits)
        points = self.noise.integers(0, 1 << bits, scales.shape) if self.zeros else np.full(scales.shape, 1 << bits - 1)

        def packed(values):
            each = 8 // bits
            padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % each)])
            parts = padded.reshape(*values.shape[:-1], -1, each) << np.arange(each) * bits
            return parts.sum(-1).astype(np.uint8)

        self.weights[layer] = packed(numbers)
        self.weights[f"{layer}_scales"] = scales if self.block else scales[..., 0]
        if self.zeros:
            self.weights[f"{layer}_zeros"] = packed(points if self.block else points[..., 0])
        along = lambda values: np.repeat(values, self.block or depth, -1)[..., :depth]
        return ((numbers - along(points)) * along(scales)).astype(np.float32)

    def save(self, path):
        names = ["x", "scores"]
        suffixes = ["", "_scales", "_bias"] if self.bits else ["", "_bias"]
        names += [layer + suffix for layer in ("fc1", "fc2", "fc3") for suffix in suffixes]
        if self.bits:
            names += [f"{layer}_zeros" for layer in ("fc1", "fc2", "fc3")] + ["chosen" if self.router else ""]
        feeds = self.feeds()
        names = [name if name in feeds or name in self.weights else "" for name in names]
        attributes = {"expert_weight_bits": self.said} if self.bits else {}
        if self.block:
            attributes["block_size"] = self.block
        node = helper.make_node("QMoE" if self.bits else "MoE", names, ["y"], name="it", domain="com.microsoft", k=self.k, activation_type=self.function,
                                normalize_routing_weights=self.normalize, swiglu_fusion=self.fusion, **attributes, **self.attributes)
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in feeds.items()]
        graph = helper.make_graph([node], "layer", inputs, [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(value, name) for name, value in self.weights.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)], ir_version=9), path)

    def feeds(self):
        return {"x": self.x, "scores": self.scores} | ({"chosen": self.chosen} if self.router else {})

    def activate(self, x, expert):
        product = lambda layer: self.floats[layer][expert].astype(np.float64) @ x + self.biases[layer][expert]
        first = product("fc1")
        if self.function != "swiglu":
            return FUNCTIONS[self.function](first) * (product("fc3") if "fc3" in self.floats else 1)
        half = len(first) // 2
        gate, linear = {0: lambda: (first, product("fc3")), 1: lambda: (first[0::2], first[1::2]), 2: lambda: (first[:half], first[half:])}[self.fusion]()
        limit = self.attributes.get("swiglu_limit", np.inf)
        gate, linear = np.minimum(gate, limit), np.clip(linear, -limit, limit)
        return gate * logistic(self.attributes.get("activation_alpha", 1.0) * gate) * (linear + self.attributes.get("activation_beta", 0.0))

    def expected(self):
        rows = self.x.reshape(len(self.scores), -1).astype(np.float64)
        result = np.zeros_like(rows)
        for row, (x, scores, given) in enumerate(zip(rows, self.scores.astype(np.float64), self.chosen)):
            best = np.argsort(-scores, kind="stable")[: self.k]
            weights = given if self.router else np.exp(scores - scores.max())
            weights = weights / (weights[best] if self.normalize or (self.bits and not self.router) else weights if not self.router else np.ones(1)).sum()
            for expert in best:
                result[row] += weights[expert] * (self.floats["fc2"][expert].astype(np.float64) @ self.activate(x, expert) + self.biases["fc2"][expert])
        return result.reshape(self.x.shape)


def layers():
    for function in FUNCTIONS:
        yield Layer(function, function=function)
    yield Layer("one", rows=1, k=1, function="relu", bias=False)
    yield Layer("normalized", normalize=1, k=3, shape=(2, 3, 32))
    yield Layer("pairs", function="swiglu", fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=1.0)
    yield Layer("halves", function="swiglu", fusion=2, runtime=False)
    yield Layer("third product", function="swiglu", gated=True, runtime=False, inner=18)
    yield Layer("gated", function="gelu", gated=True, runtime=False)
    # Groups of more rows than are multiplied one by one, of several sizes; the last tiles are smaller.
    yield Layer("many rows", rows=150, hidden=70, inner=300, experts=5, k=2)
    yield Layer("few experts of many", rows=40, experts=30, k=3, spread=False)
    for bits in (2, 4, 8):
        # ONNX Runtime rounds activations to 8 bits where weights of 2 or 8 bits have blocks.
        for block, zeros in ((0, True), (16, False), (32, True)):
            yield Layer(f"{bits} bits, blocks of {block}", bits=bits, block=block, zeros=zeros, hidden=128, inner=96, runtime=bits == 4 or not block)
    yield Layer("4 bits, pairs", bits=4, block=32, function="swiglu", fusion=1, hidden=128, inner=96, swiglu_limit=2.0)
    yield Layer("4 bits, many rows", bits=4, block=32, zeros=True, rows=90, hidden=160, inner=288, experts=3)
    yield Layer("4 bits, odd rows", bits=4, hidden=100, inner=84, runtime=False)
    yield Layer("4 and 8 bits", bits=4, fc2_expert_weight_bits=8, hidden=128, inner=96, runtime=False)
    yield Layer("4 bits, halves", bits=4, function="swiglu", fusion=2, hidden=128, inner=96, runtime=False)
    yield Layer("4 bits, third product", bits=4, block=32, zeros=True, function="swiglu", gated=True, hidden=128, inner=96, runtime=False)
    yield Layer("4 bits, blocks longer than rows", bits=4, block=256, hidden=128, inner=96, runtime=False)
    yield Layer("given weights", bits=4, block=32, hidden=128, inner=96, router=True)
    yield Layer("given weights, normalized", bits=4, block=32, hidden=128, inner=96, router=True, normalize=1)


def cuts(layer):
    """Partition files that cut all weights along one dimension."""
    halves = "{tensor: 2}" if layer.fusion == 2 else "tensor"
    yield "fc?: [tensor, null, null]"
    yield f"\"fc[13]\": [null, {halves}, null], fc2: [null, null, tensor]"
    yield "\"fc[13]\": [null, null, tensor], fc2: [null, tensor, null]"


def check(number, layer, work):
    layer.save(work / "it.onnx")
    wanted = layer.expected()
    scale = np.abs(wanted).max()
    np.savez(work / "in.npz", **layer.feeds())

    def compare(got, what):
        difference = np.abs(got - wanted).max()
        if got.shape != wanted.shape or not difference <= 2e-5 * scale:
            raise Failure(f"{layer.name}, {what}: y differs by {difference:.3g}, of {scale:.3g}")

    if layer.runtime:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(work / "it.onnx"), options, providers=["CPUExecutionProvider"])
        compare(session.run(None, layer.feeds())[0], "ONNX Runtime")
    ways = [[], ["--devices", "2"], ["--tensor-parallel", "2"], ["--reference"], ["--no-library-calls"]]
    if not TARGET:
        # Layers come in pairs, of floats and packed: the two of a pair take other ways.
        ways = [[], *some(ways[1:], 2, number + bool(layer.bits))]
    for i, shard in enumerate(cuts(layer)):
        (work / f"cut{i}.yaml").write_text(f"mesh: {{tensor: 3}}\nshard: {{{shard}}}\n")
        ways.append(["--partition", work / f"cut{i}.yaml"])
    for way in ways[:1] + ways[2:3] + ways[5:6] if TARGET else ways:
        compile_model(work / "it.onnx", work / "it.partita", "--quiet", *way)
        run_artifact(work / "it.partita", "--threads", "1", "--no-pin", "--input", work / "in.npz", "--output", work / "out.npz")
        compare(np.load(work / "out.npz")["y"], (work / way[1].name).read_text() if way[:1] == ["--partition"] else " ".join(way))


def check_errors(work):
    """What is wrong with a model, at its node."""
    wrong = {
        "k = 5; there are 4 experts": Layer("few", k=5),
        "bits = 3; it can be 2, 4 or 8": Layer("bits", bits=4, hidden=128, inner=96, said=3),
        "weights_prepacked = 1 is not supported": Layer("order", bits=4, hidden=128, inner=96, weights_prepacked=1),
        "activation_type = geglu is not supported": Layer("function", function="geglu"),
        "swiglu needs two products": Layer("gate", function="swiglu"),
        "fc1_experts_weights must have three dimensions: 4 experts, their results, and 32 numbers": Layer("sizes"),
        "router_probs must have 5 rows": Layer("router"),
        "input 7 is given without fc3_experts_weights": Layer("bias"),
    }
    wrong["fc1_experts_weights must have three dimensions: 4 experts, their results, and 32 numbers"].weights["fc1"] = np.zeros((4, 16, 31), np.float32)
    wrong["router_probs must have 5 rows"].scores = np.zeros((6, 4), np.float32)
    wrong["input 7 is given without fc3_experts_weights"].weights["fc3_bias"] = np.zeros((4, 16), np.float32)
    for message, layer in wrong.items():
        layer.save(work / "wrong.onnx")
        said = run([BIN / "partita-compile", work / "wrong.onnx", "-o", work / "wrong.partita", "--quiet"], expect=1)
        if message not in said or "node 'it'" not in said:
            raise Failure(f"{layer.name}: not '{message}' is said, but\n{said}")


def test():
    chosen, count = set(sys.argv[1:]), 0
    with tempfile.TemporaryDirectory() as folder:
        for number, layer in enumerate(layers()):
            if not chosen or layer.name in chosen:
                check(number, layer, pathlib.Path(folder))
                count += 1
        if not chosen and not TARGET:
            check_errors(pathlib.Path(folder))
    if not count:
        raise Failure(f"there is no case of the names {', '.join(sorted(chosen))}")
    print(f"{count} layers of experts give what NumPy gives")


if __name__ == "__main__":
    main(test, use_workers=True, optimize=4)
