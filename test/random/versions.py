"""Models of opsets in which an op exists that the others have not: what was retired, and what is new."""

import numpy as np
import contraction
import elementwise
import shapes
from graph import FLOATS, MOST_ELEMENTS, TYPES, Unsuitable, count, onnx_type
from indexing import distinct
from shapes import axis, like


def picture(g):
    return g.take(("f32",), rank=4, most=2000, suits=lambda v: min(v.shape) > 0)


# -- opset 1 ----------------------------------------------------------------------------------------------------------------------------------------


def affine(g):
    x = g.take(("f32",))
    return g.node("Affine", [x], dict(dtype="f32", shape=x.shape, mag=2 * x.mag + 1), alpha=g.choose(0.5, 2.0, -1.0), beta=g.choose(0.0, 1.0, -0.5))


def image_scaler(g):
    x = picture(g)
    bias = [g.rng.uniform(-1, 1) for _ in range(x.shape[1])]
    return g.node("ImageScaler", [x], dict(dtype="f32", shape=x.shape, mag=2 * x.mag + 1), scale=g.choose(0.5, 2.0, 1.0), bias=bias)


def crop(g):
    x = picture(g)
    h, w = x.shape[2:]
    left, top = g.rng.randrange(w), g.rng.randrange(h)
    height, width = g.rng.randint(1, h - top), g.rng.randint(1, w - left)
    border = [left, top, w - left - width, h - top - height]
    scale = [height, width] if g.chance(0.4) else None
    return g.node("Crop", [x], like(x, (*x.shape[:2], height, width)), border=border, scale=scale)


def simple(g):
    x = g.take(("f32",))
    op = g.choose("Relu", "Sigmoid", "Tanh", "Abs", "Neg")
    return g.node(op, [x], dict(dtype="f32", shape=x.shape, mag=max(1, x.mag), exact=op in elementwise.EXACT and x.exact))


# -- opset 9 ----------------------------------------------------------------------------------------------------------------------------------------


def scatter(g):
    x = g.take(("f32", "i64", "i32"), least=1, suits=lambda v: v.size > 0)
    place, written = axis(g, x)
    rows = g.rng.randint(1, x.shape[place])
    shape = [rows if i == place else g.rng.randint(1, s) for i, s in enumerate(x.shape)]
    where = np.zeros(shape, np.int64)
    for at in np.ndindex(*[s for i, s in enumerate(shape) if i != place]):
        key = list(at)
        key.insert(place, slice(None))
        where[tuple(key)] = distinct(g, x.shape[place], rows)
    updates = g.leaf(x.dtype, shape, 2)
    return g.node("Scatter", [x, g.constant(np.maximum(where, where % x.shape[place])), updates],
                  dict(dtype=x.dtype, shape=x.shape, mag=max(x.mag, 2), exact=x.exact), axis=place)


def upsample(g):
    x = picture(g)
    ratio = [1.0, 1.0, g.choose(1.0, 2.0, 3.0), g.choose(1.0, 2.0, 3.0)]
    shape = [int(s * r) for s, r in zip(x.shape, ratio)]
    if count(shape) > MOST_ELEMENTS:
        raise Unsuitable("size")
    mode = g.choose("nearest", "linear")
    result = dict(dtype="f32", shape=shape, mag=x.mag, exact=mode == "nearest" and x.exact)
    return g.node("Upsample", [x, g.constant(ratio, "f32")], result, mode=mode)


# -- opset 26 ---------------------------------------------------------------------------------------------------------------------------------------


def cum_prod(g):
    x = elementwise.limited(g, g.take(("f32", "f64", "i32", "i64"), least=1), 1.5)
    place, written = axis(g, x)
    mag = min(max(x.mag, 1) ** min(x.shape[place], 60), 1e30)
    return g.node("CumProd", [x, g.constant(written)], dict(dtype=x.dtype, shape=x.shape, mag=mag), exclusive=g.choose(None, 1), reverse=g.choose(None, 1))


def bit_cast(g):
    """Where rounding may have changed bits, the numbers they stand for would show it hugely: only what is exact."""
    x = g.take(("f32", "i32", "u32", "i16", "f16", "i8", "u8", "i64"), suits=lambda v: v.exact)
    if not x.exact:
        raise Unsuitable("rounded")
    size = np.dtype(TYPES[x.dtype][0]).itemsize
    to = g.choose(*(t for t in ("i32", "u32", "i16", "u16", "i8", "u8", "i64", "u64") if np.dtype(TYPES[t][0]).itemsize == size))
    return g.node("BitCast", [x], dict(dtype=to, shape=x.shape, mag=2.0 ** (8 * size)), to=onnx_type(to))


plain = {shapes.transpose: 4, shapes.reshape: 2, shapes.concat: 2, shapes.flatten: 1}
MAKERS = {
    1: {affine: 4, image_scaler: 4, crop: 4, simple: 4},
    9: {scatter: 8, upsample: 8, simple: 3, elementwise.binary: 5, contraction.conv: 5, contraction.matmul: 3, **plain},
    26: {cum_prod: 8, bit_cast: 8, elementwise.unary: 3, elementwise.binary: 5, contraction.conv: 4, contraction.matmul: 3, shapes.slice_: 2, **plain},
}
