#!/usr/bin/env python3
"""What compiling gradients costs does not grow faster than the model: four times the layers of a transformer take at most five times the processor's time
and memory. The least of three measurements counts, so that other work on the machine does not."""

import os
import pathlib
import sys
import tempfile

from harness import BIN, SKIPPED, Failure, main

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save
except ImportError:
    print("skipped: no onnx (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

WIDTH, HEADS, TOKENS, WORDS = 32, 4, 16, 64
LAYERS, TIMES, BOUND = 8, 4, 5.0


class Transformer:
    """A decoder of `layers` layers, whose weights all differ."""

    def __init__(self, layers):
        self.nodes, self.weights, self.noise = [], [], np.random.default_rng(layers)
        self.constant("heads", np.array([0, TOKENS, HEADS, WIDTH // HEADS]))
        self.constant("rows", np.array([0, TOKENS, WIDTH]))
        self.constant("scale", np.float32((WIDTH // HEADS) ** -0.5))
        self.constant("mask", np.triu(np.full((TOKENS, TOKENS), -1e9, np.float32), 1))
        x = self.node("Gather", self.weight("table", WORDS, WIDTH), "tokens")
        for layer in range(layers):
            x = self.node("Add", x, self.attend(self.normalise(x, f"{layer}.1"), f"{layer}."))
            wide = self.node("Gelu", self.linear(self.normalise(x, f"{layer}.2"), f"{layer}.up", 4 * WIDTH), approximate="tanh")
            x = self.node("Add", x, self.linear(wide, f"{layer}.down", WIDTH, 4 * WIDTH))
        self.nodes.append(helper.make_node("MatMul", [x, self.weight("head", WIDTH, WORDS)], ["logits"]))

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name, *shape):
        return self.constant(name, (self.noise.standard_normal(shape) * 0.05).astype(np.float32))

    def node(self, op, *inputs, **attributes):
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def linear(self, x, name, outputs, inputs=WIDTH):
        return self.node("Add", self.node("MatMul", x, self.weight(f"{name}.w", inputs, outputs)), self.weight(f"{name}.b", outputs))

    def normalise(self, x, name):
        return self.node("LayerNormalization", x, self.weight(f"{name}.scale", WIDTH), self.weight(f"{name}.shift", WIDTH))

    def attend(self, x, name):
        split = lambda which, order: self.node("Transpose", self.node("Reshape", self.linear(x, name + which, WIDTH), "heads"), perm=order)
        q, k, v = split("q", [0, 2, 1, 3]), split("k", [0, 2, 3, 1]), split("v", [0, 2, 1, 3])
        scores = self.node("Add", self.node("Mul", self.node("MatMul", q, k), "scale"), "mask")
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        return self.linear(self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), "rows"), name + "o", WIDTH)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "transformer", [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, TOKENS])],
                                  [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, TOKENS, WORDS])], self.weights)
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def cost(model, artifact):
    """The seconds and the bytes that compiling takes: the least of three."""
    costs = []
    for _ in range(3):
        command = [BIN / "partita-compile", model, "--gradients", "--loss", "cross_entropy:logits", "--quiet", "-o", artifact]
        process = os.posix_spawn(command[0], [str(word) for word in command], os.environ)
        _, status, usage = os.wait4(process, 0)
        if status != 0:
            raise Failure(f"{command} ends with status {os.waitstatus_to_exitcode(status)}")
        costs.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024))
    return [min(each) for each in zip(*costs)]


def check():
    with tempfile.TemporaryDirectory() as folder:
        costs = []
        for layers in (LAYERS, TIMES * LAYERS):
            model = pathlib.Path(folder) / f"{layers}.onnx"
            Transformer(layers).save(model)
            costs.append(cost(model, pathlib.Path(folder) / "out.partita"))
    (seconds, memory), (more_seconds, more_memory) = costs
    print(f"{LAYERS} layers: {seconds:.2f} s, {memory >> 20} MiB; {TIMES * LAYERS} layers: {more_seconds:.2f} s, {more_memory >> 20} MiB")
    if more_seconds > BOUND * seconds or more_memory > BOUND * memory:
        raise Failure(f"{TIMES} times the layers take more than {BOUND} times as much")


if __name__ == "__main__":
    main(check)
