"""Quantised models, and products of integers."""

import numpy as np
from contraction import image, operand, product, weight, windows
from elementwise import calm, epilogue
from graph import MOST_ELEMENTS, Unsuitable, count


def scale_of(g, mag, kind):
    return max(mag, 0.1) / (127 if kind == "i8" else 255) * g.choose(1, 2)


def quantized(g, x, kind=None, axis=None):
    """`x` in integers of 8 bits, with what is needed to take it back."""
    kind = kind or g.choose("u8", "i8")
    if axis is None:
        scale = g.constant(scale_of(g, x.mag, kind), x.dtype)
        zero = g.constant(g.choose(0, 3, 128 if kind == "u8" else -5), kind)
    else:
        n = x.shape[axis]
        scale = g.constant(scale_of(g, x.mag, kind) * (1 + g.noise.random(n)), x.dtype)
        zero = g.constant(np.zeros(n), kind)
    y = g.node("QuantizeLinear", [x, scale, zero], dict(dtype=kind, shape=x.shape, mag=255), sharp=True, axis=axis, keep=g.chance(0.2))
    return y, scale, zero


def dequantized(g, q, scale, zero, axis=None):
    mag = float(np.max(np.abs(scale.data.astype(np.float64)), initial=0)) * 256
    return g.node("DequantizeLinear", [q, scale, zero] if zero is not None else [q, scale], dict(dtype=scale.dtype, shape=q.shape, mag=mag), axis=axis)


def fake(g):
    """Quantise, and take back."""
    x = operand(g, least=1)
    if x.dtype != "f32":
        raise Unsuitable("type")
    axis = g.rng.randrange(x.rank) if g.chance(0.3) else None
    q, scale, zero = quantized(g, x, axis=axis)
    return dequantized(g, q, scale, zero, axis)


def dequantize(g):
    kind = g.choose("u8", "i8", "i32")
    x = g.take((kind,), least=1)
    axis = g.rng.randrange(x.rank) if g.chance(0.5) else None
    n = x.shape[axis] if axis is not None else 1
    scale = g.constant(0.01 * (1 + g.noise.random(n)) if axis is not None else 0.02, "f32")
    zero = None if kind == "i32" or g.chance(0.3) else g.constant(np.full(n, 3) if axis is not None else 3, kind)
    return epilogue(g, dequantized(g, x, scale, zero, axis), 2)


def weights8(g, shape, axis):
    """Dequantised weights, one scale each or one for all."""
    kind = g.choose("i8", "i8", "u8")
    w = g.leaf(kind, shape, 100, 0 if kind == "u8" else -100, constant=True)
    each = axis is not None and g.chance(0.6)
    n = shape[axis] if each else None
    scale = g.constant(0.005 * (1 + g.noise.random(n)) if each else 0.01, "f32")
    zero = None if g.chance(0.4) else g.constant(np.full(n, 0 if kind == "i8" else 7) if each else g.choose(0, 2), kind)
    return dequantized(g, w, scale, zero, axis if each else None)


def qdq(g):
    """A product or convolution between dequantised operands, quantised again."""
    if g.chance(0.5):
        x = image(g, 2500)
        if x.dtype != "f32":
            raise Unsuitable("type")
        x = dequantized(g, *quantized(g, x))
        kernel, sizes, more = windows(g, x.shape[2:])
        groups = x.shape[1] if g.chance(0.2) else 1
        outputs = groups if groups > 1 else g.choose(1, 4, 8, 16)
        w = weights8(g, (outputs, x.shape[1] // groups, *kernel), 0)
        k = w.size // outputs
        if outputs * count(sizes) * x.shape[0] > MOST_ELEMENTS:
            raise Unsuitable("large")
        bias = [g.leaf("f32", (outputs,), 1, constant=True)] if g.chance(0.5) else []
        y = g.node("Conv", [x, w, *bias], dict(dtype="f32", shape=(x.shape[0], outputs, *sizes), mag=product(x.mag, 1, k)), group=groups if groups > 1 else None, **more)
    else:
        x = operand(g, least=2)
        if x.dtype != "f32":
            raise Unsuitable("type")
        x = dequantized(g, *quantized(g, x))
        w = weights8(g, (x.shape[-1], g.size(33)), 1)
        y = g.node("MatMul", [x, w], dict(dtype="f32", shape=x.shape[:-1] + w.shape[-1:], mag=product(x.mag, 1, x.shape[-1])))
    if g.chance(0.5):
        y = g.node("Relu", [y], dict(dtype="f32", shape=y.shape, mag=y.mag, low=0))
    if g.chance(0.5):
        return dequantized(g, *quantized(g, y))
    return epilogue(g, y, 3)


def integer_product(g):
    """MatMulInteger, ConvInteger and the QLinear ops on integers that are given."""
    left, right = g.choose("u8", "i8"), g.choose("i8", "i8", "u8")
    op = g.choose("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv")
    leaf = lambda kind, shape, constant=None: g.leaf(kind, shape, 120, 0 if kind == "u8" else -120, constant=constant)
    zero = lambda kind: g.constant(g.choose(0, 3, 100), kind)
    if "MatMul" in op:
        stack, m, k, n = g.shape(g.rng.randint(0, 2), 6), g.size(17), g.size(48), g.size(33)
        x, w = leaf(left, (*stack, m, k)), leaf(right, (k, n))
        shape, more = (*stack, m, n), {}
        # Its sums of nothing are what memory held; ours are 0.
        doubt = f"{op} over nothing: its result is not written" if k == 0 else ""
    else:
        doubt = ""
        c, n = g.choose(1, 3, 8, 16), g.choose(1, 4, 16, 17)
        x = leaf(left, (g.size(2), c, g.rng.randint(3, 12), g.rng.randint(3, 12)))
        kernel, sizes, more = windows(g, x.shape[2:])
        w = leaf(right, (n, c, *kernel))
        shape = (x.shape[0], n, *sizes)
    if "Integer" in op:
        zeros = g.choose([], [zero(left)], [zero(left), zero(right)])
        y = g.node(op, [x, w, *zeros], dict(dtype="i32", shape=shape, doubt=doubt, mag=1e6), **more)
        if g.chance(0.5):
            return y
        y = g.node("Cast", [y], dict(dtype="f32", shape=shape, mag=1e6), to=1, keep=False)
        return epilogue(g, g.node("Mul", [y, g.constant(1e-5, "f32")], dict(dtype="f32", shape=shape, mag=10)), 3)
    number = lambda value: g.constant(value, "f32")
    out = left
    result = dict(dtype=out, shape=shape, doubt=doubt, mag=255, fuzzy=True)
    y_scale = 0.02 * w.shape[0] if "MatMul" in op else 0.02 * (w.size // w.shape[0])
    each = op == "QLinearConv" and g.chance(0.4)
    w_scale = g.constant(0.01 * (1 + g.noise.random(w.shape[0])), "f32") if each else number(0.01)
    w_zero = g.constant(np.zeros(w.shape[0]) if each else 0, right) if each or right == "i8" else zero(right)
    inputs = [x, number(0.02), zero(left), w, w_scale, w_zero, number(y_scale), zero(out)]
    if op == "QLinearConv" and g.chance(0.5):
        inputs.append(g.constant(g.noise.integers(-500, 500, w.shape[0]), "i32"))
    return g.node(op, inputs, result, **more)


def dynamic(g):
    x = operand(g, least=1)
    if x.dtype != "f32" or x.size == 0:
        raise Unsuitable("type")
    y, scale, zero = g.node("DynamicQuantizeLinear", [x], dict(dtype="u8", shape=x.shape, mag=255, fuzzy=not x.exact), dict(dtype="f32", shape=(), mag=1),
                            dict(dtype="u8", shape=(), mag=255, fuzzy=True), sharp=True)
    scale.fuzzy = False
    # Without VNNI, ONNX Runtime saturates sums of two products at 16 bits: 2 * 255 * 60 fit.
    w = g.leaf("u8" if g.chance(0.3) else "i8", (x.shape[-1], g.size(17)), 60, 0, constant=True)
    z = g.node("MatMulInteger", [y, w, zero], dict(dtype="i32", shape=x.shape[:-1] + w.shape[-1:], mag=1e6, fuzzy=True), keep=False)
    z.tensor = True
    z = g.node("Cast", [z], dict(dtype="f32", shape=z.shape, mag=1e6), to=1, keep=False)
    return g.node("Mul", [z, scale], dict(dtype="f32", shape=z.shape, mag=1e4), keep=False)
