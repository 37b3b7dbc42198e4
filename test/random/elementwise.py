"""Pointwise ops, with operands that broadcast in every way, and chains of them behind other ops."""

from graph import FLOATS, INTEGERS, NUMBERS, SIGNED, UNSIGNED, Unsuitable, count, onnx_type

# What a function does to the bounds of its operand: name: (most |x|, least x, most |y|, least y). None: no bound.
FUNCTIONS = {
    "Relu": (None, None, None, 0), "Sigmoid": (None, None, 1, 0), "Tanh": (None, None, 1, None), "Erf": (None, None, 1, None),
    "Softplus": (40, None, None, 0), "Softsign": (None, None, 1, None), "HardSigmoid": (None, None, 1, 0), "HardSwish": (None, None, None, None),
    "Elu": (None, None, None, -1), "Selu": (None, None, None, -2), "Celu": (None, None, None, None), "LeakyRelu": (None, None, None, None),
    "ThresholdedRelu": (None, None, None, 0), "Mish": (30, None, None, None), "Gelu": (None, None, None, None), "Swish": (None, None, None, None),
    "Exp": (6, None, 404, 0), "Log": (None, 0.05, 12, None), "Sqrt": (None, 0, None, 0), "Reciprocal": (None, 0.1, 10, 0),
    "Abs": (None, None, None, 0), "Neg": (None, None, None, None), "Sin": (100, None, 1, None), "Cos": (100, None, 1, None),
    "Tan": (1.2, None, 3, None), "Asin": (0.95, None, 1.6, None), "Acos": (0.95, None, 3.2, 0), "Atan": (None, None, 1.6, None),
    "Sinh": (5, None, 75, None), "Cosh": (5, None, 75, 0), "Asinh": (None, None, 12, None), "Acosh": (None, 1.05, 12, 0), "Atanh": (0.95, None, 2, None),
    "Shrink": (None, None, None, None),
}
SHARP = ("ThresholdedRelu", "Shrink")
SINCE = {"Mish": 18, "Gelu": 20, "HardSwish": 14, "Swish": 24}
EXACT = ("Relu", "Abs", "Neg")


def limited(g, x, most=None, least=None):
    """`x`, or something like it within bounds."""
    if g.values_kind == "special":
        return x
    if least is not None and (x.low is None or x.low < least):
        x = g.node("Abs", [x], dict(dtype=x.dtype, shape=x.shape, mag=x.mag, low=0, exact=x.exact), keep=False)
        if least > 0:
            x = g.node("Add", [x, g.constant(least, x.dtype)], dict(dtype=x.dtype, shape=x.shape, mag=x.mag + least, low=least), keep=False)
    if most is not None and x.mag > most:
        x = calm(g, x, most, least)
    return x


def calm(g, x, most, least=None):
    """Bounds what has grown large, in one of several ways."""
    how = g.choose("scale", "clip", "squash") if least in (None, 0) else "clip"
    if how == "scale":
        factor = g.constant(most / x.mag, x.dtype)
        return g.node("Mul", [x, factor] if g.chance(0.5) else [factor, x], dict(dtype=x.dtype, shape=x.shape, mag=most, low=0 if least == 0 else None))
    if how == "squash":
        y = g.node("Tanh", [x], dict(dtype=x.dtype, shape=x.shape, mag=1))
        return y if most >= 1 else g.node("Mul", [y, g.constant(most, x.dtype)], dict(dtype=x.dtype, shape=x.shape, mag=most))
    low = -most if least is None else least
    result = dict(dtype=x.dtype, shape=x.shape, mag=most, low=least, exact=x.exact)
    if g.opset < 11:
        return g.node("Clip", [x], result, min=float(low), max=float(most))
    return g.node("Clip", [x, g.constant(low, x.dtype), g.constant(most, x.dtype)], result)


def attributes_of(g, op):
    if op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "Swish"):
        return {"alpha": g.choose(None, 0.5, 0.25, 1.5)}
    if op == "HardSigmoid":
        return {"alpha": g.choose(None, 0.5), "beta": g.choose(None, 0.25)}
    if op == "Selu":
        return {"alpha": g.choose(None, 1.5), "gamma": g.choose(None, 1.25)}
    if op == "Gelu":
        return {"approximate": g.choose(None, "none", "tanh")}
    if op == "Shrink":
        return {"lambd": g.choose(0.5, 1.0), "bias": g.choose(0.0, 0.5)}
    return {}


def unary(g, x=None, only=None):
    x = x or g.take()
    op = only or g.choose(*(f for f in FUNCTIONS if SINCE.get(f, 1) <= g.opset))
    if op == "Celu" and x.dtype != "f32":
        op = "Elu"
    most_x, least_x, most_y, least_y = FUNCTIONS[op]
    x = limited(g, x, most_x, least_x)
    mag = x.mag if most_y is None else most_y
    return g.node(op, [x], dict(dtype=x.dtype, shape=x.shape, mag=mag, low=least_y, exact=op in EXACT and x.exact), sharp=op in SHARP, **attributes_of(g, op))


def rounding(g):
    x = g.take()
    op = g.choose("Floor", "Ceil", "Round", "Sign")
    return g.node(op, [x], dict(dtype=x.dtype, shape=x.shape, mag=max(1, x.mag), exact=True), sharp=True)


def partner_shape(g, shape):
    """A shape that broadcasts with `shape`, to it or beyond, and a word for how."""
    rank = len(shape)
    how = g.choose("scalar", "one", "channel", "last", "batch", "full", "full", "some", "some", "wider", "grown")
    if rank == 0 and how not in ("scalar", "one", "wider"):
        how = "scalar"
    if how == "scalar":
        return (), how
    if how == "one":
        return (1,) * g.rng.randint(1, max(1, rank)), how
    if how == "channel" and rank > 1:
        tail = (shape[1],) + (1,) * (rank - 2)
        return ((1,) + tail if g.chance(0.5) else tail), how
    if how == "last":
        return shape[-1:], how
    if how == "batch":
        return shape[:1] + (1,) * (rank - 1), how
    if how == "some":
        some = tuple(s if g.chance(0.5) else 1 for s in shape)
        while some and some[0] == 1 and g.chance(0.5):
            some = some[1:]
        return some, how
    if how == "wider" and count(shape) <= 1500:
        return (g.size(4),) + shape, how
    if how == "grown" and 1 in shape:
        return tuple(g.size(8) if s == 1 else s for s in shape), how
    return shape, "full"


def broadcast(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(p != q and 1 not in (p, q) for p, q in zip(a, b)):
        raise Unsuitable("no broadcast")
    return tuple(q if p == 1 else p for p, q in zip(a, b))


def fits(shape):
    def suits(v):
        try:
            return count(broadcast(v.shape, shape)) <= 6000
        except Unsuitable:
            return False
    return suits


def partner(g, x, low=None, mag=2.0):
    """A second operand for `x`: another value, a leaf that broadcasts, or one that lies in another order."""
    if low is None and g.chance(0.35):
        other = g.pick(lambda v: v.dtype == x.dtype and v is not x, fits(x.shape), newest=0.3)
        if other is not None:
            return other
    if x.rank >= 2 and g.chance(0.2):
        permutation = g.rng.sample(range(x.rank), x.rank)
        other = g.pick(lambda v: v.dtype == x.dtype and v.rank == x.rank and tuple(v.shape[p] for p in permutation) == x.shape) if low is None else None
        if other is not None:
            return g.node("Transpose", [other], dict(dtype=x.dtype, shape=x.shape, mag=other.mag, exact=other.exact), perm=permutation)
        source = [0] * x.rank
        for place, axis in enumerate(permutation):
            source[axis] = x.shape[place]
        leaf = g.leaf(x.dtype, tuple(source), mag, low)
        return g.node("Transpose", [leaf], dict(dtype=x.dtype, shape=x.shape, mag=mag, low=low, exact=True), perm=permutation)
    shape, _ = partner_shape(g, x.shape)
    return g.leaf(x.dtype, shape, mag, low)


def binary(g, x=None, only=None):
    x = x or g.take()
    op = only or g.choose("Add", "Add", "Mul", "Mul", "Sub", "Div", "Max", "Min", "PRelu", "Pow", "Mod")
    if op == "Pow":
        return power(g, x)
    if op == "PRelu":
        shape = g.choose(x.shape[-1:], x.shape[-1:], (x.shape[1],) + (1,) * (x.rank - 2) if x.rank > 1 else x.shape, x.shape)
        slope = g.leaf(x.dtype, shape, 1)
        return g.node("PRelu", [x, slope], dict(dtype=x.dtype, shape=x.shape, mag=x.mag))
    if x.mag > 1e4 and x.is_float and g.values_kind != "special":
        x = calm(g, x, 4)
    y = partner(g, x, 0.5 if op in ("Div", "Mod") else None)
    pair = [x, y]
    if op not in ("Div", "Mod") and g.chance(0.5):
        pair.reverse()
    shape = broadcast(x.shape, y.shape)
    mag = {"Add": x.mag + y.mag, "Sub": x.mag + y.mag, "Mul": x.mag * y.mag, "Div": x.mag * 2, "Mod": y.mag}.get(op, max(x.mag, y.mag))
    exact = op in ("Max", "Min") and x.exact and y.exact
    more = {"fmod": 1} if op == "Mod" else {}
    return g.node(op, pair, dict(dtype=x.dtype, shape=shape, mag=mag, exact=exact), sharp=op == "Mod", **more)


def power(g, x):
    how = g.choose(2.0, 2.0, 3.0, 0.5, -1.0, "tensor")
    if how == "tensor":
        x = limited(g, x, 4, 0.25)
        y = g.leaf(x.dtype, g.choose((), x.shape, x.shape[-1:]), 2)
        return g.node("Pow", [x, y], dict(dtype=x.dtype, shape=x.shape, mag=16, low=0))
    x = limited(g, x, 30, 0.25 if how < 1 else None)
    mag = {2.0: x.mag**2, 3.0: x.mag**3}.get(how, 6)
    kind = x.dtype if x.dtype != "f32" or g.chance(0.8) else g.choose("i64", "i32", "f64")
    exponent = g.constant(how if kind in FLOATS or how == int(how) else 2, kind)
    return g.node("Pow", [x, exponent], dict(dtype=x.dtype, shape=x.shape, mag=max(mag, x.mag), low=0 if how == 2 else None))


def variadic(g):
    x = g.take()
    op = g.choose("Sum", "Max", "Min", "Mean")
    others = [partner(g, x) for _ in range(g.rng.randint(0, 3))]
    shape, mag = x.shape, x.mag
    for y in others:
        shape, mag = broadcast(shape, y.shape), mag + y.mag
    exact = op in ("Max", "Min") and all(v.exact for v in [x, *others])
    return g.node(op, [x, *others], dict(dtype=x.dtype, shape=shape, mag=mag, exact=exact))


def clip(g, x=None):
    x = x or g.take()
    low, high = g.constant(g.choose(-1.0, 0.0, -0.5), x.dtype), g.constant(g.choose(1.0, 6.0, 0.75), x.dtype)
    bounds = g.choose([low, high], [low], [None, high], [low, high])
    return g.node("Clip", [x, *bounds], dict(dtype=x.dtype, shape=x.shape, mag=max(6, x.mag), exact=x.exact))


def where(g):
    x = g.take(NUMBERS)
    y = partner(g, x)
    shape = broadcast(x.shape, y.shape)
    condition = g.pick(lambda v: v.dtype == "bool", fits(shape)) or g.leaf("bool", partner_shape(g, shape)[0])
    shape = broadcast(shape, condition.shape)
    return g.node("Where", [condition, *g.choose([x, y], [y, x])], dict(dtype=x.dtype, shape=shape, mag=max(x.mag, y.mag), exact=x.exact and y.exact))


def compare(g):
    x = g.take(NUMBERS)
    y = partner(g, x)
    op = g.choose("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    return g.node(op, [x, y], dict(dtype="bool", shape=broadcast(x.shape, y.shape), mag=1), sharp=True)


def classify(g):
    x = g.take(("f32", "f64", "f16") if g.opset >= 20 else ("f32", "f64"))
    if x.dtype not in ("f32", "f64", "f16"):
        raise Unsuitable("type")
    op = g.choose("IsNaN", "IsInf")
    return g.node(op, [x], dict(dtype="bool", shape=x.shape, mag=1), sharp=False)


def logic(g):
    x = g.take(("bool",))
    if g.chance(0.2):
        return g.node("Not", [x], dict(dtype="bool", shape=x.shape, mag=1))
    y = g.pick(lambda v: v.dtype == "bool", fits(x.shape)) or g.leaf("bool", partner_shape(g, x.shape)[0])
    return g.node(g.choose("And", "Or", "Xor"), [x, y], dict(dtype="bool", shape=broadcast(x.shape, y.shape), mag=1))


def integer(g):
    """Arithmetic of integers."""
    x = g.take((g.choose("i32", "i64", "i32", "i64", "u32", "u64", *(("i8", "u8", "i16", "u16") if g.opset >= 14 else ())),))
    ops = ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Abs", "BitShift", "BitShift", "Clip"] + (["Pow"] if x.dtype in ("i32", "i64") else [])
    if g.opset >= 18:
        ops += ["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"]
    ops += ["Neg", "Sign"] if x.dtype in SIGNED else []
    op = g.choose(*ops)
    result = lambda shape: dict(dtype=x.dtype, shape=shape, mag=100)
    if op in ("Abs", "Neg", "Sign", "BitwiseNot"):
        return g.node(op, [x], result(x.shape))
    if op == "Clip":
        return g.node(op, [x, g.constant(1, x.dtype), g.constant(7, x.dtype)], result(x.shape))
    if op == "Pow":
        return g.node(op, [x, g.leaf(x.dtype, partner_shape(g, x.shape)[0][:0], 3, 0)], result(x.shape))
    if op == "BitShift":
        if x.dtype not in UNSIGNED:
            raise Unsuitable("type")
        return g.node(op, [x, g.leaf(x.dtype, x.shape, 5, 0)], result(x.shape), direction=g.choose("LEFT", "RIGHT"))
    y = g.leaf(x.dtype, partner_shape(g, x.shape)[0], 9, 1) if op in ("Div", "Mod") else partner(g, x, mag=9)
    more = {"fmod": g.choose(0, 0, 1)} if op == "Mod" else {}
    return g.node(op, [x, y], result(broadcast(x.shape, y.shape)), **more)


def cast(g):
    x = g.take(NUMBERS + ("bool",))
    to = g.rng.choices(("f32", "f64", "f16", "bf16", "i32", "i64", "u8", "i8", "bool", "u16", "i16", "u32", "u64"), (8, 3, 3, 2, 3, 3, 1, 1, 2, 1, 1, 1, 1))[0]
    if x.is_float and to in INTEGERS:
        if g.values_kind == "special":
            raise Unsuitable("NaN is no integer")
        x = limited(g, x, 100, 0 if to in UNSIGNED else None)
    if to == "f16" and x.mag > 6e4:
        x = limited(g, x, 100)
    narrower = x.is_float and (to in INTEGERS or to == "bool")
    shrinks = to in FLOATS and x.is_float
    result = dict(dtype=to, shape=x.shape, mag=x.mag, low=x.low, exact=x.exact or not x.is_float or not shrinks)
    if g.opset >= 15 and g.chance(0.15):
        return g.node("CastLike", [x, g.leaf(to, (1,))], result, sharp=narrower)
    return g.node("Cast", [x], result, sharp=narrower, to=onnx_type(to))


def epilogue(g, x, most=4):
    """What follows a product, a convolution, a pool: the library may compute some of it."""
    for _ in range(g.rng.randint(0, most)):
        if x.mag > 1e3:
            x = calm(g, x, 4)
            continue
        step = g.rng.choices(("unary", "binary", "clip", "far", "near", "odd", "view", "square", "gelu", "library"), (10, 16, 2, 1, 1, 1, 4, 2, 2, 3))[0]
        if step == "unary":
            x = unary(g, x)
        elif step == "library":  # rare among all functions
            x = library(g, x)
        elif step == "binary":
            x = binary(g, x)
        elif step == "clip":
            x = clip(g, x)
        elif step == "far":
            x = far(g, x)
        elif step == "near":
            x = near(g, x)
        elif step == "odd":  # what no library has, and what some have after it
            x = unary(g, unary(g, x, g.choose("Erf", "Sin", "Softsign", "Atan")), g.choose("Exp", "Sqrt", "Log", "Abs"))
        elif step == "square":
            x = g.node("Mul", [x, x], dict(dtype=x.dtype, shape=x.shape, mag=x.mag**2, low=0))
        elif step == "gelu":
            x = gelu(g, x)
        else:
            from shapes import view
            x = view(g, x)
    return x


def library(g, x):
    """A function that libraries have."""
    op = g.choose("LeakyRelu", "Gelu", "HardSwish", "Swish", "Sqrt", "Max", "Min", "gelu")
    if op in ("Max", "Min"):
        return g.node(op, [x, g.constant(g.choose(-0.5, 0.25), x.dtype)], dict(dtype=x.dtype, shape=x.shape, mag=max(1, x.mag), exact=x.exact))
    return gelu(g, x) if op == "gelu" or SINCE.get(op, 1) > g.opset else unary(g, x, op)


def far(g, x):
    """Bounds as those of f16 that exporters write, with values beyond them."""
    if x.dtype not in ("f32", "f64"):
        return clip(g, x)
    same = lambda mag: dict(dtype=x.dtype, shape=x.shape, mag=mag)
    y = g.node("Mul", [x, g.constant(1e5, x.dtype)], same(1e5 * x.mag), keep=False)
    y = g.node("Clip", [y, g.constant(-65504.0, x.dtype), g.constant(65504.0, x.dtype)], same(65504), keep=False)
    return g.node("Mul", [y, g.constant(1e-5, x.dtype)], same(1))


def near(g, x):
    """A bound or an offset near to 0, and what tells it from 0."""
    if x.dtype not in ("f32", "f64"):
        return clip(g, x)
    least = g.choose(1e-5, 1e-6, 1e-7, 1e-10, 1e-12)
    same = lambda mag, low=None: dict(dtype=x.dtype, shape=x.shape, mag=mag, low=low)
    number = g.constant(least, x.dtype)
    how = g.choose("bound", "bound", "offset")
    if how == "bound":
        op = g.choose("Max", "Clip") if g.opset >= 11 else "Max"
        x = g.node(op, [x, number], same(x.mag, least), keep=False)
    else:
        op = g.choose("Relu", "Abs", "Mul")
        x = g.node(op, [x, x] if op == "Mul" else [x], same(x.mag**2 if op == "Mul" else x.mag, 0), keep=False)
        x = g.node("Add", [x, number], same(x.mag, least), keep=False)
    op = g.choose("Log", "Log", "Sqrt")
    return g.node(op, [x], same(28 + x.mag if op == "Log" else 1 + x.mag))


def gelu(g, x):
    """GELU and others as exporters take them apart."""
    same = lambda mag, low=None: dict(dtype=x.dtype, shape=x.shape, mag=mag, low=low)
    number = lambda value: g.constant(value, x.dtype)
    how = g.choose("erf", "swish", "hardswish", "tanh")
    if how == "erf":
        a = g.node("Erf", [g.node("Div", [x, number(2**0.5)], same(x.mag), keep=False)], same(1), keep=False)
        a = g.node("Add", [a, number(1)], same(2, 0), keep=False)
        return g.node("Mul", [g.node("Mul", [x, a], same(2 * x.mag), keep=False), number(0.5)], same(x.mag))
    if how == "swish":
        return g.node("Mul", [x, g.node("Sigmoid", [x], same(1, 0), keep=False)], same(x.mag))
    if how == "hardswish":
        a = g.node("Clip", [g.node("Add", [x, number(3)], same(x.mag + 3), keep=False), number(0), number(6)], same(6, 0), keep=False)
        return g.node("Div", [g.node("Mul", [x, a], same(6 * x.mag), keep=False), number(6)], same(x.mag))
    x = limited(g, x, 30)
    a = g.node("Mul", [g.node("Pow", [x, number(3)], same(x.mag**3), keep=False), number(0.044715)], same(x.mag**3), keep=False)
    a = g.node("Mul", [g.node("Add", [x, a], same(x.mag**3), keep=False), number(0.7978845608)], same(x.mag**3), keep=False)
    a = g.node("Add", [g.node("Tanh", [a], same(1), keep=False), number(1)], same(2, 0), keep=False)
    return g.node("Mul", [g.node("Mul", [x, a], same(2 * x.mag), keep=False), number(0.5)], same(x.mag))
