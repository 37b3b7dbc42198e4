"""Ops that move elements, and change none."""

import numpy as np
from graph import MOST_ELEMENTS, NUMBERS, Unsuitable, count

ALL = NUMBERS + ("bool",)


def like(x, shape, **more):
    return {**dict(dtype=x.dtype, shape=tuple(shape), mag=x.mag, low=x.low, exact=x.exact), **more}


def axis(g, x, least=1):
    """An axis of `x`, and how to write it (maybe from the end)."""
    if x.rank < least:
        raise Unsuitable("rank")
    place = g.rng.randrange(x.rank)
    return place, place - x.rank if g.chance(0.3) else place


def view(g, x=None):
    """Something that a library call may read or write through strides."""
    x = x or g.take(ALL)
    return g.choose(transpose, transpose, reshape, reshape, flatten, squeeze, unsqueeze, slice_)(g, x)


def transpose(g, x=None):
    x = x or g.take(ALL, least=1)
    permutation = g.rng.sample(range(x.rank), x.rank)
    if g.chance(0.1) or x.rank == 0:
        return g.node("Transpose", [x], like(x, x.shape[::-1]))
    return g.node("Transpose", [x], like(x, [x.shape[p] for p in permutation]), perm=permutation)


def factors(g, size, parts):
    """`size` as a product of `parts` numbers."""
    result = [1] * parts
    for prime in (2, 3, 5, 7, 11, 13):
        while size and size % prime == 0:
            result[g.rng.randrange(parts)] *= prime
            size //= prime
    result[g.rng.randrange(parts)] *= size
    return result


def reshape(g, x=None):
    x = x or g.take(ALL)
    how = g.choose("any", "merge", "split")
    shape = list(x.shape)
    if how == "merge" and x.rank >= 2:
        place = g.rng.randrange(x.rank - 1)
        shape[place:place + 2] = [shape[place] * shape[place + 1]]
    elif how == "split" and 1 <= x.rank <= 4:
        place = g.rng.randrange(x.rank)
        shape[place:place + 1] = factors(g, shape[place], 2)
    else:
        shape = factors(g, x.size, g.rng.randint(1, 4))
    target = list(shape)
    if x.size and shape and g.chance(0.4):
        target[g.rng.randrange(len(target))] = -1
    allow = 1 if 0 in target and g.opset >= 14 else None
    if 0 in target and not allow:
        raise Unsuitable("a zero copies a dimension")
    return g.node("Reshape", [x, g.constant(target)], like(x, shape), allowzero=allow)


def flatten(g, x=None):
    x = x or g.take(ALL, least=1)
    place = g.rng.randint(0, x.rank)
    return g.node("Flatten", [x], like(x, (count(x.shape[:place]), count(x.shape[place:]))), axis=place)


def squeeze(g, x=None):
    x = x or g.take(ALL)
    ones = [i for i, s in enumerate(x.shape) if s == 1]
    if not ones:
        return unsqueeze(g, x)
    some = sorted(g.rng.sample(ones, g.rng.randint(1, len(ones))))
    if g.chance(0.2):
        return g.node("Squeeze", [x], like(x, [s for s in x.shape if s != 1]))
    return g.node("Squeeze", [x, g.constant(some)], like(x, [s for i, s in enumerate(x.shape) if i not in some]))


def unsqueeze(g, x=None):
    x = x or g.take(ALL)
    if x.rank >= 5:
        return reshape(g, x)
    shape, places = list(x.shape), []
    rank = x.rank + g.rng.randint(1, 2)
    places = sorted(g.rng.sample(range(rank), rank - x.rank))
    for place in places:
        shape.insert(place, 1)
    return g.node("Unsqueeze", [x, g.constant(places)], like(x, shape))


def slice_(g, x=None):
    x = x or g.take(ALL, least=1)
    if x.rank == 0:
        return reshape(g, x)
    axes = g.rng.sample(range(x.rank), g.rng.randint(1, min(2, x.rank)))
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for place in axes:
        size = x.shape[place]
        step = g.choose(1, 1, 1, 2, 3, -1, -2)
        start, end = sorted((g.rng.randint(0, size), g.rng.randint(0, size)))
        if start == end and not g.zero:
            start, end = 0, size
        if step < 0:
            start, end = end - 1, start - 1
            end = -size - 1 if end < 0 else end
            if start < 0:
                start, end, step = 0, size, 1
        elif g.chance(0.2) and end == size:
            end = 2**31 - 1
        starts, ends, steps = starts + [start], ends + [end], steps + [step]
        shape[place] = len(range(size)[slice(start, end if end >= -size else None, step)])
    inputs = [x, g.constant(starts), g.constant(ends), g.constant(axes)]
    if any(s != 1 for s in steps) or g.chance(0.3):
        inputs.append(g.constant(steps))
    return g.node("Slice", inputs, like(x, shape))


def concat(g):
    x = g.take(ALL, least=1)
    place, written = axis(g, x)
    parts = [x]
    for _ in range(g.rng.randint(1, 3)):
        other = g.pick(lambda v: v.dtype == x.dtype and v.rank == x.rank and all(p == q for i, (p, q) in enumerate(zip(v.shape, x.shape)) if i != place))
        if other is None or g.chance(0.6):
            shape = list(x.shape)
            shape[place] = g.size(17)
            other = g.leaf(x.dtype, shape)
        parts.append(other)
    g.rng.shuffle(parts)
    shape = list(x.shape)
    shape[place] = sum(p.shape[place] for p in parts)
    return g.node("Concat", parts, like(x, shape, mag=max(p.mag for p in parts), low=None, exact=all(p.exact for p in parts)), axis=written)


def split(g):
    x = g.take(ALL, least=1)
    place, written = axis(g, x)
    size = x.shape[place]
    if size < 2:
        raise Unsuitable("nothing to split")
    if g.opset >= 18 and g.chance(0.4):
        parts = g.rng.randint(2, min(4, size))
        part = -(-size // parts)
        sizes = [part] * (parts - 1) + [size - part * (parts - 1)]
        if sizes[-1] <= 0:
            raise Unsuitable("uneven")
        inputs, more = [x], {"num_outputs": parts}
    else:
        cut = g.rng.randint(1, size - 1)
        sizes = [cut, size - cut]
        inputs, more = [x, g.constant(sizes)], {}
    shapes = [[s if i == place else d for i, d in enumerate(x.shape)] for s in sizes]
    return g.node("Split", inputs, *(like(x, s) for s in shapes), axis=written, **more)[0]


def pad(g):
    x = g.take(("f32", "f64", "i32", "i64", "f16", "u8", "i8", "bool"), least=1)
    modes = ["constant", "constant", "edge", "reflect"] + (["wrap"] if g.opset >= 19 else [])
    mode = g.choose(*modes)
    low, high = [], []
    for size in x.shape:
        most = 3 if mode == "constant" else min(3, size - 1) if mode in ("reflect", "wrap") else min(3, size * 3)
        some = g.chance(0.5) and most > 0
        if mode == "constant" and g.chance(0.4 if len(low) == x.rank - 1 else 0.05):
            most, some = 40, True  # more than a vector
        low.append(g.rng.randint(0, most) if some else 0)
        high.append(g.rng.randint(0, most) if some else 0)
        if mode == "constant" and g.chance(0.1) and size > 2:
            low[-1] = -1
    shape = [a + s + b for a, s, b in zip(low, x.shape, high)]
    inputs = [x, g.constant(low + high)]
    if mode == "constant" and g.chance(0.6):
        inputs.append(g.constant(1, x.dtype))
    if x.dtype == "bool" and mode != "constant":
        raise Unsuitable("type")
    return g.node("Pad", inputs, like(x, shape, mag=max(x.mag, 1), low=None), mode=mode)


def tile(g):
    x = g.take(("f32", "f64", "i32", "i64", "f16", "u8", "bool"), least=1, most=1500)
    repeats = [g.choose(1, 1, 2, 3) for _ in x.shape]
    return g.node("Tile", [x, g.constant(repeats)], like(x, [s * r for s, r in zip(x.shape, repeats)]))


def expand(g):
    x = g.take(ALL, most=800)
    shape = [g.size(8) if s == 1 else s for s in x.shape]
    if g.chance(0.4) and x.rank < 5:
        shape.insert(0, g.size(4))
    target = [1 if g.chance(0.2) and i >= len(shape) - x.rank and s == x.shape[i - len(shape)] else s for i, s in enumerate(shape)]
    if count(shape) > MOST_ELEMENTS:
        raise Unsuitable("large")
    return g.node("Expand", [x, g.constant(target)], like(x, shape))


def depth(g):
    x = g.take(("f32", "f64"), rank=4)
    if x.dtype == "f64" and g.opset < 13:
        raise Unsuitable("type")
    block = g.choose(2, 2, 3)
    n, c, h, w = x.shape
    if g.chance(0.5):
        if c % (block * block):
            raise Unsuitable("channels")
        return g.node("DepthToSpace", [x], like(x, (n, c // block**2, h * block, w * block)), blocksize=block, mode=g.choose(None, "DCR", "CRD"))
    if h % block or w % block:
        n, c, h, w = x.shape[0], x.shape[1], 2 * block, block
        x = g.leaf(x.dtype, (n, c, h, w), 2)
    return g.node("SpaceToDepth", [x], like(x, (n, c * block**2, h // block, w // block)), blocksize=block)


def trilu(g):
    x = g.take(("f32", "f64", "i64", "bool"), least=2)
    inputs = [x] if g.chance(0.4) else [x, g.constant(g.rng.randint(-4, 4))]
    return g.node("Trilu", inputs, like(x, x.shape, low=None), upper=g.choose(None, 0, 1)) if g.opset >= 14 else transpose(g, x)


def identity(g):
    x = g.take(ALL)
    return g.node(g.choose("Identity", "Dropout"), [x], like(x, x.shape)) if x.is_float else g.node("Identity", [x], like(x, x.shape))


def made(g):
    """Tensors out of nothing: shapes, ranges, constants, patterns."""
    how = g.choose("Shape", "Size", "Range", "ConstantOfShape", "EyeLike", "OneHot")
    if how == "Shape":
        x = g.take(ALL, least=1)
        return g.node("Shape", [x], dict(dtype="i64", shape=(x.rank,), mag=65))
    if how == "Size":
        return g.node("Size", [g.take(ALL)], dict(dtype="i64", shape=(), mag=6000))
    if how == "Range":
        kind = g.choose("f32", "i64", "i32")
        start, step, n = g.rng.randint(-5, 5), g.choose(1, 2, -1, -3), g.rng.randint(1, 20)
        return g.node("Range", [g.constant(v, kind) for v in (start, start + step * n, step)], dict(dtype=kind, shape=(n,), mag=80, exact=True))
    if how == "ConstantOfShape":
        from onnx import helper
        from graph import onnx_type
        shape, kind = g.shape(), g.choose("f32", "i64", "f32")
        value = None if kind == "f32" and g.chance(0.5) else helper.make_tensor("", onnx_type(kind), [1], [3])
        return g.node("ConstantOfShape", [g.constant(list(shape))], dict(dtype=kind, shape=shape, mag=3, exact=True), value=value)
    if how == "EyeLike":
        x = g.take(("f32", "i64"), rank=2)
        return g.node("EyeLike", [x], dict(dtype=x.dtype, shape=x.shape, mag=1, exact=True), k=g.choose(None, 1, -2))
    depth = g.rng.randint(2, 9)
    x = g.take(("i64",), suits=lambda v: v.rank <= 3 and v.size * depth <= MOST_ELEMENTS)
    place = g.rng.randint(-1, x.rank)
    shape = list(x.shape)
    shape.insert(place if place >= 0 else x.rank, depth)
    return g.node("OneHot", [x, g.constant(depth), g.constant(np.array([-1.0, 2.0]), "f32")], dict(dtype="f32", shape=shape, mag=2, exact=True), axis=place)
