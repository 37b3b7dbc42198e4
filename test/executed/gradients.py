#!/usr/bin/env python3
"""Gradients, op by op: the derivative of each op to each of its operands, along random directions, against central differences of the same model in
f64, computed by loops of our own (--reference). Then losses against their definitions, the choice of what is trained, models of several ops on one
device and several (equal bits), and what is no gradient: an error that says so.

    gradients.py                 all
    gradients.py Conv MaxPool    the cases whose text holds one of these words
    gradients.py --first         all, and ends with the first case that is wrong
"""

import json
import os
import pathlib
import sys
import tempfile

from harness import ALL, BIN, REPOSITORY, SKIPPED, TARGET, Failure, compile_model, main, run, run_artifact

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy (tools/setup.sh installs it)")
    sys.exit(SKIPPED)


def P(*shape, low=-2.0, high=2.0, apart=0.0):
    """Floats in [low, high), none nearer to an integer or half than `apart`, so that no kink is within a difference."""
    return ("double", shape, low, high, apart)


def single(*shape):
    """Of ops that compute in f32 whatever their operands are: differences of a larger step, and less near."""
    return ("double", shape, -2.0, 2.0, 0.0, 1e-3)


def I(values):
    return ("int64", np.array(values, np.int64))


def B(values):
    return ("bool", np.array(values, np.bool_))


def recurrent(op, shapes, attributes="", operands="abc", lengths=None, opset=21):
    """A recurrent layer, which is one of f32: all its results count."""
    names = [name for name in operands.split(", ") if name and name != "n"] if ", " in operands else list(operands)
    casts = "".join(f"{name}32 = Cast <to = 1> ({name})\n " for name in names)
    given = ", ".join(f"{name}32" if name in names else name for name in (operands.split(", ") if ", " in operands else operands))
    if lengths:
        casts += "n = Cast <to = 6> (" + "cdefgh"[max(0, len(names) - 2)] + ")\n "
    results = ["v", "w", "x"][:3 if op == "LSTM" else 2]
    flat = "".join(f"{r}f = Reshape ({r}, all)\n " for r in results)
    body = (f"all = Constant <value = int64[1] {{-1}}> ()\n {casts}{', '.join(results)} = {op} <hidden_size = 4{attributes and ', ' + attributes}> ({given})\n {flat}"
            f"y32 = Concat <axis = 0> ({', '.join(r + 'f' for r in results)})\n y = Cast <to = 11> (y32)")
    return (body, [single(*shape) for shape in shapes] + ([I(lengths)] if lengths else []), opset)


# (body, operands). The body computes y of them. Every float operand is differentiated.
UNARY = {"Abs": P(3, 4, apart=0.01), "Acos": P(5, low=-0.9, high=0.9), "Acosh": P(5, low=1.2, high=3), "Asin": P(5, low=-0.9, high=0.9), "Asinh": P(5),
         "Atan": P(5), "Atanh": P(5, low=-0.9, high=0.9), "Cos": P(5), "Cosh": P(5), "Erf": P(7), "Exp": P(2, 3), "Log": P(5, low=0.2, high=3),
         "Neg": P(4), "Reciprocal": P(5, low=0.4, high=3), "Relu": P(3, 5, apart=0.01), "Sigmoid": P(6), "Sin": P(5), "Sinh": P(5), "Sqrt": P(5, low=0.2, high=3),
         "Tan": P(5, low=-1.2, high=1.2), "Tanh": P(5),
         "Softplus": P(6), "Softsign": P(6, apart=0.01), "Gelu": P(6), "Elu": P(6, apart=0.01), "Selu": P(6, apart=0.01), "LeakyRelu": P(6, apart=0.01),
         "HardSigmoid": P(6, apart=0.01), "HardSwish": P(6, apart=0.01), "Mish": P(6), "Identity": P(2, 2)}
CASES = [
    *((f"y = {op} (a)", [operand]) for op, operand in UNARY.items()),
    *((f"s = {op} (a)\n y = Mul (s, a)", [P(5, apart=0.01)]) for op in ("Ceil", "Floor", "Round", "Sign")),
    ("y = Add (a, b)", [P(3, 4), P(4)]), ("y = Sub (a, b)", [P(3, 1), P(1, 4)]), ("y = Mul (a, b)", [P(2, 3), P(2, 3)]), ("y = Mul (a, a)", [P(2, 3)]),
    ("y = Div (a, b)", [P(3, 4), P(3, 4, low=0.5)]), ("y = Pow (a, b)", [P(3, 4, low=0.3), P(3, 4)]), ("y = Pow (a, b)", [P(4, low=0.3), P()]),
    ("y = Mod <fmod = 1> (a, b)", [P(5, low=1.05, high=1.9), P(5, low=0.55, high=0.6)]),
    ("y = Max (a, b)", [P(30), P(30)]), ("y = Min (a, b)", [P(5, 6), P(6)]), ("m = Constant <value = double {-0.5}> ()\n n = Constant <value = double {0.7}> ()\n y = Clip (a, m, n)", [P(20)]),
    ("y = Where (c, a, b)", [P(2, 3), P(2, 3), B([[True, False, True], [False, True, False]])]),
    ("f = Cast <to = 1> (a)\n g = Cast <to = 11> (f)\n y = Mul (g, a)", [single(4)]),
    ("y = Softmax <axis = 1> (a)", [P(3, 5)]), ("y = Softmax <axis = 0> (a)", [P(3, 5)]), ("y = LogSoftmax <axis = 2> (a)", [P(2, 3, 4)]),
    ("y = ReduceSum <keepdims = 0> (a, c)", [P(2, 3, 4), I([1])]), ("y = ReduceMean (a, c)", [P(2, 3, 4), I([0, 2])]), ("y = ReduceMax (a, c)", [P(3, 7), I([1])]),
    ("y = ReduceMin <keepdims = 0> (a, c)", [P(3, 7), I([0])]), ("y = ReduceProd (a, c)", [P(3, 4), I([1])]), ("y = ReduceL2 (a, c)", [P(3, 4), I([1])]),
    ("y = ReduceLogSumExp (a, c)", [P(3, 4), I([1])]), ("y = ReduceSumSquare (a)", [P(3, 4)]), ("y = CumSum (a, c)", [P(3, 5), I(1)]),
    ("y = CumSum <exclusive = 1, reverse = 1> (a, c)", [P(3, 5), I(0)]),
    ("y = Reshape (a, c)", [P(2, 6), I([3, 4])]), ("y = Transpose <perm = [2, 0, 1]> (a)", [P(2, 3, 4)]), ("y = Expand (a, c)", [P(3, 1), I([2, 3, 4])]),
    ("y = Slice (a, c, d, e, f)", [P(5, 7), I([0, 1]), I([5, 7]), I([0, 1]), I([2, 3])]), ("y = Slice (a, c, d, e, f)", [P(9), I([8]), I([-10]), I([0]), I([-2])]),
    ("y = Pad (a, c)", [P(2, 3), I([1, 0, 0, 2])]), ("y = Pad (a, c, b)", [P(2, 3), I([1, 0, 0, 2]), P()]), ("y = Pad <mode = \"reflect\"> (a, c)", [P(4, 5), I([1, 2, 0, 1])]),
    ("y = Concat <axis = 1> (a, b, a)", [P(2, 3), P(2, 4)]), ("p, q = Split <axis = 1, num_outputs = 2> (a)\n y = Mul (p, q)", [P(2, 6)]),
    ("y = Tile (a, c)", [P(2, 3), I([2, 3])]), ("y = DepthToSpace <blocksize = 2> (a)", [P(1, 8, 2, 3)]), ("y = Trilu (a)", [P(4, 4)]),
    ("y = Gather <axis = 0> (a, c)", [P(5, 3), I([[0, 4, -1], [2, 2, 2]])]), ("y = Gather <axis = 1> (a, c)", [P(2, 5, 3), I([1, 1, 4])]),
    ("y = GatherElements <axis = 1> (a, c)", [P(3, 4), I([[0], [3], [-2]])]), ("y = GatherElements <axis = 0> (a, c)", [P(3, 4), I([[0, 2, 2, 1], [0, 1, 2, -3]])]),
    ("y = GatherND (a, c)", [P(3, 4), I([[0, 1], [2, 3], [0, 1]])]),
    ("y = ScatterElements <axis = 0> (a, c, b)", [P(4, 3), P(2, 3), I([[0, 1, 2], [3, 3, 0]])]), ("y = ScatterElements <axis = 0> (a, c, b)", [P(4, 3), P(3, 3), I([[0, 1, 2], [0, 3, -2], [1, 3, 2]])]), ("y = ScatterElements <axis = 1, reduction = \"add\"> (a, c, b)", [P(2, 4), P(2, 3), I([[0, 1, 1], [3, 3, -1]])]),
    ("y = ScatterND (a, c, b)", [P(5, 2), P(3, 2), I([[0], [4], [2]])]), ("y = ScatterND <reduction = \"add\"> (a, c, b)", [P(5, 2), P(3, 2), I([[1], [4], [1]])]),
    *((f'y = ScatterElements <axis = 1, reduction = "{how}"> (a, c, b)', [P(2, 4), P(2, 3), I([[0, 1, 1], [3, 3, -1]])]) for how in ("max", "min")),
    ('y = ScatterND <reduction = "max"> (a, c, b)', [P(5, 2), P(4, 2), I([[1], [4], [1], [0]])]),
    ("y = MatMul (a, b)", [P(3, 4), P(4, 5)]), ("y = MatMul (a, b)", [P(2, 3, 4), P(4, 5)]), ("y = MatMul (a, b)", [P(2, 1, 3, 4), P(3, 4, 2)]), ("y = MatMul (a, b)", [P(4), P(4)]),
    ("y = MatMul (a, b)", [P(4), P(3, 4, 2)]), ("y = Gemm <transA = 1, transB = 1, alpha = 0.5, beta = 2.0> (a, b, c)", [P(4, 3), P(5, 4), P(5)]), ("y = MatMul (a, a)", [P(3, 3)]),
    ("y = Einsum <equation = \"bij,bjk->bki\"> (a, b)", [P(2, 3, 4), P(2, 4, 5)]), ("y = Einsum <equation = \"aij,bji->ab\"> (a, b)", [P(2, 3, 4), P(5, 4, 3)]),
    *((f"y = Conv {attributes and f'<{attributes}>'} ({', '.join('abc'[:len(shapes)])})", [P(*s) for s in shapes]) for attributes, *shapes in (
        ("", (2, 3, 5, 6), (4, 3, 3, 2), (4,)), ("strides = [2, 3], pads = [1, 2, 0, 1]", (2, 2, 7, 8), (3, 2, 3, 3)), ("dilations = [2, 1], pads = [2, 1, 2, 1]", (1, 2, 6, 5), (2, 2, 2, 3)),
        ("group = 2", (2, 4, 4, 4), (6, 2, 2, 2), (6,)), ("group = 4, pads = [1, 1, 1, 1], strides = [2, 2]", (2, 4, 5, 5), (4, 1, 3, 3)), ("strides = [2], dilations = [2]", (2, 3, 11), (2, 3, 3)),
        ("kernel_shape = [1, 1], strides = [2, 2]", (2, 3, 5, 5), (4, 3, 1, 1)), ("pads = [1, 1, 1, 1, 1, 1]", (1, 2, 3, 3, 3), (2, 2, 2, 2, 2)), ("strides = [3, 3]", (1, 1, 7, 8), (1, 1, 2, 2)),
        ("pads = [3, 3, 3, 3], strides = [2, 2]", (1, 2, 4, 4), (2, 2, 2, 2)),
        # All windows lie in the border; some do.
        ("pads = [2, 0, 0, 0], strides = [3, 1]", (1, 1, 1, 3), (1, 1, 1, 2)), ("pads = [5, 4], strides = [4]", (1, 1, 2), (1, 1, 2)))),
    ("y = ConvTranspose <strides = [2, 2], pads = [1, 0, 0, 1], output_padding = [1, 0]> (a, b)", [P(2, 3, 3, 4), P(3, 2, 3, 3)]), ("y = ConvTranspose <group = 2> (a, b, c)", [P(1, 4, 3, 3), P(4, 2, 2, 2), P(4)]),
    *((f"y = {op} <{attributes}> (a)", [P(*shape)]) for op in ("MaxPool", "AveragePool") for attributes, shape in (
        ("kernel_shape = [2, 2], strides = [2, 2]", (2, 3, 6, 4)), ("kernel_shape = [2, 2], strides = [2, 2]", (1, 2, 7, 5)), ("kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]", (2, 2, 6, 5)),
        ("kernel_shape = [2, 2], strides = [3, 3]", (1, 1, 8, 9)), ("kernel_shape = [3], strides = [2], dilations = [2]", (1, 2, 12)), ("kernel_shape = [2, 2], ceil_mode = 1, strides = [2, 2]", (1, 1, 5, 5)))),
    ("y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (a)", [P(1, 2, 4, 5)]), ("y = GlobalAveragePool (a)", [P(2, 3, 4, 5)]), ("y = GlobalMaxPool (a)", [P(2, 3, 4, 5)]),
    ("y = LpPool <kernel_shape = [2, 2], p = 2> (a)", [P(1, 2, 4, 4)]),
    ("y = LayerNormalization <axis = -1> (a, b, c)", [single(3, 8), single(8), single(8)]), ("y = InstanceNormalization (a, b, c)", [P(2, 3, 5), P(3), P(3)]), ("y = GroupNormalization <num_groups = 2> (a, b, c)", [single(2, 4, 3), single(4), single(4)]),
    ("y = RMSNormalization (a, b)", [single(3, 8), single(8)], 23), ("y = BatchNormalization (a, b, c, d, e)", [P(3, 4, 5), P(4), P(4), P(4), P(4, low=0.5)]),
    ("y, p, q = BatchNormalization <training_mode = 1> (a, b, c, d, e)", [P(6, 3, 4), P(3), P(3), P(3), P(3, low=0.5)]), ("y = LRN <size = 3> (a)", [P(1, 5, 3, 3)]),
    ("y = Resize <mode = \"linear\"> (a, , c)", [P(1, 2, 3, 4), ("floats", [1.0, 1.0, 2.0, 1.5])]), ("y = Attention (a, b, c)", [P(1, 2, 3, 4), P(1, 2, 5, 4), P(1, 2, 5, 6)], 23),
    ("y = Swish (a)", [P(5)], 24), ("y = Mean (a, b)", [P(3), P(2, 3)]), ("y = PRelu (a, b)", [P(3, 4, apart=0.01), P(4)]), ("y = ThresholdedRelu <alpha = 0.5> (a)", [P(8, apart=0.01)]),
    ("s = Hardmax (a)\n y = Mul (s, a)", [P(3, 4)]), ("v, i = TopK <axis = 1> (a, c)\n y = Mul (v, v)", [P(3, 6), I([2])]),
    recurrent("RNN", [(3, 2, 3), (1, 4, 3), (1, 4, 4)]), recurrent("RNN", [(3, 2, 3), (2, 4, 3), (2, 4, 4), (2, 8)], 'direction = "bidirectional", activations = ["Softsign", "Affine"], activation_alpha = [0.5], activation_beta = [0.1]', "abcd"),
    recurrent("GRU", [(3, 2, 3), (1, 12, 3), (1, 12, 4), (1, 24)], "linear_before_reset = 1", "abcd"), recurrent("GRU", [(2, 2, 3), (1, 12, 3), (1, 12, 4), (1, 24)], 'direction = "reverse"', "abcd"),
    recurrent("GRU", [(4, 3, 2), (2, 12, 2), (2, 12, 4), (2, 3, 4)], 'direction = "bidirectional"', "a, b, c, , n, d", [2, 4, 1]),
    recurrent("LSTM", [(1, 2, 3), (1, 16, 3), (1, 16, 4)]), recurrent("LSTM", [(3, 2, 3), (2, 16, 3), (2, 16, 4), (2, 32)], 'direction = "bidirectional"', "abcd"),
    recurrent("LSTM", [(3, 2, 3), (1, 16, 3), (1, 16, 4), (1, 2, 4), (1, 12)], "clip = 2.5", "a, b, c, , , d, , e"),
    recurrent("LSTM", [(4, 3, 2), (1, 16, 2), (1, 16, 4), (1, 3, 4), (1, 3, 4)], 'direction = "reverse", input_forget = 1', "a, b, c, , n, d, e", [3, 4, 2]),
    ("y = GridSample (a, b)", [P(1, 2, 4, 4), P(1, 3, 3, 2, low=-0.8, high=0.8)]),
]


class Model:
    """A model of f64, compiled as it is and with its gradients."""

    def __init__(self, work, body, operands, opset=21, noise=None):
        self.work, self.body, self.noise = work, body, noise or np.random.default_rng(1)
        self.inputs, declared, self.constants, self.step = {}, [], [], 1e-5
        # Floats are a, b, ...; what is no float is c, d, ... after them.
        floats = "abcde"[:sum(operand[0] == "double" for operand in operands)]
        names = [*floats, *(name for name in "cdefgh" if name not in floats)]
        for name, operand in zip(names, sorted(operands, key=lambda operand: operand[0] != "double")):
            self.declare(name, operand, declared)
        self.model = work / "model.onnxtxt"
        self.model.write_text(f'<ir_version: 10, opset_import: ["" : {opset}]>\ng ({", ".join(declared)}) => (double z) {{\n {body}\n'
                              " u = Mul (y, y)\n z = ReduceSum <keepdims = 0> (u)\n}\n")

    def declare(self, name, operand, declared):
        kind, *rest = operand
        if kind == "double":
            shape, low, high, apart, *step = rest
            values = self.noise.uniform(low, high, shape)
            near = np.abs(values * 2 - np.round(values * 2)) < 2 * apart
            self.inputs[name] = np.where(near, values + 2 * apart, values)
            self.step = step[0] if step else self.step
            declared.append(f"double{list(shape) or ''} {name}".replace(", ", ","))
        elif kind == "floats":
            array = np.array(rest[0], np.float32)
            np.save(self.work / f"{name}.npy", array)
            self.constants += ["--constant", f"{name}={self.work / name}.npy"]
            declared.append(f"float[{array.size}] {name}")
        else:
            array = rest[0]
            np.save(self.work / f"{name}.npy", array)
            self.constants += ["--constant", f"{name}={self.work / name}.npy"]
            declared.append(f"{kind}{list(array.shape) or ''} {name}".replace(", ", ","))

    def run(self, artifact, inputs):
        np.savez(self.work / "in.npz", **inputs)
        run_artifact(artifact, "--input", self.work / "in.npz", "--output", self.work / "out.npz")
        with np.load(self.work / "out.npz") as archive:
            return {name: archive[name] for name in archive.files}


def check_case(work, number, body, operands, opset=21):
    model = Model(work, body, operands, opset)
    forward, backward = work / "forward.partita", work / "backward.partita"
    compile_model(model.model, forward, "--reference", *model.constants)
    # Other devices have one case in four by plain loops, too, and one direction: the derivatives are those of the CPU, and what is tested are their kernels.
    quick = TARGET and not ALL
    for flags in ((),) if quick and number % 4 else ((), ("--reference",)):
        compile_model(model.model, backward, "--gradients", "inputs", "--loss", "output:z", *flags, *model.constants)
        found = model.run(backward, model.inputs)
        for name, values in model.inputs.items():
            got = found.get(f"{name}.grad", np.zeros_like(values))
            if got.shape != values.shape:
                raise Failure(f"{body}: {name}.grad has the shape {got.shape}, and {name} {values.shape}")
            for _ in range(1 if quick else 2):
                direction = model.noise.standard_normal(values.shape)
                step = model.step
                losses = [float(model.run(forward, {**model.inputs, name: values + sign * step * direction})["z"]) for sign in (1, -1)]
                wanted, have = (losses[0] - losses[1]) / (2 * step), float(np.sum(got * direction))
                scale = max(abs(wanted), float(np.linalg.norm(got)), 1e-2)
                if not abs(wanted - have) <= (2e-3 if step > 1e-4 else 1e-6) * scale:
                    raise Failure(f"{body} {' '.join(flags)}: along a direction of {name} the loss grows by {wanted}, and the gradient says {have}\n{model.model.read_text()}")


def check_ops(work, words, first):
    chosen = [case for case in CASES if not words or any(word in case[0] for word in words)]
    wrong = []
    for number, case in enumerate(chosen):
        try:
            check_case(work, number, *case)
        except Failure as failure:
            if first:
                raise
            wrong.append(str(failure))
    if wrong:
        raise Failure("\n\n".join(wrong) + f"\n\n{len(wrong)} of {len(chosen)} cases are wrong")
    print(f"{len(chosen)} derivatives agree with differences")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def check_losses(work):
    """Values and gradients of losses, by their definitions."""
    noise = np.random.default_rng(2)
    y = noise.standard_normal((6, 5))
    t = noise.standard_normal((6, 5))
    y[0, 0] = 0  # where |y| and max(y, 0) have kinks, and the loss has none
    labels = np.array([0, 4, 2, -100, 1, 1])
    counts = labels >= 0
    onehot = np.where(counts[:, None], np.eye(5)[np.maximum(labels, 0)], 0)
    smooth = np.where(counts[:, None], 0.9 * onehot + 0.1 / 5, 0)
    p, d, s, u = softmax(y), y - t, 1 / (1 + np.exp(-y)), 1 / (1 + np.exp(-t))
    logs = np.log(p)
    cases = {
        "cross_entropy:y": (labels, -(onehot * logs).sum() / 5, (p * counts[:, None] - onehot) / 5),
        "cross_entropy:y,label_smoothing=0.1": (labels, -(smooth * logs).sum() / 5, (p * counts[:, None] - smooth) / 5),
        "cross_entropy:y,reduction=sum": (labels, -(onehot * logs).sum(), p * counts[:, None] - onehot),
        "cross_entropy:y,ignore_index=1": (np.maximum(labels, 0), None, None),
        "nll:y": (labels, -(onehot * y).sum() / 5, -onehot / 5),
        "mse:y": (t, (d * d).mean(), 2 * d / 30),
        "l1:y": (t, np.abs(d).mean(), np.sign(d) / 30),
        "huber:y,delta=0.7": (t, np.where(abs(d) < 0.7, d * d / 2, 0.7 * (abs(d) - 0.35)).mean(), np.clip(d, -0.7, 0.7) / 30),
        "bce_logits:y": (u, (np.log1p(np.exp(y)) - u * y).mean(), (s - u) / 30),
    }
    model, artifact = work / "loss.onnxtxt", work / "loss.partita"
    model.write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (double[6,5] x) => (double[6,5] y) {\n y = Identity (x)\n}\n')
    for loss, (target, value, gradient) in cases.items():
        if value is None:
            kept = target != 1
            chosen = np.where(kept[:, None], np.eye(5)[target], 0)
            value, gradient = -(chosen * logs).sum() / kept.sum(), (p * kept[:, None] - chosen) / kept.sum()
        compile_model(model, artifact, "--gradients", "inputs", "--loss", loss)
        np.savez(work / "in.npz", x=y, target=target)
        run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz")
        with np.load(work / "out.npz") as found:
            if not np.allclose(found["loss"], value, rtol=1e-12) or not np.allclose(found["x.grad"], gradient, rtol=1e-10, atol=1e-14):
                raise Failure(f"{loss}: {found['loss']} instead of {value}, gradient\n{found['x.grad']}\ninstead of\n{gradient}")
    print(f"{len(cases)} losses are what they are defined to be")


def check_saturated(work):
    """bce of probabilities that have come to 0 and to 1: the bounded logarithm, and gradients that are finite. Of what is no probability, the loss is NaN."""
    model, artifact = work / "bce.onnxtxt", work / "bce.partita"
    for dtype, kind, near in ((np.float64, "double", 1e-10), (np.float32, "float", 1e-4)):
        x, target = (each.reshape(-1).astype(dtype) for each in np.meshgrid([-700, -90, -20, -1, 0, 3, 5, 40, 700], [0, 0.3, 1]))
        model.write_text(f'<ir_version: 10, opset_import: ["" : 21]>\ng ({kind}[27] x) => ({kind}[27] y) {{\n y = Sigmoid (x)\n}}\n')
        compile_model(model, artifact, "--gradients", "inputs", "--loss", "bce:y")
        np.savez(work / "in.npz", x=x, target=target)
        run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz")
        y = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(dtype)
        bound = max(np.exp(-100), np.finfo(dtype).tiny)
        value, gradient = 0, 0
        for p, t, sign in ((y, target, -1), (1 - y, 1 - target, 1)):
            p, t, counts = p.astype(np.float64), t.astype(np.float64), p >= bound
            value = value - t * np.where(counts, np.log(np.where(counts, p, 1)), -100)
            gradient = gradient + sign * t * counts * (1 - p)
        with np.load(work / "out.npz") as found:
            if not np.allclose(found["loss"], value.mean(), rtol=near) or not np.allclose(found["x.grad"], gradient / 27, rtol=near, atol=near / 1e3):
                raise Failure(f"bce of {kind}: {found['loss']} instead of {value.mean()}, gradient\n{found['x.grad']}\ninstead of\n{gradient / 27}")
    model.write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (float[3] x) => (float[3] y) {\n y = Exp (x)\n}\n')
    compile_model(model, artifact, "--gradients", "inputs", "--loss", "bce:y")
    np.savez(work / "in.npz", x=np.array([-1, 0.5, -2], np.float32), target=np.array([1, 0, 0], np.float32))
    run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz")
    with np.load(work / "out.npz") as found:
        if not np.isnan(found["loss"]):
            raise Failure(f"the loss of 1.65, which is no probability, is {found['loss']}")
    print("bce has finite gradients at 0 and 1")


# (body, x, of whose three elements all are that, the derivative of the sum of y there, as PyTorch has it)
KINKS = [("y = Relu (x)", 0, 0), ("y = Abs (x)", 0, 0), ("y = LeakyRelu <alpha = 0.25> (x)", 0, 0.25), ("y = Softplus (x)", 0, 0.5), ("y = Mish (x)", 0, 0.6),
         ("y = Gelu (x)", 0, 0.5), ("y = Elu (x)", 0, 1), ("n = Neg (x)\n y = Max (x, n)", 0, 0), ("y = Max (x, x)", 3, 1), ("l = Constant <value = double {-1.0}> ()\n h = Constant <value = double {2.0}> ()\n y = Clip (x, l, h)", 2, 1),
         ("l = Constant <value = double {-1.0}> ()\n h = Constant <value = double {2.0}> ()\n y = Clip (x, l, h)", 2.5, 0), ("y = Softsign (x)", 0, 1),
         # Of equal ones each has its share.
         ("d = Mul (x, x)\n y = Max (x, d)", 1, 1.5), ("d = Mul (x, x)\n y = Min (x, d)", 1, 1.5), ("m = ReduceMax (x)\n y = Add (m, x)", 3, 2), ("m = ReduceMin (x)\n y = Add (m, x)", 3, 2),
         # What is not chosen is infinite there.
         ("y = Elu (x)", 1000, 1), ("y = Selu <gamma = 2.0> (x)", 1000, 2), ("f = Cast <to = 1> (x)\n c = Celu <alpha = 0.5> (f)\n y = Cast <to = 11> (c)", 100, 1),
         # Of those under a window the first one gets all.
         *((f"s = Constant <value = int64[3] {{1, 1, 3}}> ()\n r = Reshape (x, s)\n p = MaxPool <kernel_shape = [{size}]> (r)\n m = ReduceSum <keepdims = 0> (p)\n y = Add (m, x)", 3, wanted)
           for size, wanted in ((2, [4, 4, 1]), (3, [4, 1, 1])))]


def check_kinks(work):
    """Where a derivative is a convention, it is PyTorch's."""
    model, artifact = work / "kink.onnxtxt", work / "kink.partita"
    for body, at, wanted in KINKS:
        model.write_text(f'<ir_version: 10, opset_import: ["" : 21]>\ng (double[3] x) => (double[3] y) {{\n {body}\n}}\n')
        compile_model(model, artifact, "--gradients", "inputs", "--loss", "sum:y")
        np.savez(work / "in.npz", x=np.full(3, at, np.float64))
        run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz")
        with np.load(work / "out.npz") as found:
            if not np.allclose(found["x.grad"], wanted, rtol=1e-6, atol=1e-12):
                raise Failure(f"{body} at {at}: {found['x.grad']} instead of {wanted}")
    print(f"{len(KINKS)} kinks are PyTorch's")


NETWORK = '''<ir_version: 10, opset_import: ["" : 21]>
g (float[4,1,8,8] x) => (float[4,5] logits)
<float[3,1,3,3] conv_weight = {%s}, float[3] conv_bias = {%s}, float[27,6] fc1_weight = {%s}, float[6] fc1_bias = {%s}, float[6,5] fc2_weight = {%s}, float[2,2] unused = {1.5,2,3,4}, float[5,5] mask = {%s}>
{
  c = Conv <pads = [0, 0, 0, 0]> (x, conv_weight, conv_bias)
  r = Relu (c)
  m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
  f = Flatten (m)
  h = Gemm (f, fc1_weight, fc1_bias)
  g1 = Gelu (h)
  o = MatMul (g1, fc2_weight)
  k = MatMul (o, mask)
  logits = Add (o, k)
}
'''


def write_network(work, noise, samples=4):
    numbers = lambda count: ",".join(f"{v:.4f}" for v in noise.standard_normal(count) * 0.4)
    mask = ",".join("0" if i <= j else "1" for i in range(5) for j in range(5))
    model = work / "network.onnxtxt"
    text = NETWORK % (numbers(27), numbers(3), numbers(162), numbers(6), numbers(30), mask)
    model.write_text(text.replace("float[4,", f"float[{samples},"))
    return model


def check_network(work):
    """A network: a table of parameters, bits that do not depend on devices, frozen parameters."""
    noise = np.random.default_rng(3)
    model = write_network(work, noise)
    table = json.loads(run([BIN / "partita-compile", model, "--list-parameters", "--loss", "cross_entropy:logits", "--json"]))
    trained = {p["name"]: p["trained"] for p in table}
    reasons = {p["name"]: p.get("reason") for p in table}
    wanted = {"conv_weight": True, "conv_bias": True, "fc1_weight": True, "fc1_bias": True, "fc2_weight": True, "mask": False}
    if {k: v for k, v in trained.items() if k != "unused"} != wanted or reasons["mask"] != "it is a mask":
        raise Failure(f"parameters: {table}")
    np.savez(work / "in.npz", x=noise.standard_normal((4, 1, 8, 8)).astype(np.float32), target=np.array([0, 3, 4, 1]))
    found = []
    for flags in ((), ("--devices", 2), ("--devices", 3), ("--reference",), ("--freeze", "conv*"), ("--train-only", "fc2_weight")):
        artifact = work / "network.partita"
        compile_model(model, artifact, "--gradients", "--loss", "cross_entropy:logits", *flags)
        run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz")
        with np.load(work / "out.npz") as archive:
            found.append({name: archive[name] for name in archive.files})
    names = {f"{name}.grad" for name, isTrained in wanted.items() if isTrained} | {"loss"}
    if set(found[0]) != names or set(found[4]) != names - {"conv_weight.grad", "conv_bias.grad"} or set(found[5]) != {"loss", "fc2_weight.grad"}:
        raise Failure(f"outputs are {[sorted(f) for f in found]}")
    for name in names:
        if any(found[0][name].tobytes() != other[name].tobytes() for other in found[1:3]):
            raise Failure(f"{name}: other bits on several devices")
        reference = found[3][name]
        if not np.linalg.norm(found[0][name] - reference) <= 1e-5 * np.linalg.norm(reference) or not np.linalg.norm(reference) > 0:
            raise Failure(f"{name}: {found[0][name]} instead of {reference}")
    print("a network has the same gradients on one device, on several, and by reference loops")


def check_micro_batches(work):
    """Gradients of three micro-batches of four samples are those of twelve samples, with the same bits on several devices."""
    noise, artifact = np.random.default_rng(6), work / "steps.partita"
    images, labels = noise.standard_normal((24, 1, 8, 8)).astype(np.float32), noise.integers(0, 5, 24)
    labels[[1, 9, 10]] = -100  # so that micro-batches have different numbers of samples that count
    values = noise.standard_normal((24, 5)).astype(np.float32)

    def gradients(loss, target, samples, *flags, count=12, expect=0):
        compile_model(write_network(work, np.random.default_rng(3), samples), artifact, "--gradients", "--loss", loss, *flags)
        np.savez(work / "in.npz", x=images[:count], target=target[:count])
        said = run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz", expect=expect)
        if expect:
            return said
        with np.load(work / "out.npz") as archive:
            return {name: archive[name] for name in archive.files}

    for loss, target in (("cross_entropy:logits", labels), ("mse:logits", values), ("mse:logits,reduction=sum", values)):
        whole = gradients(loss, target, 12)
        found = [gradients(loss, target, 4, "--micro-batches", 3, *flags) for flags in ((), ("--devices", 2), ("--devices", 3, "--schedule", "gpipe"))]
        for name, wanted in whole.items():
            if not np.linalg.norm(found[0][name] - wanted) <= 1e-5 * np.linalg.norm(wanted) or not np.linalg.norm(wanted) > 0:
                raise Failure(f"{loss}: {name} of three micro-batches is {found[0][name]}, and of twelve samples {wanted}")
            if any(found[0][name].tobytes() != other[name].tobytes() for other in found[1:]):
                raise Failure(f"{loss}: {name} of three micro-batches has other bits on several devices")
        # Replicas sum their own micro-batches, in another order.
        dealt = gradients(loss, target, 4, "--micro-batches", 3, "--data-parallel", 3)
        for name, wanted in whole.items():
            if not np.linalg.norm(dealt[name] - wanted) <= 1e-5 * np.linalg.norm(wanted):
                raise Failure(f"{loss}: {name} of three replicas is {dealt[name]}, and of twelve samples {wanted}")
        if set(found[0]) != set(whole) or set(dealt) != set(whole):
            raise Failure(f"{loss}: outputs are {sorted(found[0])} and {sorted(dealt)}")
    flags = ("--micro-batches", 3)
    wrong = labels.copy()
    wrong[7] = 5
    for target, count, text in ((labels, 8, "a step is of 3 micro-batches of 4 samples: give a multiple of 12 samples, not 8"),
                                (labels, 24, "the results of several steps cannot be joined: give exactly 12 samples"), (wrong, 12, "5 at [7]")):
        said = gradients("cross_entropy:logits", target, 4, *flags, count=count, expect=1)
        if text not in said:
            raise Failure(f"{count} samples: the message is\n{said}\nand not: {text}")
    for given, text in ((("--micro-batches", 3, "--data-parallel", 2), "the micro-batches of a step (--micro-batches 3) cannot be dealt out to 2 replicas (--data-parallel) in equal parts"),):
        said = run([BIN / "partita-compile", work / "network.onnxtxt", "-o", work / "wrong.partita", "--gradients", "--loss", "mse:logits", *given], expect=1)
        if text not in said:
            raise Failure(f"{given}: the message is\n{said}\nand not: {text}")
    print("gradients of several micro-batches are those of all their samples")


KEPT = '''<ir_version: 10, opset_import: ["" : 21]>
g (float[3] x) => (float[6] y) <float[3] w = {1.0, 2.0, 3.0}, float[1] s = {2.0}> {
 m = Mul (x, w)
 axis = Constant <value = int64 {0}> ()
 c = CumSum (w, axis)
 n = Concat <axis = 0> (m, c)
 y = Mul (n, s)
}
'''


def check_kept(work):
    """A small parameter that meets only constants, and one of one element, stay parameters."""
    model, artifact = work / "kept.onnxtxt", work / "kept.partita"
    model.write_text(KEPT)
    compile_model(model, artifact, "--gradients", "--loss", "sum:y")
    x = np.array([5, 6, 7], np.float32)
    np.save(work / "x.npy", x)
    run_artifact(artifact, "--input", work / "x.npy", "--output", work / "out.npz")
    with np.load(work / "out.npz") as found:
        wanted = {"loss": 96, "w.grad": 2 * (x + [3, 2, 1]), "s.grad": [48]}
        if set(found.files) != set(wanted) or not all(np.array_equal(found[name], value) for name, value in wanted.items()):
            raise Failure(f"small parameters: {dict(found)} instead of {wanted}")
    print("small parameters have gradients")


def check_exporter(work):
    """What PyTorch's exporter notes: which tensors are parameters, whatever they look like, and which row of an embedding's table is padding."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        print(f"skipped: no {error.name} (tools/setup.sh installs it)")
        return
    noise = np.random.default_rng(8)
    table, frequencies = noise.standard_normal((5, 3)).astype(np.float32), np.array([0.5, 2, 4], np.float32)
    tensors = {"table": ("PARAMETER", table), "scale": ("PARAMETER", np.float32(1.5)), "gates": ("PARAMETER", np.array([[0, 1, 1], [1, 0, 1]], np.float32)),
               "frequencies": ("BUFFER", frequencies), "shift": ("CONSTANT_TENSOR", np.array([1, 2, 3], np.float32))}
    kind, infos = "pkg.torch.export.graph_signature.InputSpec.kind", []
    for name, (said, value) in tensors.items():
        infos.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, np.shape(value)))
        helper.set_metadata_props(infos[-1], {kind: said})
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("Mul", ["rows", "frequencies"], ["m"]), helper.make_node("Add", ["m", "shift"], ["a"]),
             helper.make_node("MatMul", ["gates", "a"], ["g"]), helper.make_node("Mul", ["g", "scale"], ["y"])]
    call = "%e : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args = (%p_table, %ids, 3), kwargs = {})"
    helper.set_metadata_props(nodes[0], {"pkg.torch.onnx.fx_node": call})
    nodes[-1].output[0] = "scaled"
    bias = np.array([[1, 0, 2]], np.float32)
    nodes += [helper.make_node("Constant", [], ["bias"], value=numpy_helper.from_array(bias)), helper.make_node("Add", ["scaled", "bias"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, [3])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
                              [numpy_helper.from_array(np.asarray(value), name) for name, (_, value) in tensors.items()], value_info=infos)
    model, artifact = work / "exported.onnx", work / "exported.partita"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)
    for flags, name in (((), "of gradients"), (("--optimizer", "sgd"), "of a training")):
        said = run([BIN / "partita-compile", model, "--list-parameters", "--loss", "sum:y", *flags, "--json"])
        listed = json.loads(next(line for line in said.splitlines() if line.startswith("[")))
        reasons = {p["name"]: p.get("reason") for p in listed}
        wanted = {"table": None, "scale": None, "gates": None, "frequencies": "it is a buffer", "shift": "it is a constant", "bias": "it is a constant"}
        if reasons != wanted:
            raise Failure(f"parameters {name}: {reasons} instead of {wanted}")
    # A tensor of which the exporter says nothing, as of what it has computed, is trained. A remark says so, unless the user has named it.
    graph.value_info.remove(next(info for info in graph.value_info if info.name == "table"))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), work / "folded.onnx")
    for flags, remarks in ((("--optimizer", "sgd"), 1), ((), 1), (("--freeze", "table"), 0), (("--train-only", "table"), 0)):
        said = run([BIN / "partita-compile", work / "folded.onnx", *(flags if "--optimizer" in flags else ("--gradients", *flags)), "--loss", "sum:y", "-o", work / "folded.partita"])
        if said.count("as it does others: table; torch") != remarks:
            raise Failure(f"{flags}: {remarks} remarks of tensors that nobody calls parameters were expected, and it says {said}")
    # The last number of a row counts from the end of the table: 3, too.
    ids = np.array([4, 3, -2])
    np.save(work / "ids.npy", ids)
    gates, dy = tensors["gates"][1], np.full((2, 3), 1.5)
    a = table[ids] * frequencies + tensors["shift"][1]
    back = (gates.T @ dy) * frequencies
    padded = np.zeros((5, 3))
    padded[4] = back[0]
    wanted = {"loss": (1.5 * (gates @ a) + bias).sum(), "scale.grad": (gates @ a).sum(), "gates.grad": dy @ a.T, "table.grad": padded}
    for flags in ((), ("--reference",), ("--devices", 2), ("--train-only", "frequencies")):
        compile_model(model, artifact, "--gradients", "--loss", "sum:y", *flags)
        run_artifact(artifact, "--input", work / "ids.npy", "--output", work / "out.npz")
        named = "--train-only" in flags
        expected = {"loss": wanted["loss"], "frequencies.grad": ((gates.T @ dy) * table[ids]).sum(0)} if named else wanted
        with np.load(work / "out.npz") as found:
            if set(found.files) != set(expected) or not all(np.allclose(found[key], value, rtol=1e-5, atol=1e-6) for key, value in expected.items()):
                raise Failure(f"exported by PyTorch {flags}: {dict(found)} instead of {expected}")
    print("of a model of PyTorch's, parameters have gradients, and no buffers and no row of padding")


def check_published(work):
    """A network whose loss ONNX Runtime's authors published, with the weights of their checkpoint; its gradients by formula, in f64."""
    data = pathlib.Path(os.environ.get("PARTITA_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    folder = data / "models" / "training" / "ort-mlp-training"
    if not folder.is_dir():
        print("skipped: no test data")
        return
    golden = json.loads((folder / "GOLDEN.json").read_text())
    stored = (folder / "checkpoint.ckpt").read_bytes()
    places = {"fc1.weight": (20268, (500, 784)), "fc1.bias": (1588348, (500,)), "fc2.weight": (108, (10, 500)), "fc2.bias": (20172, (10,))}
    inputs = {name: np.frombuffer(stored, "<f4", int(np.prod(shape)), offset).reshape(shape) for name, (offset, shape) in places.items()}
    inputs["input-0"] = np.array(json.loads((folder / "input-0.in").read_text().split("\n", 1)[1]), np.float32).reshape(2, 784)
    inputs["labels"] = np.array(golden["labels"], np.int32)
    np.savez(work / "in.npz", **inputs)
    artifact = work / "published.partita"
    compile_model(folder / "eval_model.onnx", artifact, "--gradients", "inputs", "--loss", "output:onnx::loss::21273", "--shape", "input-0=2x784", "--dim", "output-0_dim0=2")
    run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz")
    x, w1, b1, w2, b2 = (inputs[name].astype(np.float64) for name in ("input-0", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"))
    hidden = np.maximum(x @ w1.T + b1, 0)
    d = (softmax(hidden @ w2.T + b2) - np.eye(10)[inputs["labels"]]) / 2
    dh = (d @ w2) * (hidden > 0)
    wanted = {"fc2.weight": d.T @ hidden, "fc2.bias": d.sum(0), "fc1.weight": dh.T @ x, "fc1.bias": dh.sum(0), "input-0": dh @ w1}
    with np.load(work / "out.npz") as found:
        if not abs(found["loss"] - golden["loss_before"]) < 1e-6:
            raise Failure(f"the loss is {found['loss']}, and was published as {golden['loss_before']}")
        for name, value in wanted.items():
            apart = np.linalg.norm(found[f"{name}.grad"] - value) / np.linalg.norm(value)
            if not apart < 1e-6:
                raise Failure(f"{name}.grad differs from its formula by {apart} of its length")
    print("a published loss, and the gradients by formula")


# (body, outputs, flags, what the message must hold)
ERRORS = [
    ("y = Relu (a)", ("--loss", "mse:z"), "the model has no output 'z'; its outputs are 'y'"),
    ("y = Relu (a)", ("--loss", "square:y"), "there is no loss 'square'"),
    ("y = Relu (a)", ("--loss", "mse:y,delta=3"), "'delta=3' is no option of mse"),
    ("y = Relu (a)", ("--loss", "output:y"), "a loss is one number"),
    ("y = Relu (a)", ("--loss", "cross_entropy:y"), "a dimension of samples and one of classes"),
    ("y = Relu (a)", ("--loss", "mse:y:a"), "has an input 'a' already"),
    ("y = Relu (a)", ("--loss", "sum:y:t"), "compares with nothing"),
    ("y = Relu (a)", ("--loss", "mse:y", "--freeze", "nothing*"), "names no parameter"),
    ("y = Relu (a)", ("--loss", "mse:y"), "depends on no parameter that is trained"),
    ("y = Relu (a)", (), "of which loss?"),
    ("y = Relu (a)", ("--loss", "mse:y", "--expose", "--micro-batches", "2"), "--gradients, --expose and --micro-batches"),
    ("i = Cast <to = 7> (a)\n y = Cast <to = 1> (i)", ("--loss", "mse:y"), "depends on no parameter that is trained"),
]


def check_labels(work):
    """A label that is no class is an error of the run, and none that does not count."""
    model, artifact = work / "labels.onnxtxt", work / "labels.partita"
    model.write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (float[3,5] x) => (float[3,5] y) {\n y = Identity (x)\n}\n')
    compile_model(model, artifact, "--gradients", "inputs", "--loss", "cross_entropy:y")
    for labels, wrong in (([0, 4, 2], None), ([0, -100, 2], None), ([0, 5, 2], "5 at [1]"), ([0, 1, -1], "-1 at [2]")):
        np.savez(work / "in.npz", x=np.zeros((3, 5), np.float32), target=np.array(labels))
        said = run_artifact(artifact, "--input", work / "in.npz", expect=1 if wrong else 0)
        if wrong and (wrong not in said or "'target' is out of range: 0 to 4 are allowed" not in said):
            raise Failure(f"labels {labels}: {said}")
    said = run([BIN / "partita-compile", model, "-o", artifact, "--gradients", "inputs", "--loss", "mse:y", "--micro-batches", 2], expect=1)
    if "--gradients inputs and --micro-batches" not in said:
        raise Failure(f"two micro-batches: {said}")
    print("labels that are no classes are errors")


def check_unnamed(work):
    """One file may go without a name: it is for the input that the others are not for."""
    model, artifact = work / "unnamed.onnxtxt", work / "unnamed.partita"
    model.write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (float[3,5] x) => (float[3,5] y) {\n y = Identity (x)\n}\n')
    compile_model(model, artifact, "--gradients", "inputs", "--loss", "cross_entropy:y")
    x, target = work / "unnamed.x.npy", work / "unnamed.target.npy"
    np.save(x, np.arange(15, dtype=np.float32).reshape(3, 5))
    np.save(target, np.array([0, 4, 2]))
    ways = [(f"x={x}", f"target={target}"), (x, f"target={target}"), (f"target={target}", x), (target, f"x={x}")]
    found = set()
    for way in ways:
        run_artifact(artifact, "--input", way[0], "--input", way[1], "--output", work / "unnamed.npz")
        found.add((work / "unnamed.npz").read_bytes())
    if len(found) != 1:
        raise Failure("inputs without a name give other numbers")
    for way in ((x,), (x, target), (f"x={x}", f"target={target}", x)):
        said = run_artifact(artifact, *(word for path in way for word in ("--input", path)), expect=1)
        if "the model has 2 inputs; say which one" not in said:
            raise Failure(f"{way}: {said}")
    print("one input may go without a name")


def check_errors(work):
    model = work / "wrong.onnxtxt"
    for body, flags, text in ERRORS:
        model.write_text(f'<ir_version: 10, opset_import: ["" : 21]>\ng (float[4] a) => (float[4] y) {{\n {body}\n}}\n')
        said = run([BIN / "partita-compile", model, "-o", work / "wrong.partita", "--gradients", *flags], expect=1)
        if text not in said or (work / "wrong.partita").exists():
            raise Failure(f"{body} {flags}: the message is\n{said}\nand not: {text}")
    print("errors say what is wrong")


def check():
    words, first = [word for word in sys.argv[1:] if word != "--first"], "--first" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_ops(work, words, first)
        if not words:
            check_losses(work)
            check_micro_batches(work)
            if "PARTITA_TEST_TARGET" in os.environ:
                return  # what follows asks nothing more of a target
            check_kinks(work)
            check_saturated(work)
            check_network(work)
            check_kept(work)
            check_exporter(work)
            check_published(work)
            check_labels(work)
            check_unnamed(work)
            check_errors(work)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
