#!/usr/bin/env python3
"""Writes nanoGPT, with random weights, as an ONNX file; by default in its small setting for a CPU. Needs numpy and onnx.

    make_model.py FILE.onnx [--batch 12] [--block 64] [--layers 4] [--heads 4] [--width 128] [--vocabulary 65] [--seed 0]

Input `tokens` [batch, block] i64, output `logits` [batch, block, vocabulary]: at each place, what comes next.

Layers, their names and their first weights are those of nanoGPT (https://github.com/karpathy/nanoGPT) with `bias = False` and `dropout = 0.0`. The head has
the weight of the token embedding. Weights are drawn from N(0, 0.02), those of projections into the residual stream (c_proj) from N(0, 0.02 / sqrt(2 layers)).
"""

import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DEVIATION = 0.02


class Network:
    """Nodes one after another, and their weights."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def tensor(self, name, values, dtype=np.float32):
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def normal(self, name, *shape, deviation=DEVIATION):
        return self.tensor(name, self.random.normal(0, deviation, shape))

    def node(self, op, inputs, output, outputs=None, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs or [output], f"/{output}", **attributes))
        return outputs or output

    def layer_norm(self, x, name, width):
        return self.node("LayerNormalization", [x, self.tensor(f"{name}.weight", np.ones(width))], name, axis=-1, epsilon=1e-5)

    def linear(self, x, name, outputs, inputs, deviation=DEVIATION):
        """x times the transpose of a weight [outputs, inputs], as in PyTorch."""
        weight = self.normal(f"{name}.weight", outputs, inputs, deviation=deviation)
        return self.node("MatMul", [x, self.node("Transpose", [weight], f"{name}/transposed", perm=[1, 0])], name)


def make_model(batch=12, block=64, layers=4, heads=4, width=128, vocabulary=65, seed=0):
    network = Network(seed)
    node, tensor = network.node, network.tensor
    split = tensor("head_shape", [batch, block, heads, width // heads], np.int64)
    joined = tensor("joined_shape", [batch, block, width], np.int64)
    scale = tensor("scale", (width // heads) ** -0.5)
    mask = tensor("causal_mask", np.triu(np.full((block, block), -1e9), 1))
    residual = DEVIATION / np.sqrt(2 * layers)

    def attention(x, name):
        qkv = network.linear(x, f"{name}.c_attn", 3 * width, width)
        parts = node("Split", [qkv], f"{name}.split", [f"{name}.{key}" for key in "qkv"], axis=2, num_outputs=3)
        parts = [node("Reshape", [part, split], f"{part}.heads") for part in parts]
        q, k, v = (node("Transpose", [part], f"{part}.transposed", perm=perm) for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
        scores = node("Mul", [node("MatMul", [q, k], f"{name}.scores"), scale], f"{name}.scaled")
        scores = node("Softmax", [node("Add", [scores, mask], f"{name}.masked")], f"{name}.softmax", axis=-1)
        y = node("Transpose", [node("MatMul", [scores, v], f"{name}.values")], f"{name}.transposed", perm=[0, 2, 1, 3])
        return network.linear(node("Reshape", [y, joined], f"{name}.joined"), f"{name}.c_proj", width, width, residual)

    def mlp(x, name):
        y = network.linear(x, f"{name}.c_fc", 4 * width, width)
        return network.linear(node("Gelu", [y], f"{name}.gelu", approximate="none"), f"{name}.c_proj", width, 4 * width, residual)

    wte = network.normal("transformer.wte.weight", vocabulary, width)
    wpe = network.normal("transformer.wpe.weight", block, width)
    x = node("Add", [node("Gather", [wte, "tokens"], "transformer.wte", axis=0), wpe], "transformer.embeddings")
    for i in range(layers):
        h = f"transformer.h.{i}"
        x = node("Add", [x, attention(network.layer_norm(x, f"{h}.ln_1", width), f"{h}.attn")], f"{h}.attn.residual")
        x = node("Add", [x, mlp(network.layer_norm(x, f"{h}.ln_2", width), f"{h}.mlp")], f"{h}.mlp.residual")
    x = network.layer_norm(x, "transformer.ln_f", width)
    node("MatMul", [x, node("Transpose", [wte], "lm_head/transposed", perm=[1, 0])], "logits")

    graph = helper.make_graph(network.nodes, "nanogpt", [helper.make_tensor_value_info("tokens", TensorProto.INT64, [batch, block])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, block, vocabulary])], network.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="the ONNX file to write")
    parser.add_argument("--batch", type=int, default=12, help="sequences of a micro-batch")
    parser.add_argument("--block", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=65, help="different tokens")
    parser.add_argument("--seed", type=int, default=0, help="of the weights")
    settings = vars(parser.parse_args())
    file = settings.pop("file")
    onnx.save(make_model(**settings), file)


if __name__ == "__main__":
    main()
