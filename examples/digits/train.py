#!/usr/bin/env python3
"""Trains the example model digits.onnx, a small convolutional network on 8x8 images of handwritten digits, and draws digits.npy.

    python3 -m venv .venv && .venv/bin/pip install numpy onnx
    .venv/bin/python examples/digits/train.py ../shared/data/datasets/optdigits

The folder holds the UCI data set "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak; CC BY 4.0; optdigits.tra and optdigits.tes: a header line, then 64 values of
0..16 and the class). The images of digits.npy are our own drawings, ten digits in the order 0 to 9, not of the data set.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent

# One row a digit: eight lines of eight pixels, '#' is full ink (16), '+' half (8).
DRAWINGS = """
..####..  ...##...  ..####..  .#####..  ....##..  .######.  ...##...  .######.  ..####..  ..####..
.##++##.  ..+##...  .##++##.  .++++##.  ...###..  .##.....  ..##+...  .+++##+.  .##++##.  .##++##.
.##..##.  .####...  .....##.  .....##.  ..+###..  .##.....  .##+....  ....##..  .##..##.  .##..##.
.##..##.  ...##...  ....##+.  ..####..  .##+##..  .#####..  .#####..  ...##+..  ..####..  ..#####.
.##..##.  ...##...  ...##+..  .....##.  .######.  .....##.  .##++##.  ..+###..  .##++##.  .....##.
.##..##.  ...##...  ..##+...  .....##.  ....##..  .....##.  .##..##.  ...##...  .##..##.  .....##.
.##++##.  ...##...  .##+....  .++++##.  ....##..  .++++##.  .##++##.  ..+##...  .##++##.  ..++##+.
..####..  ..####..  .######.  .#####..  ....##..  .#####..  ..####..  ..##....  ..####..  ..###...
"""


def drawings():
    rows = [line.split() for line in DRAWINGS.strip().splitlines()]
    ink = {".": 0, "+": 8, "#": 16}
    return np.array([[[ink[c] for c in rows[y][d]] for y in range(8)] for d in range(10)], np.float32)[:, None]


def load(path):
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
    return table[:, :64].reshape(-1, 1, 8, 8), table[:, 64].astype(int)


def patches(x):
    """[N, C, H, W] -> [N, C*9, H, W]: what a 3x3 convolution with padding 1 sees."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    h, w = x.shape[2:]
    return np.concatenate([padded[:, :, i : i + h, j : j + w] for i in range(3) for j in range(3)], 1)


class Network:
    """conv 16, conv 16 and pool, conv 32 and pool, dense 64, dense 10; with its gradient by hand."""

    def __init__(self, rng):
        def he(outputs, inputs):
            return rng.normal(0, np.sqrt(2 / inputs), (outputs, inputs)).astype(np.float32)

        self.p = {}
        for name, o, i in (("conv1", 16, 9), ("conv2", 16, 144), ("conv3", 32, 144), ("fc1", 64, 128), ("fc2", 10, 64)):
            self.p[name + ".weight"], self.p[name + ".bias"] = he(o, i), np.zeros(o, np.float32)

    def run(self, x, labels=None):
        p, tape = self.p, []

        def dense(h, name):
            out = h @ p[name + ".weight"].T + p[name + ".bias"]
            tape.append(lambda g, h=h: (grads.update({name + ".weight": g.T @ h, name + ".bias": g.sum(0)}), g @ p[name + ".weight"])[1])
            return out

        def conv(h, name):
            n, c, height, width = h.shape
            columns = patches(h).transpose(0, 2, 3, 1).reshape(-1, 9 * c)
            out = dense(columns, name).reshape(n, height, width, -1).transpose(0, 3, 1, 2)
            inner = tape.pop()

            def backward(g):
                g = inner(g.transpose(0, 2, 3, 1).reshape(n * height * width, -1)).reshape(n, height, width, 9, c)
                dx = np.zeros((n, c, height + 2, width + 2), np.float32)
                for k in range(9):
                    dx[:, :, k // 3 : k // 3 + height, k % 3 : k % 3 + width] += g[:, :, :, k].transpose(0, 3, 1, 2)
                return dx[:, :, 1:-1, 1:-1]

            tape.append(backward)
            return out

        def relu(h):
            tape.append(lambda g, mask=h > 0: g * mask)
            return np.maximum(h, 0)

        def pool(h):
            n, c, height, width = h.shape
            windows = h.reshape(n, c, height // 2, 2, width // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, height // 2, width // 2, 4)
            best = windows.argmax(-1)

            def backward(g):
                spread = np.eye(4, dtype=np.float32)[best] * g[..., None]
                return spread.reshape(n, c, height // 2, width // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(h.shape)

            tape.append(backward)
            return windows.max(-1)

        grads = {}
        h = relu(conv(x / 16, "conv1"))
        h = pool(relu(conv(h, "conv2")))
        h = pool(relu(conv(h, "conv3")))
        shape = h.shape
        tape.append(lambda g: g.reshape(shape))
        logits = dense(relu(dense(h.reshape(len(x), -1), "fc1")), "fc2")
        if labels is None:
            return logits
        probabilities = np.exp(logits - logits.max(1, keepdims=True))
        probabilities /= probabilities.sum(1, keepdims=True)
        loss = -np.log(probabilities[np.arange(len(x)), labels]).mean()
        g = (probabilities - np.eye(10, dtype=np.float32)[labels]) / len(x)
        for backward in reversed(tape):
            g = backward(g)
        return loss, grads


def train(images, labels, epochs=12, batch=64, rate=2e-3):
    rng = np.random.default_rng(0)
    net, m, v, t = Network(rng), {}, {}, 0
    for epoch in range(epochs):
        order, losses = rng.permutation(len(images)), []
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            loss, grads = net.run(images[chosen], labels[chosen])
            losses.append(loss)
            t += 1
            for k, g in grads.items():  # Adam
                m[k] = 0.9 * m.get(k, 0) + 0.1 * g
                v[k] = 0.999 * v.get(k, 0) + 0.001 * g * g
                net.p[k] -= rate * (1 - epoch / epochs) * (m[k] / (1 - 0.9**t)) / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")
    return net


def export(net, path):
    def conv_weight(name, c):
        # patches() orders a column by (row, column, channel); ONNX wants (channel, row, column).
        w = net.p[name + ".weight"]
        return w.reshape(len(w), 3, 3, c).transpose(0, 3, 1, 2)

    tensors = {name: value for name, value in net.p.items()}
    for name, c in (("conv1", 1), ("conv2", 16), ("conv3", 16)):
        tensors[name + ".weight"] = conv_weight(name, c)
    tensors["scale"] = np.float32(1 / 16)
    nodes = [helper.make_node("Mul", ["image", "scale"], ["scaled"], name="/scale")]
    h = "scaled"
    for k in (1, 2, 3):
        nodes.append(helper.make_node("Conv", [h, f"conv{k}.weight", f"conv{k}.bias"], [f"c{k}"], name=f"/conv{k}/Conv", pads=[1] * 4, kernel_shape=[3, 3]))
        nodes.append(helper.make_node("Relu", [f"c{k}"], [f"r{k}"], name=f"/conv{k}/Relu"))
        h = f"r{k}"
        if k > 1:
            nodes.append(helper.make_node("MaxPool", [h], [f"p{k}"], name=f"/conv{k}/MaxPool", kernel_shape=[2, 2], strides=[2, 2]))
            h = f"p{k}"
    nodes += [
        helper.make_node("Flatten", [h], ["flat"], name="/Flatten"),
        helper.make_node("Gemm", ["flat", "fc1.weight", "fc1.bias"], ["f1"], name="/fc1/Gemm", transB=1),
        helper.make_node("Relu", ["f1"], ["f1r"], name="/fc1/Relu"),
        helper.make_node("Gemm", ["f1r", "fc2.weight", "fc2.bias"], ["logits"], name="/fc2/Gemm", transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], name="/Softmax", axis=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])
    result = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])
    initializers = [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in tensors.items()]
    graph = helper.make_graph(nodes, "digits", [image], [result], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="examples/digits/train.py")
    onnx.checker.check_model(model)
    onnx.save(model, path)


def main():
    folder = pathlib.Path(sys.argv[1])
    net = train(*load(folder / "optdigits.tra"))
    images, labels = load(folder / "optdigits.tes")
    print(f"test accuracy {(net.run(images).argmax(1) == labels).mean():.4f}")
    export(net, HERE / "digits.onnx")
    np.save(HERE / "digits.npy", drawings())
    print("our drawings are read as", *net.run(drawings()).argmax(1))


if __name__ == "__main__":
    main()
