"""Gathers, scatters and what else goes by indices."""

from graph import MOST_ELEMENTS, Unsuitable, count
from shapes import ALL, axis, like

COPIED = ("f32", "f64", "f16", "i32", "i64", "u8", "bool")


def indices(g, shape, size, kind=None, negative=True):
    if size == 0:
        raise Unsuitable("nothing to choose from")
    return g.leaf(kind or g.choose("i64", "i64", "i32"), shape, size - 1, -size if negative and g.chance(0.4) else 0)


def gather(g):
    x = g.take(ALL, least=1)
    place, written = axis(g, x)
    where = g.choose((), (3,), (g.size(17),), (2, 5), (1,), (4, 3))
    shape = x.shape[:place] + where + x.shape[place + 1:]
    if count(shape) > MOST_ELEMENTS:
        raise Unsuitable("large")
    return g.node("Gather", [x, indices(g, where, x.shape[place])], like(x, shape), axis=g.choose(written, written) if place or g.chance(0.5) else None)


def gather_elements(g):
    x = g.take(ALL, least=1)
    place, written = axis(g, x)
    shape = [g.size(9) if i == place else g.rng.randint(1, s) if s else 0 for i, s in enumerate(x.shape)]
    return g.node("GatherElements", [x, indices(g, shape, x.shape[place])], like(x, shape), axis=written)


def gather_nd(g):
    x = g.take(COPIED, least=1)
    batch = g.rng.randint(0, 1) if x.rank >= 2 else 0
    depth = g.rng.randint(1, x.rank - batch)
    lead = x.shape[:batch] + tuple(g.size(5) for _ in range(g.rng.randint(1, 2)))
    where = indices(g, lead + (depth,), min(x.shape[batch:batch + depth]), "i64")
    return g.node("GatherND", [x, where], like(x, lead + x.shape[batch + depth:]), batch_dims=batch or None)


def distinct(g, size, amount):
    return g.rng.sample(range(size), amount)


def scatter_elements(g):
    x = g.take(("f32", "f64", "i32", "i64"), least=1, suits=lambda v: v.size > 0)
    place, written = axis(g, x)
    how = g.choose(None, *(("none", "add", "mul") if g.opset >= 16 else ()), *(("max", "min") if g.opset >= 18 else ()))
    rows = g.rng.randint(1, x.shape[place]) if how in (None, "none") else g.rng.randint(1, 6)
    shape = [rows if i == place else g.rng.randint(1, s) for i, s in enumerate(x.shape)]
    import numpy as np
    where = np.zeros(shape, np.int64)
    for at in np.ndindex(*[s for i, s in enumerate(shape) if i != place]):
        key = list(at)
        key.insert(place, slice(None))
        size = x.shape[place]
        where[tuple(key)] = distinct(g, size, rows) if how in (None, "none") else [g.rng.randrange(size) for _ in range(rows)]
    updates = g.leaf(x.dtype, shape, 2)
    result = dict(dtype=x.dtype, shape=x.shape, mag=max(x.mag, 2) * (6 if how == "add" else 64 if how == "mul" else 1), exact=x.exact and how not in ("add", "mul"))
    return g.node("ScatterElements", [x, g.constant(where), updates], result, axis=written, reduction=how)


def scatter_nd(g):
    x = g.take(("f32", "f64", "i64"), least=1, suits=lambda v: v.size > 0)
    depth = g.rng.randint(1, x.rank)
    how = g.choose(None, *(("none", "add") if g.opset >= 16 else ()), *(("max",) if g.opset >= 18 else ()))
    places = count(x.shape[:depth])
    amount = g.rng.randint(1, min(places, 5))
    import numpy as np
    where = np.array([np.unravel_index(p, x.shape[:depth]) for p in distinct(g, places, amount)], np.int64).reshape(amount, depth)
    updates = g.leaf(x.dtype, (amount,) + x.shape[depth:], 2)
    return g.node("ScatterND", [x, g.constant(where), updates], dict(dtype=x.dtype, shape=x.shape, mag=x.mag + 2, exact=x.exact and how != "add"), reduction=how)


def tensor_scatter(g):
    if g.opset < 24:
        raise Unsuitable("opset")
    batch, heads, most, depth, rows = 2, g.size(3), 6 + g.size(5), g.size(4), g.rng.randint(1, 3)
    cache = g.leaf("f32", (batch, heads, most, depth))
    update = g.leaf("f32", (batch, heads, rows, depth))
    inputs = [cache, update] + ([g.leaf("i64", (batch,), most - rows, 0)] if g.chance(0.7) else [])
    return g.node("TensorScatter", inputs, dict(dtype="f32", shape=cache.shape, exact=True), mode=g.choose(None, "circular"))


def compress(g):
    import numpy as np
    x = g.take(COPIED, least=1, suits=lambda v: v.size > 0)
    place, written = axis(g, x)
    kept = np.array([g.chance(0.6) for _ in range(x.shape[place])])
    if not kept.any():
        raise Unsuitable("nothing kept")
    shape = [int(kept.sum()) if i == place else s for i, s in enumerate(x.shape)]
    return g.node("Compress", [x, g.constant(kept, "bool")], like(x, shape), axis=written)


def reverse_sequence(g):
    x = g.take(("f32", "f64", "i64", "bool"), least=2, suits=lambda v: v.size > 0)
    time = g.choose(0, 1)
    lengths = g.leaf("i64", (x.shape[1 - time],), x.shape[time], 1, constant=True)
    return g.node("ReverseSequence", [x, lengths], like(x, x.shape), time_axis=time, batch_axis=1 - time)


def one_nonzero(g):
    import numpy as np
    array = (g.noise.random((g.size(5), g.size(7))) < 0.4).astype(np.int64)
    if not array.any():
        raise Unsuitable("nothing there")
    return g.node("NonZero", [g.constant(array)], dict(dtype="i64", shape=(2, int(np.count_nonzero(array))), mag=7))
