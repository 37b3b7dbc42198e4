"""Reductions, pools, norms, softmax, running sums, rankings."""

import math

from elementwise import calm, epilogue, limited
from graph import MOST_ELEMENTS, NUMBERS, Unsuitable, count
from contraction import image, windows
from shapes import axis, like


def reduce(g):
    op = g.choose("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
    types = ("f32", "f64", "f16", "bf16", "i32", "i64") if op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin") else ("f32", "f64", "f16")
    x = g.take(types, least=1)
    axes = sorted(g.rng.sample(range(x.rank), g.rng.randint(1, x.rank)))
    if g.chance(0.5):
        axes = list(range(x.rank - g.rng.randint(1, x.rank), x.rank))
    k = count([x.shape[a] for a in axes])
    if op in ("ReduceLogSum", "ReduceProd"):
        x = limited(g, x, 1.5, 0.5)
        if op == "ReduceProd" and k > 60:
            raise Unsuitable("overflow")
    if op == "ReduceLogSumExp":
        x = limited(g, x, 20)
    keep = g.choose(None, 0, 1)
    kept = [1 if i in axes else s for i, s in enumerate(x.shape)]
    shape = kept if keep != 0 else [s for i, s in enumerate(x.shape) if i not in axes]
    mag = x.mag if op in ("ReduceMax", "ReduceMin", "ReduceMean") else x.mag**2 * k if op == "ReduceSumSquare" else x.mag * k if op != "ReduceProd" else 100
    low = 0 if op in ("ReduceL1", "ReduceL2", "ReduceSumSquare") else x.low if op != "ReduceSum" else None
    result = dict(dtype=x.dtype, shape=shape, mag=mag, low=low, exact=x.exact and op in ("ReduceMax", "ReduceMin"))
    written = [a - x.rank for a in axes] if g.chance(0.3) else axes
    since = 13 if op == "ReduceSum" else 18
    if len(axes) == x.rank and g.chance(0.3):
        return epilogue(g, g.node(op, [x], result, keepdims=keep), 2)
    if g.opset >= since:
        y = g.node(op, [x, g.constant(written)], result, keepdims=keep)
    else:
        y = g.node(op, [x], result, axes=written, keepdims=keep)
    return epilogue(g, y, 2) if y.is_float else y


def across(g):
    """What a row gives, combined with the columns: the same sizes, in another place."""
    n = g.size(37)
    shape = (n, n, n) if n <= 11 and g.chance(0.4) else (n, n)
    x = g.pick(lambda v: v.is_float and v.shape == shape and v.mag < 100) or g.leaf("f32" if g.chance(0.8) else g.floats, shape)
    if g.chance(0.5):
        x = g.node(g.choose("Tanh", "Neg", "Abs"), [x], dict(dtype=x.dtype, shape=shape, mag=x.mag))
    op = g.choose("ReduceMax", "ReduceMean", "ReduceMin")
    last = {} if g.opset >= 18 else {"axes": [-1]}
    row = g.node(op, [x] + ([g.constant([-1])] if g.opset >= 18 else []), dict(dtype=x.dtype, shape=shape[:-1], mag=x.mag), keepdims=0, **last)
    if g.chance(0.3):
        row = g.node("Tanh", [row], dict(dtype=x.dtype, shape=shape[:-1], mag=1))
    if g.chance(0.3):  # two vectors of weights, along the two dimensions
        vectors = [g.leaf(x.dtype, (n,), 1, constant=True) for _ in range(2)]
        column = g.node("Unsqueeze", [vectors[1], g.constant([1])], dict(dtype=x.dtype, shape=(n, 1), mag=1, exact=True))
        for v in g.choose([vectors[0], column], [column, vectors[0]]):
            x = g.node("Add", [x, v], dict(dtype=x.dtype, shape=shape, mag=x.mag + 1), keep=False)
    y = g.node(g.choose("Add", "Sub", "Mul", "Max"), g.choose([x, row], [row, x]), dict(dtype=x.dtype, shape=shape, mag=max(2 * x.mag, x.mag**2)))
    return epilogue(g, y, 2)


def centred(g):
    """What takes a mean along an axis away again: a norm taken apart."""
    x = g.take(("f32", "f64", "f16"), least=2)
    x = limited(g, x, 30)
    place, _ = axis(g, x)
    kept = [1 if i == place else s for i, s in enumerate(x.shape)]
    mean = lambda v, mag: g.node("ReduceMean", [v, g.constant([place])] if g.opset >= 18 else [v], dict(dtype=x.dtype, shape=kept, mag=mag),
                                 keep=g.chance(0.1), **({} if g.opset >= 18 else {"axes": [place]}))
    d = g.node("Sub", [x, mean(x, x.mag)], dict(dtype=x.dtype, shape=x.shape, mag=2 * x.mag), keep=g.chance(0.2))
    square = g.node("Pow", [d, g.constant(2, x.dtype)], dict(dtype=x.dtype, shape=x.shape, mag=4 * x.mag**2, low=0), keep=False) if g.chance(0.5) else \
        g.node("Mul", [d, d], dict(dtype=x.dtype, shape=x.shape, mag=4 * x.mag**2, low=0), keep=False)
    deviation = g.node("Add", [mean(square, 4 * x.mag**2), g.constant(0.01, x.dtype)], dict(dtype=x.dtype, shape=kept, mag=4 * x.mag**2, low=0.01), keep=False)
    deviation = g.node("Sqrt", [deviation], dict(dtype=x.dtype, shape=kept, mag=2 * x.mag, low=0.1), keep=False)
    y = g.node("Div", [d, deviation], dict(dtype=x.dtype, shape=x.shape, mag=min(20 * x.mag, math.sqrt(max(1, x.shape[place])) + 1)))
    return epilogue(g, y, 3)


def softmax(g):
    x = g.take(("f32", "f64", "f16"), least=1)
    if g.values_kind != "special" and x.mag > 200:
        x = calm(g, x, 8)
    _, written = axis(g, x)
    op = g.choose("Softmax", "Softmax", "LogSoftmax")
    mag = 1 if op == "Softmax" else 2 * x.mag + 8
    y = g.node(op, [x], dict(dtype=x.dtype, shape=x.shape, mag=mag, low=0 if op == "Softmax" else None), axis=g.choose(written, None))
    return epilogue(g, y, 2)


def norm(g):
    x = g.take(("f32", "f64", "f16"), least=2)
    x = calm(g, x, 8) if x.mag > 100 and g.values_kind != "special" else x
    same = lambda mag: dict(dtype=x.dtype, shape=x.shape, mag=mag)
    op = g.choose("LayerNormalization", "BatchNormalization", "InstanceNormalization", "LpNormalization", "LRN", "GroupNormalization",
                  "MeanVarianceNormalization", "RMSNormalization")
    if op in ("LRN", "MeanVarianceNormalization"):
        x = image(g)
    if op in ("LayerNormalization", "RMSNormalization"):
        if g.opset < (17 if op[0] == "L" else 23):
            raise Unsuitable("opset")
        place = g.rng.randint(1, x.rank - 1)
        parameters = [g.leaf(x.dtype, x.shape[place:], 1) for _ in range(1 if op[0] == "R" else g.rng.randint(1, 2))]
        doubt = f"{op} of f64: it computes in f64 where stash_type says f32" if x.dtype == "f64" else x.doubt
        y = g.node(op, [x, *parameters], {**same(8), "doubt": doubt}, axis=g.choose(place, place - x.rank), epsilon=g.choose(None, 0.01))
    elif op == "BatchNormalization":
        parameters = [g.leaf(x.dtype, (x.shape[1],), 2, low) for low in (None, None, None, 0.5)]
        y = g.node(op, [x, *parameters], same(3 * x.mag + 6))
    elif op in ("InstanceNormalization", "GroupNormalization"):
        if x.rank < 3 or x.size == 0:
            raise Unsuitable("rank")
        groups = g.choose(*[d for d in range(1, x.shape[1] + 1) if x.shape[1] % d == 0])
        if op[0] == "G" and g.opset < 21:
            raise Unsuitable("opset")
        parameters = [g.leaf(x.dtype, (x.shape[1],), 1) for _ in range(2)]
        y = g.node(op, [x, *parameters], same(8), epsilon=0.01, **({"num_groups": groups} if op[0] == "G" else {}))
    elif op == "LpNormalization":
        x = limited(g, x, None, 0.25)
        _, written = axis(g, x)
        y = g.node(op, [x], dict(dtype=x.dtype, shape=x.shape, mag=1), axis=written, p=g.choose(1, 2))
    elif op == "LRN":
        if x.rank != 4 or x.dtype != "f32":
            raise Unsuitable("rank")
        y = g.node(op, [x], same(x.mag), size=g.choose(1, 3, 5), alpha=g.choose(None, 0.01), beta=g.choose(None, 0.5), bias=g.choose(None, 2.0))
    else:
        if x.rank != 4 or x.dtype != "f32":
            raise Unsuitable("rank")
        if min(x.shape) == 0 or x.shape[0] * x.shape[2] * x.shape[3] < 8 or x.exact is False:
            raise Unsuitable("a variance near zero")
        y = g.node(op, [x], same(8), axes=g.choose(None, [0, 2, 3]))
    return epilogue(g, y, 2)


def pool(g):
    x = image(g)
    op = g.choose("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    if op.startswith("Global"):
        shape = x.shape[:2] + (1,) * (x.rank - 2)
        mag = x.mag * x.size if op == "GlobalLpPool" else x.mag
        y = g.node(op, [x], dict(dtype=x.dtype, shape=shape, mag=mag, exact=x.exact and op == "GlobalMaxPool"), **({"p": g.choose(1, 2, 3)} if op == "GlobalLpPool" else {}))
        return epilogue(g, y, 3)
    kernel, sizes, more = windows(g, x.shape[2:], large=g.chance(0.25))
    since = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    if g.opset < since:
        if more["dilations"]:
            raise Unsuitable("opset")
    if more["dilations"] and min(x.shape[2:]) < max(more["dilations"]):
        raise Unsuitable("a window between the elements: ONNX Runtime takes one of them")
    pads = more.get("pads") or [0] * (2 * len(kernel))
    if any(p >= k for p, k in zip(pads, kernel * 2)):
        raise Unsuitable("a border as wide as the window")
    if op == "LpPool":
        x = limited(g, x, None, 0.1)
        more["p"] = g.choose(None, 1, 1, 2, 3)
    if op == "AveragePool":
        more["count_include_pad"] = g.choose(None, 1)
    shape = (x.shape[0], x.shape[1], *sizes)
    result = dict(dtype=x.dtype, shape=shape, mag=x.mag * (count(kernel) if op == "LpPool" else 1), exact=x.exact and op == "MaxPool")
    if op == "MaxPool" and g.chance(0.15) and x.exact and not g.dyadic:
        y, _ = g.node(op, [x], result, dict(dtype="i64", shape=shape, mag=100), kernel_shape=kernel, storage_order=g.choose(None, 1), **more)
    else:
        y = g.node(op, [x], result, kernel_shape=kernel, **more)
    # Exporters write a sum over windows as an average times their size, and an average as a sum of absolute values divided by it.
    if (op == "AveragePool" and g.chance(0.3)) or (op == "LpPool" and g.chance(0.5)):
        factor = g.choose(float(count(kernel)), 0.5, 3.0)
        y = g.node("Mul", [y, g.constant(factor, x.dtype)], dict(dtype=x.dtype, shape=shape, mag=result["mag"] * factor))
    return epilogue(g, y, 3)


def running(g):
    x = g.take(("f32", "f64", "i32", "i64"), least=1)
    x = limited(g, x, 50) if x.is_float else x
    place, written = axis(g, x)
    return g.node("CumSum", [x, g.constant(written)], dict(dtype=x.dtype, shape=x.shape, mag=x.mag * max(1, x.shape[place])),
                  exclusive=g.choose(None, 1), reverse=g.choose(None, 1))


def ranking(g):
    x = g.take(("f32", "f64", "i32", "i64"), least=1, suits=lambda v: v.size > 0)
    place, written = axis(g, x)
    op = g.choose("ArgMax", "ArgMin", "TopK", "Hardmax")
    if op == "TopK":
        k = g.rng.randint(1, x.shape[place])
        shape = [k if i == place else s for i, s in enumerate(x.shape)]
        y, indices = g.node(op, [x, g.constant([k])], like(x, shape), dict(dtype="i64", shape=shape, mag=x.shape[place]), axis=written, sharp=True,
                            largest=g.choose(None, 0, 1))
        y.fuzzy, y.exact = any(v.fuzzy for v in (x,)), x.exact
        return y
    if op == "Hardmax":
        if not x.is_float:
            raise Unsuitable("type")
        return g.node(op, [x], dict(dtype=x.dtype, shape=x.shape, mag=1, low=0, exact=True), axis=written, sharp=True)
    keep = g.choose(None, 0, 1)
    shape = [1 if i == place else s for i, s in enumerate(x.shape)] if keep != 0 else [s for i, s in enumerate(x.shape) if i != place]
    return g.node(op, [x], dict(dtype="i64", shape=shape, mag=x.shape[place]), axis=written, keepdims=keep, select_last_index=g.choose(None, None, 1), sharp=True)
