#!/usr/bin/env python3
"""Writes a network for MNIST, with random weights, as an ONNX file. Needs numpy and onnx.

    make_model.py FILE.onnx [--batch 40] [--seed 0]

Input `image` [batch, 1, 28, 28] f32, output `logits` [batch, 10]:

    image                                 1 x 28 x 28
    convolution 5x5, pooling 2x2, ReLU    10 x 12 x 12
    convolution 5x5, pooling 2x2, ReLU    20 x 4 x 4
    linear, ReLU                          256
    linear                                10

Weights and biases are drawn as PyTorch draws them by default: uniformly between -b and b, with b = 1 / sqrt(inputs of an output).
"""

import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """Nodes one after another, and their weights."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def parameters(self, name, *shape):
        bound = 1 / np.sqrt(np.prod(shape[1:]))
        for key, dimensions in (("weight", shape), ("bias", shape[:1])):
            values = self.random.uniform(-bound, bound, dimensions).astype(np.float32)
            self.weights.append(numpy_helper.from_array(values, f"{name}.{key}"))
        return f"{name}.weight", f"{name}.bias"

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], f"/{output}", **attributes))
        return output


def make_model(batch=40, seed=0):
    network = Network(seed)
    node, parameters = network.node, network.parameters
    x = "image"
    for i, (channels, before) in enumerate(((10, 1), (20, 10)), 1):
        x = node("Conv", [x, *parameters(f"conv{i}", channels, before, 5, 5)], f"conv{i}", kernel_shape=[5, 5])
        x = node("MaxPool", [x], f"pool{i}", kernel_shape=[2, 2], strides=[2, 2])
        x = node("Relu", [x], f"relu{i}")
    x = node("Flatten", [x], "flatten", axis=1)
    x = node("Gemm", [x, *parameters("fc1", 256, 320)], "fc1", transB=1)
    x = node("Relu", [x], "relu3")
    node("Gemm", [x, *parameters("fc2", 10, 256)], "logits", transB=1)

    graph = helper.make_graph(network.nodes, "mnist", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 1, 28, 28])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 10])], network.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="the ONNX file to write")
    parser.add_argument("--batch", type=int, default=40, help="images of a micro-batch")
    parser.add_argument("--seed", type=int, default=0, help="of the weights")
    arguments = parser.parse_args()
    onnx.save(make_model(arguments.batch, arguments.seed), arguments.file)


if __name__ == "__main__":
    main()
