#!/usr/bin/env python3
"""Gradients that a model itself asks for (the op Gradient): first and second derivatives against central differences of the same model in f64, what is a
variable and what is a constant, models of one device and several (equal bits), and wrong nodes.
"""

import pathlib
import sys
import tempfile

from harness import BIN, SKIPPED, Failure, compile_model, main, run, run_artifact

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

# Inputs by name, a body that computes y of them and of the weights, and what y is differentiated to.
WEIGHTS = "<double[3,4] w = {0.3,-0.5,0.7,0.2,0.9,-0.4,0.1,-0.8,0.6,-0.2,0.5,-0.1}, double[4] bias = {0.2,-0.3,0.1,0.4}>"
CASES = {
    "a polynomial": ({"x": (5,)}, "a = Mul (x, x)\n y = Mul (a, x)", ["x"]),
    "a layer": ({"x": (2, 3)}, "p = MatMul (x, w)\n s = Add (p, bias)\n t = Tanh (s)\n y = Mul (t, t)", ["x", "w", "bias"]),
    "a weight of its own": ({"x": (2, 3)}, "p = MatMul (x, w)\n y = Sigmoid (p)", ["w"]),
    "logarithms of probabilities": ({"x": (2, 3)}, "p = MatMul (x, w)\n l = LogSoftmax <axis = 1> (p)\n i = Constant <value = int64[2,1] {2, 0}> ()\n y = GatherElements <axis = 1> (l, i)", ["x", "w"]),
    "a convolution": ({"x": (1, 2, 5, 5), "k": (3, 2, 3, 2)}, "c = Conv <pads = [1, 0, 0, 1], strides = [2, 1]> (x, k)\n e = Exp (c)\n y = AveragePool <kernel_shape = [2, 2]> (e)", ["x", "k"]),
    "a largest element": ({"x": (1, 1, 6, 6)}, "m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)\n s = Mul (m, m)\n y = Mul (s, m)", ["x"]),
    "attention": ({"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 3)}, "a = Attention (q, k, v)\n y = Mul (a, a)", ["q", "k", "v"]),
    "moved elements": ({"x": (3, 4), "u": (2, 4)}, "i = Constant <value = int64[3] {0, 2, 0}> ()\n g = Gather <axis = 1> (x, i)\n t = Transpose (g)\n j = Constant <value = int64[2,1] {0, 2}> ()\n"
                       " z = ScatterND <reduction = \"add\"> (x, j, u)\n e = Exp (t)\n r = ReduceSum <keepdims = 0> (e)\n h = Sinh (z)\n y = Mul (h, r)", ["x", "u"]),
}
HEAD = '<ir_version: 10, opset_import: ["" : 23, "ai.onnx.preview.training" : 1]>\n'
GRADIENT = "ai.onnx.preview.training.Gradient"


def gradient(results, y, xs, values=None, zs=()):
    names = lambda strings: ", ".join(f'"{name}"' for name in strings)
    zs_text = f", zs = [{names(zs)}]" if zs else ""
    return f' {", ".join(results)} = {GRADIENT} <xs = [{names(xs)}], y = "{y}"{zs_text}> ({", ".join(values or [*xs, *zs])})\n'


class Model:
    def __init__(self, work, text, *flags):
        self.work, self.artifact = work, work / "model.partita"
        (work / "model.onnxtxt").write_text(text)
        compile_model(work / "model.onnxtxt", self.artifact, *flags)

    def __call__(self, **inputs):
        np.savez(self.work / "in.npz", **inputs)
        run_artifact(self.artifact, "--input", self.work / "in.npz", "--output", self.work / "out.npz")
        with np.load(self.work / "out.npz") as found:
            return {name: found[name] for name in found.files}


def check_case(work, name, shapes, body, xs):
    """All first derivatives, and the second ones of the sum of the first one's squares, along a random direction of each tensor."""
    noise = np.random.default_rng(3)
    inputs = {x: noise.uniform(-1, 1, shape) for x, shape in shapes.items()}
    weights = {"w": (3, 4), "bias": (4,)}
    weights = {x: weights[x] for x in xs if x in weights}
    # A weight is fed as a tensor of another name, so that it can be moved.
    fed = {x: f"{x}_at" for x in weights}
    values = {fed[x]: noise.uniform(-1, 1, shape) for x, shape in weights.items()}
    declared = [f"double[{', '.join(map(str, v.shape))}] {k}" for k, v in [*inputs.items(), *values.items()]]
    at = [fed.get(x, x) for x in xs]
    # y where the weights have the fed values: the same body on other names.
    moved = body.replace("(p, bias)", "(p, bias_at)").replace("(x, w)", "(x, w_at)") if weights else body
    text = HEAD + f"g ({', '.join(declared)}) => (double f, double[n] unused) {WEIGHTS} {{\n {moved}\n"
    text += " f = ReduceSum <keepdims = 0> (y)\n"
    text += gradient([f"d_{x}" for x in xs], "y", at)
    squares = [f"s_{x}" for x in xs]
    text += "".join(f" q_{x} = Mul (d_{x}, d_{x})\n s_{x} = ReduceSum <keepdims = 0> (q_{x})\n" for x in xs)
    text += f" n = Sum ({', '.join(squares)})\n" + gradient([f"h_{x}" for x in xs], "n", at) + "}\n"
    outputs = ", ".join(["double f", "double n", *(f"double[{', '.join('abcd'[:len({**shapes, **weights}[x])])}] {k}_{x}" for x in xs for k in "dh")])
    text = text.replace("double f, double[n] unused", outputs)
    model = Model(work, text)
    every = {**inputs, **values}
    here = model(**every)
    for x in xs:
        direction = noise.standard_normal({**shapes, **weights}[x])
        moved_to = lambda step: model(**{**every, fed.get(x, x): every[fed.get(x, x)] + step * direction})
        ahead, behind = moved_to(1e-5), moved_to(-1e-5)
        for value, derivative in (("f", "d"), ("n", "h")):
            wanted = (ahead[value] - behind[value]) / 2e-5
            found = (here[f"{derivative}_{x}"] * direction).sum()
            if not abs(found - wanted) <= 1e-6 * max(1, abs(wanted)) or wanted == 0:
                raise Failure(f"{name}: the derivative of {value} to {x} is {found}, and differences say {wanted}")


def check_cases(work):
    for name, (shapes, body, xs) in CASES.items():
        check_case(work, name, shapes, body, xs)
    print(f"first and second derivatives of {len(CASES)} models agree with differences")


def check_definitions(work):
    """What is a variable, and at which values: by formula."""
    x, c, other = np.array([0.5, -1, 2]), np.array([3.0, 4, 5]), np.array([1.0, 10, 100])
    cube = " a = Mul (x, x)\n y = Mul (a, x)\n"
    vector = "double[3]"
    cases = {
        "third derivatives": (cube + gradient(["d"], "y", ["x"]) + gradient(["h"], "d", ["x"]) + gradient(["r"], "h", ["x"]), {"x": x}, np.full(3, 6)),
        "a fourth one, which is zero": (cube + gradient(["d"], "y", ["x"]) + gradient(["h"], "d", ["x"]) + gradient(["t"], "h", ["x"]) + gradient(["r"], "t", ["x"]), {"x": x}, np.zeros(3)),
        "to an intermediate tensor": (" h = Exp (x)\n y = Mul (h, h)\n" + gradient(["r"], "y", ["h"]), {"x": x}, 2 * np.exp(x)),
        "at another value": (" h = Exp (x)\n y = Mul (h, h)\n" + gradient(["r"], "y", ["h"], ["other"]), {"x": x, "other": other}, 2 * other),
        "another name of a tensor": (" same = Identity (x)\n y = Mul (same, x)\n" + gradient(["r"], "y", ["same"], zs=["x"]), {"x": x}, x),
        "one tensor as two variables": (" y = Mul (x, other)\n" + gradient(["r", "s"], "y", ["x", "other"], ["c", "c"]), {"x": x, "other": other, "c": c}, c),
        "a constant": (" k = Constant <value = double[3] {1.5, 2.5, -1.0}> ()\n y = Mul (k, k)\n z = Mul (k, x)\n" + gradient(["g"], "y", ["k"]) + " r = Mul (g, x)\n", {"x": x}, 2 * np.array([1.5, 2.5, -1]) * x),
        "what is fixed": (" y = Mul (x, c)\n" + gradient(["r"], "y", ["x"], ["x", "other"], ["c"]), {"x": x, "c": c, "other": other}, other),
        "through integers": (" i = Cast <to = 7> (x)\n f = Cast <to = 11> (i)\n y = Mul (f, f)\n" + gradient(["r"], "y", ["x"]), {"x": x}, np.zeros(3)),
        "a norm of zeros": (" y = ReduceL2 <keepdims = 0> (x)\n" + gradient(["r"], "y", ["x"]), {"x": np.zeros(3)}, np.zeros(3)),
        "a normalized vector of zeros": (" n = LpNormalization (x)\n y = Mul (n, n)\n" + gradient(["r"], "y", ["x"]), {"x": np.zeros(3)}, np.zeros(3)),
        "the second of two": (" y = Mul (x, other)\n" + gradient(["", "r"], "y", ["x", "other"]), {"x": x, "other": other}, x),
        "in a branch": (" t = Constant <value = bool {1}> ()\n r = If (t) <then_branch = b () => (double[3] q) {\n" + cube + gradient(["q"], "y", ["x"]) +
                        " }, else_branch = e () => (double[3] p) { p = Identity (x) }>\n", {"x": x}, 3 * x * x),
        "in a function": (" m = local.slope (x, c)\n r = local.slope (m, x)\n", {"x": x, "c": c}, 2 * (2 * x * c) * x),
    }
    function = f'<domain: "local", opset_import: ["" : 23, "ai.onnx.preview.training" : 1]>\nslope (a, b) => (d) {{\n s = Mul (a, a)\n y = Mul (s, b)\n{gradient(["d"], "y", ["a"], zs=["b"])}}}\n'
    for name, (body, inputs, wanted) in cases.items():
        declared = ", ".join(f"{vector} {key}" for key in inputs)
        text = HEAD.replace('"ai.onnx', '"local" : 1, "ai.onnx') + f"g ({declared}) => ({vector} r) {{\n{body}}}\n{function}"
        found = Model(work, text)(**inputs)["r"]
        if not np.allclose(found, wanted, rtol=1e-12, atol=1e-12):
            raise Failure(f"{name}: {found} instead of {wanted}")
    print(f"{len(cases)} gradients are what they are defined to be")


def check_recurrent(work):
    """A recurrent layer, in f32: against differences of a larger step."""
    noise = np.random.default_rng(4)
    shapes = {"x": (3, 2, 3), "w": (1, 12, 3), "r": (1, 12, 4)}
    inputs = {name: noise.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    declared = ", ".join(f"float[{', '.join(map(str, shape))}] {name}" for name, shape in shapes.items())
    model = Model(work, HEAD + f"g ({declared}) => (float f, float[a,b,c] dr) {{\n y, last = GRU <hidden_size = 4> (x, w, r)\n f = ReduceSum <keepdims = 0> (y)\n" + gradient(["dr"], "y", ["r"], zs=["x", "w"]) + "}\n")
    direction = noise.standard_normal(shapes["r"]).astype(np.float32)
    moved = [model(**{**inputs, "r": inputs["r"] + step * direction})["f"] for step in (1e-2, -1e-2)]
    wanted, found = (moved[0] - moved[1]) / 2e-2, (model(**inputs)["dr"] * direction).sum()
    if not abs(found - wanted) <= 1e-3 * abs(wanted):
        raise Failure(f"a recurrent layer: {found}, and differences say {wanted}")
    print("the gradient of a recurrent layer agrees with differences")


PENALTY = HEAD + """g (float[4,3] x) => (float[4,1] d, float z)
<float[3,5] w = {0.3,-0.5,0.7,0.2,0.9,-0.4,0.1,-0.8,0.6,-0.2,0.5,-0.1,0.8,-0.7,0.4}, float[5,1] v = {0.2,-0.9,0.4,0.7,-0.6}> {
  p = MatMul (x, w)
  t = Tanh (p)
  d = MatMul (t, v)
  slope = ai.onnx.preview.training.Gradient <xs = ["x"], y = "d"> (x)
  s = Mul (slope, slope)
  z = ReduceSum <keepdims = 0> (s)
}
"""


def check_penalty(work):
    """A penalty for steep slopes, as some losses have it: its gradients by --gradients, on one device and on several."""
    noise = np.random.default_rng(5)
    x = noise.standard_normal((4, 3)).astype(np.float32)
    found = [Model(work, PENALTY, "--gradients", "--loss", "output:z", *flags)(x=x) for flags in ((), ("--devices", 2), ("--devices", 3))]
    for other in found[1:]:
        if any(found[0][name].tobytes() != other[name].tobytes() for name in found[0]):
            raise Failure("a penalty has other bits on several devices")
    w = np.array([0.3, -0.5, 0.7, 0.2, 0.9, -0.4, 0.1, -0.8, 0.6, -0.2, 0.5, -0.1, 0.8, -0.7, 0.4]).reshape(3, 5)
    v = np.array([0.2, -0.9, 0.4, 0.7, -0.6])

    def penalty(w, v):
        t = np.tanh(x.astype(np.float64) @ w)
        return ((((1 - t * t) * v) @ w.T) ** 2).sum()

    for name, at, of in (("w", w, lambda w: penalty(w, v)), ("v", v, lambda v: penalty(w, v))):
        for i in range(at.size):
            step = np.zeros(at.size)
            step[i] = 1e-5
            wanted = (of(at + step.reshape(at.shape)) - of(at - step.reshape(at.shape))) / 2e-5
            got = found[0][f"{name}.grad"].reshape(-1)[i]
            if not abs(got - wanted) <= 1e-4 * max(1, abs(wanted)):
                raise Failure(f"a penalty: {name}.grad[{i}] is {got}, and differences say {wanted}")
    print("a loss of a gradient has gradients, with the same bits on several devices")


# (body, what the message must hold)
ERRORS = [
    (" a = Identity (x)\n y = Exp (a)\n" + gradient(["r"], "y", ["x", "c"]), "'y' does not depend on 'c'"),
    (" one = Constant <value = int64 {0}> ()\n [running] p = BitwiseNot (one)\n y = local.products (x)\n [slope]" + gradient(["r"], "y", ["x"]), "has no derivative, and a gradient of the model needs it ("),
]


def check_errors(work):
    products = '<domain: "local", opset_import: ["" : 23]>\nproducts (a) => (p) {\n z = Constant <value = int64[3,1] {0, 1, 0}> ()\n p = ScatterND <reduction = "mul"> (a, z, a)\n}\n'
    for body, wanted in ERRORS:
        (work / "wrong.onnxtxt").write_text(HEAD.replace('"ai.onnx', '"local" : 1, "ai.onnx') + f"g (double[3] x, double[3] c) => (double[3] r) {{\n{body}}}\n{products}")
        said = run([BIN / "partita-compile", work / "wrong.onnxtxt", "-o", work / "wrong.partita"], expect=1)
        if wanted not in said or (work / "wrong.partita").exists():
            raise Failure(f"{body}: the message is\n{said}\nand not: {wanted}")
    print("wrong nodes are errors")


def check():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_definitions(work)
        check_cases(work)
        check_recurrent(work)
        check_penalty(work)
        check_errors(work)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
