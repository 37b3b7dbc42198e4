"""Products of matrices, convolutions, attention: what the library computes, with all that may be fused."""

import math

from elementwise import calm, epilogue
from graph import MOST_ELEMENTS, SIZES, Unsuitable, count
from shapes import view

REAL = ("f32", "f64", "f16", "bf16")


def operand(g, rank=None, least=0, suits=None, most=MOST_ELEMENTS):
    x = g.take(REAL, rank, least, suits, most=most)
    return calm(g, x, 4) if x.mag > 100 and g.values_kind != "special" else x


def turned(g, x):
    """`x`, maybe behind a transpose or a view that a call may take in."""
    if g.chance(0.25) and x.rank >= 2:
        permutation = list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2]
        source = list(x.shape)
        source[-1], source[-2] = source[-2], source[-1]
        if x.node is None and x in g.leaves and x.uses == 0 and getattr(x, "constant", False):
            leaf = g.leaf(x.dtype, source, x.mag)
            return g.node("Transpose", [leaf], dict(dtype=x.dtype, shape=x.shape, mag=x.mag, exact=True), perm=permutation)
    return x


def product(mag_x, mag_y, k):
    """A bound that sums of random terms keep."""
    return mag_x * mag_y * (min(k, 3 + 2 * math.sqrt(k)) if k else 0)


def weight(g, dtype, shape, k):
    """Weights whose products do not grow."""
    return g.leaf(dtype, shape, 1.0 if k < 8 else 0.5, constant=None if g.chance(0.4) else True, special=False)


def matmul(g, x=None):
    x = x or operand(g, least=1)
    k = x.shape[-1]
    m = x.shape[-2] if x.rank > 1 else 1
    other = g.pick(lambda v: v.dtype == x.dtype and v.rank >= 2 and v.shape[-2] == k and v.rank == 2 and v.mag < 100) if g.chance(0.2) else None
    n = g.size(65 if k < 64 else 32)
    if other is None:
        stack = ()
        if x.rank > 2:
            stack = g.choose((), x.shape[:-2], tuple(s if g.chance(0.5) else 1 for s in x.shape[:-2]))
        elif g.chance(0.15):
            stack = (g.size(5),)
        shape = g.choose((k,), *[stack + (k, n)] * 7)
        if count(shape) > 3 * MOST_ELEMENTS:
            raise Unsuitable("large")
        other = turned(g, weight(g, x.dtype, shape, k))
    left, right = x, other
    if g.chance(0.15) and other.rank <= 2 and other.rank >= 1 and x.rank >= 2:  # the weights on the left
        left, right = weight(g, x.dtype, (g.size(32), x.shape[-2]), x.shape[-2]), x
    shape = matmul_shape(left.shape, right.shape)
    k = left.shape[-1]
    y = g.node("MatMul", [left, right], dict(dtype=x.dtype, shape=shape, mag=product(left.mag, right.mag, k)))
    return epilogue(g, y)


def experts(g):
    """Rows times the matrices that indices choose for them, as exporters write layers of experts."""
    from indexing import indices
    x = operand(g, least=1, suits=lambda v: v.size > 0)
    k, n, many = x.shape[-1], g.size(33), g.rng.randint(1, 6)
    lead = x.shape[:-1] if g.chance(0.3) and x.rank > 1 else (x.size // k,)
    rows = count(lead)
    if rows * k * n > 4 * MOST_ELEMENTS or many * k * n > 3 * MOST_ELEMENTS:
        raise Unsuitable("large")
    like = lambda value, shape: dict(dtype=value.dtype, shape=shape, mag=value.mag, exact=value.exact)
    reshape = lambda value, shape: g.node("Reshape", [value, g.constant(list(shape))], like(value, tuple(shape)))
    is_row, is_turned = g.chance(0.5), g.chance(0.5)
    inner = (k, n) if is_row != is_turned else (n, k)
    table = weight(g, x.dtype, (many,) + inner, k)
    chosen = g.node("Gather", [table, indices(g, lead, many)], like(table, lead + inner), axis=g.choose(None, 0))
    if is_turned:
        order = [*range(len(lead)), len(lead) + 1, len(lead)]
        chosen = g.node("Transpose", [chosen], like(chosen, lead + inner[::-1]), perm=order)
    mag = product(x.mag, table.mag, k)
    if is_row:
        y = g.node("MatMul", [reshape(x, lead + (1, k)), chosen], dict(dtype=x.dtype, shape=lead + (1, n), mag=mag))
    else:
        y = g.node("MatMul", [chosen, reshape(x, lead + (k, 1))], dict(dtype=x.dtype, shape=lead + (n, 1), mag=mag))
    return epilogue(g, reshape(y, lead + (n,)))


def matmul_shape(a, b):
    from elementwise import broadcast
    stack = broadcast(a[:-2], b[:-2])
    return stack + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def gemm(g):
    x = operand(g, rank=2)
    trans_a, trans_b = g.choose(0, 0, 1), g.choose(0, 1)
    m, k = x.shape[::-1] if trans_a else x.shape
    n = g.size(65)
    w = weight(g, x.dtype, (n, k) if trans_b else (k, n), k)
    inputs = [x, w]
    if g.chance(0.8):
        inputs.append(g.leaf(x.dtype, g.choose((n,), (1, n), (m, n), (m, 1), (1,), ()), 1))
    alpha, beta = g.choose(None, None, 0.5), g.choose(None, None, 0.25)
    y = g.node("Gemm", inputs, dict(dtype=x.dtype, shape=(m, n), mag=product(x.mag, w.mag, k) + 1),
               transA=trans_a or None, transB=trans_b or None, alpha=alpha, beta=beta)
    return epilogue(g, y)


EQUATIONS = ("ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "bhij,bhjd->bhid", "bij,jk->bik", "ij,kj->ik", "bij,bij->b", "ij,ij->ij", "i,j->ij",
             "bid,bjd->bij", "bnij,bnkj->bnik", "ij->ji", "bij->bj", "ii->i", "...ij,...jk->...ik", "ij,jk", "bij,cjk->bcik", "ij,j->i", "ijk,ikl,lj->ij")


def einsum(g):
    equation = g.choose(*EQUATIONS)
    terms, _, result = equation.partition("->")
    sizes = {c: g.size(11) for c in "abcdefghijklmn"}
    stack = g.shape(g.rng.randint(0, 2), 12)
    inputs = []
    for term in terms.split(","):
        shape = [d for c in term.replace("...", ".") for d in (stack if c == "." else (sizes[c],))]
        inputs.append(g.leaf(g.floats if g.floats in ("f32", "f64") else "f32", shape, 1))
    if "->" not in equation:
        result = "ik"
    shape = [d for c in result.replace("...", ".") for d in (stack if c == "." else (sizes[c],))]
    return epilogue(g, g.node("Einsum", inputs, dict(dtype=inputs[0].dtype, shape=shape, mag=20), equation=equation), 2)


def windows(g, space, large=False):
    """kernel, strides, dilations, pads and the result's sizes for some space; attributes as one may write them. `large`: of more than 25 elements, from
    which on a library pools them, whichever dimension is innermost."""
    n = len(space)
    kernel = [g.choose(5, 6, 7) for _ in space] if large else [g.rng.choices((1, 2, 3, 5), (3, 1, 5, 1))[0] for _ in space]
    strides = [g.choose(1, 1, 1, 2, 3)] * n if g.chance(0.7) else [g.choose(1, 2, 3) for _ in space]
    dilations = [g.choose(1, 1, 1, 1, 2)] * n
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    more = {}
    if g.chance(0.15):
        how = g.choose("SAME_UPPER", "SAME_LOWER", "VALID")
        more["auto_pad"] = how
        sizes = [-(-s // t) for s, t in zip(space, strides)] if how != "VALID" else [(s - r) // t + 1 for s, r, t in zip(space, reach, strides)]
        if any(d != 1 for d in dilations) and how != "VALID":
            raise Unsuitable("dilated and same")
        if any(t > r for r, t in zip(reach, strides)) and how != "VALID":
            raise Unsuitable("ONNX Runtime has borders of negative width there, ONNX none")
    else:
        symmetric = g.chance(0.6)
        low = [g.rng.randint(0, r - 1) if g.chance(0.6) else 0 for r in reach]
        high = list(low) if symmetric else [g.rng.randint(0, r - 1) for r in reach]
        sizes = [(s + a + b - r) // t + 1 for s, a, b, r, t in zip(space, low, high, reach, strides)]
        more["pads"] = low + high if any(low + high) or g.chance(0.3) else None
    if any(s <= 0 for s in sizes):
        raise Unsuitable("window larger than the image")
    more["strides"] = strides if any(s != 1 for s in strides) or g.chance(0.3) else None
    more["dilations"] = dilations if any(d != 1 for d in dilations) else None
    return kernel, sizes, more


def image(g, most=MOST_ELEMENTS):
    """A tensor [N, C, space...]: of the model, one that becomes one by a view, or new."""
    x = g.pick(lambda v: v.is_float and 3 <= v.rank <= 5 and v.size <= most) if g.chance(0.7) else None
    if x is None:
        space = {1: (1, 40), 2: (1, 24), 3: (1, 8)}
        n = g.rng.choices((1, 2, 3), (2, 7, 1))[0]
        channels = g.choose(1, 2, 3, 4, 8, 12, 16, 17, 24, 32)
        shape = [g.choose(1, 1, 2, 3), channels] + [g.rng.randint(*space[n]) for _ in range(n)]
        while count(shape) > most:
            place = g.rng.randrange(1, len(shape))
            shape[place] = max(1, shape[place] // 2)
        if g.zero and g.chance(0.1):
            shape[0] = 0
        x = g.leaf(g.floats, shape, 2)
    return calm(g, x, 4) if x.mag > 100 and g.values_kind != "special" else x


def conv(g, x=None):
    x = x or image(g)
    channels = x.shape[1]
    kernel, sizes, more = windows(g, x.shape[2:])
    groups = 1
    if channels > 1 and g.chance(0.3):
        groups = channels if g.chance(0.6) else g.choose(*[d for d in range(1, channels + 1) if channels % d == 0])
    per = g.choose(1, 1, 2) if groups == channels and groups > 1 else g.choose(1, 2, 3, 4, 8, 16, 17)
    outputs = groups * per
    if outputs * count(sizes) * x.shape[0] > 2 * MOST_ELEMENTS or outputs == 0:
        raise Unsuitable("large")
    k = channels // groups * count(kernel)
    if g.chance(0.1):
        same = g.pick(lambda v: v.dtype == x.dtype and getattr(v, "constant", False) and v.shape == (outputs, channels // groups, *kernel))
    else:
        same = None
    w = same or weight(g, x.dtype, (outputs, channels // groups, *kernel), k)
    inputs = [x, w] + ([g.leaf(x.dtype, (outputs,), 1, constant=True)] if g.chance(0.5) else [])
    y = g.node("Conv", inputs, dict(dtype=x.dtype, shape=(x.shape[0], outputs, *sizes), mag=product(x.mag, w.mag, k) + 1),
               group=groups if groups != 1 else None, kernel_shape=kernel if g.chance(0.7) else None, **more)
    if g.chance(0.15) and x.rank == 4:
        y = normalized(g, y)
    return epilogue(g, y, 5)


def normalized(g, y):
    """Batch normalization, as it stands behind convolutions."""
    c = y.shape[1]
    parameters = [g.leaf(y.dtype, (c,), 2, low, constant=True) for low in (0.5, None, None, 0.5)]
    return g.node("BatchNormalization", [y, *parameters], dict(dtype=y.dtype, shape=y.shape, mag=y.mag * 3 + 6), epsilon=g.choose(None, 0.01))


def conv_transpose(g):
    x = image(g, 1500)
    n = x.rank - 2
    groups = x.shape[1] if g.chance(0.2) and x.shape[1] > 1 else 1
    per = g.choose(1, 2, 3, 8)
    kernel = [g.choose(1, 2, 3, 4) for _ in range(n)]
    strides = [g.choose(1, 2, 2, 3) for _ in range(n)]
    dilations = [g.choose(1, 1, 1, 2)] * n
    low = [g.choose(0, 0, 1) for _ in range(n)]
    high = [g.choose(0, 0, 1) for _ in range(n)]
    extra = [g.rng.randint(0, max(0, min(s, 2) - 1)) if g.chance(0.3) else 0 for s in strides]
    sizes = [(s - 1) * t + e + (k - 1) * d + 1 - a - b for s, t, e, k, d, a, b in zip(x.shape[2:], strides, extra, kernel, dilations, low, high)]
    if any(s <= 0 for s in sizes) or groups * per * count(sizes) * x.shape[0] > 2 * MOST_ELEMENTS:
        raise Unsuitable("size")
    w = weight(g, x.dtype, (x.shape[1], per, *kernel), x.shape[1])
    inputs = [x, w] + ([g.leaf(x.dtype, (groups * per,), 1)] if g.chance(0.4) else [])
    y = g.node("ConvTranspose", inputs, dict(dtype=x.dtype, shape=(x.shape[0], groups * per, *sizes), mag=product(x.mag, w.mag, x.shape[1] * count(kernel))),
               group=groups if groups > 1 else None, strides=strides, pads=low + high if any(low + high) else None,
               dilations=dilations if dilations[0] != 1 else None, output_padding=extra if any(extra) else None)
    return epilogue(g, y, 2)


def attention(g):
    """Attention as exporters take it apart, with masks of every kind, heads by reshape and transpose."""
    kind = g.floats
    batch, heads, length, depth = g.choose(1, 2, 3), g.choose(1, 2, 3, 4), g.choose(1, 5, 7, 16, 17, 24), g.choose(4, 8, 16)
    keys = length if g.chance(0.6) else g.choose(1, 6, 16, 19)
    width = heads * depth
    def side(rows):
        x = g.leaf(kind, (batch, rows, width), 1)
        if g.chance(0.5):
            w = g.leaf(kind, (width, width), 0.4, constant=True)
            x = g.node("MatMul", [x, w], dict(dtype=kind, shape=x.shape, mag=2), keep=False)
            if g.chance(0.5):
                x = g.node("Add", [x, g.leaf(kind, (width,), 0.5, constant=True)], dict(dtype=kind, shape=x.shape, mag=2), keep=False)
        x = g.node("Reshape", [x, g.constant([0, 0, heads, depth] if g.chance(0.5) and not g.zero else [batch, rows, heads, depth])],
                   dict(dtype=kind, shape=(batch, rows, heads, depth), mag=x.mag), keep=False)
        return g.node("Transpose", [x], dict(dtype=kind, shape=(batch, heads, rows, depth), mag=x.mag), perm=[0, 2, 1, 3], keep=False)
    q, k, v = side(length), side(keys), side(keys)
    k = g.node("Transpose", [k], dict(dtype=kind, shape=(batch, heads, depth, keys), mag=2), perm=[0, 1, 3, 2], keep=False)
    scale = g.constant(depth**0.5 if (divide := g.chance(0.5)) else depth**-0.5, kind)
    shape = (batch, heads, length, keys)
    scores = lambda: dict(dtype=kind, shape=shape, mag=10)
    before = g.chance(0.2)
    if before:
        q = g.node("Div" if divide else "Mul", [q, scale], dict(dtype=kind, shape=q.shape, mag=2), keep=False)
    s = g.node("MatMul", [q, k], scores(), keep=g.chance(0.1))
    if g.chance(0.15):
        s = g.node("Add", [s, g.leaf(kind, g.choose((batch, 1, 1, keys), (length, keys), shape), 2)], scores(), keep=False)
    if not before and g.chance(0.9):
        s = g.node("Div" if divide else "Mul", [s, scale], scores(), keep=False)
    whole, small = shape, [(batch, 1, 1, keys), (1, 1, length, keys), (length, keys), (batch, 1, length, keys), shape, ()]
    if g.chance(0.2):
        # Batch and heads lie otherwise where the mask stands.
        outer = g.choose((batch * heads,), (1, batch, heads), (batch, 1, heads), (batch, heads, 1), (heads, batch), (batch * heads, 1), (1, batch * heads))
        shape = (*outer, length, keys)
        small = [tuple(size if g.chance(0.5) else 1 for size in shape), shape, shape[-2:]]
        s = g.node("Reshape", [s, g.constant(list(shape))], scores(), keep=False)
    if g.chance(0.6):
        mask = g.leaf(kind, g.choose(*small), 2)
        s = g.node(g.choose("Add", "Add", "Mul", "Sub"), [s, mask], scores(), keep=False)
    elif g.chance(0.4):
        kept = g.leaf("bool", g.choose(*small))
        fill = g.constant(g.choose(-1e4, -1e9 if kind in ("f32", "f64") else -6e4, -3e38 if kind in ("f32", "f64") else -6e4, float("-inf")), kind)
        s = g.node("Where", [kept, *g.choose([s, fill], [fill, s])], scores(), keep=False)
    p = g.node("Softmax", [s], dict(dtype=kind, shape=shape, mag=1, low=0), keep=g.chance(0.1), axis=g.choose(-1, len(shape) - 1, None if g.opset >= 13 else -1))
    if shape != whole:
        shape = whole
        p = g.node("Reshape", [p, g.constant(list(shape))], dict(dtype=kind, shape=shape, mag=1, low=0), keep=False)
    y = g.node("MatMul", [p, v], dict(dtype=kind, shape=(batch, heads, length, depth), mag=2))
    if g.chance(0.7):
        y = g.node("Transpose", [y], dict(dtype=kind, shape=(batch, length, heads, depth), mag=2), perm=[0, 2, 1, 3], keep=False)
        y = g.node("Reshape", [y, g.constant([batch, length, width])], dict(dtype=kind, shape=(batch, length, width), mag=2))
    return epilogue(g, y, 2)


def attention_op(g):
    if g.opset < 23 or g.floats not in ("f32", "f64", "f16"):
        raise Unsuitable("opset")
    kind, batch, heads, length, keys, depth = g.floats, g.choose(1, 2), g.choose(2, 4), g.choose(1, 3, 5, 16), g.choose(1, 6, 17), g.choose(4, 8)
    shared = g.choose(1, heads)
    causal = g.choose(None, None, 1)
    q = g.leaf(kind, (batch, heads, length, depth), 1)
    k, v = (g.leaf(kind, (batch, shared, keys, depth), 1) for _ in range(2))
    inputs = [q, k, v]
    if g.chance(0.4):
        inputs.append(g.leaf(kind, (length, keys), 1) if g.chance(0.6) else g.leaf(kind, (batch, heads, length, keys), 1))
    return epilogue(g, g.node("Attention", inputs, dict(dtype=kind, shape=(batch, heads, length, depth), mag=1), is_causal=causal,
                              scale=g.choose(None, 0.5), softcap=g.choose(None, None, 2.0)), 2)


def scaled_terms(g):
    """Terms and factors along one dimension each, of a result whose dimensions are equal: only which dimension it is tells them apart."""
    n = g.choose(2, 3, 5, 8, 16, 17)
    if g.chance(0.5):
        y = g.node("MatMul", [g.leaf(g.floats, (n, 6), 1), weight(g, g.floats, (6, n), 6)], dict(dtype=g.floats, shape=(n, n), mag=6), keep=False)
        along = [(n,), (n, 1), (1, n)]
    else:
        y = g.node("Conv", [g.leaf("f32", (2, 3, n, n), 1), weight(g, "f32", (n, 3, 1, 1), 3)], dict(dtype="f32", shape=(2, n, n, n), mag=4), keep=False)
        along = [(n,), (n, 1), (n, 1, 1), (1, n, 1, 1)]
    for i in range(g.rng.randint(2, 4)):
        op = g.choose("Add", "Sub") if i % 2 == 0 else g.choose("Mul", "Mul", "Div")
        other = g.leaf(y.dtype, g.choose(*along), 2, 0.5 if op == "Div" else None, constant=True)
        inputs = [other, y] if op in ("Add", "Mul", "Sub") and g.chance(0.3) else [y, other]
        y = g.node(op, inputs, dict(dtype=y.dtype, shape=y.shape, mag=y.mag * 2 + 2), keep=False)
    return epilogue(g, g.node("Identity", [y], dict(dtype=y.dtype, shape=y.shape, mag=y.mag)), 2)


def between(g):
    """Convolutions with an op between them that names dimensions."""
    y = calm(g, conv(g, g.leaf("f32", (g.choose(1, 2), 3, g.size(11), g.size(13)), 1)), 8)
    if y.rank != 4:
        raise Unsuitable("rank")
    for _ in range(g.rng.randint(1, 2)):
        axis = g.rng.randrange(4)
        how = g.choose("Concat", "Slice", "Softmax", "Pad", "ReduceMean", "CumSum", "flip")
        shape, mag = list(y.shape), y.mag
        more = {}
        if how == "Concat":
            shape[axis] += (rows := g.choose(1, 2, 3))
            inputs = [y, g.leaf("f32", [rows if i == axis else s for i, s in enumerate(y.shape)], 1)]
            more["axis"] = axis
        elif how == "Slice" and shape[axis] > 2:
            shape[axis] -= 1
            inputs = [y, g.constant([1]), g.constant([2**31]), g.constant([axis])]
        elif how == "flip":
            how, inputs = "Slice", [y, g.constant([-1]), g.constant([-2**31]), g.constant([axis]), g.constant([-1])]
        elif how == "Pad":
            low, high = [g.choose(0, 0, 1, 2) for _ in shape], [g.choose(0, 0, 1) for _ in shape]
            shape = [s + a + b for s, a, b in zip(shape, low, high)]
            inputs = [y, g.constant(low + high)]
        elif how == "ReduceMean" and g.opset >= 18:
            mean = g.node(how, [y, g.constant([axis])], dict(dtype="f32", shape=[1 if i == axis else s for i, s in enumerate(shape)], mag=mag), keep=False)
            how, inputs, mag = "Sub", [y, mean], 2 * mag
        elif how == "CumSum":
            inputs, mag = [y, g.constant(axis)], mag * shape[axis]
        else:
            how, inputs, mag = "Softmax", [y], 1
            more["axis"] = axis
        if count(shape) > MOST_ELEMENTS:
            raise Unsuitable("size")
        y = g.node(how, inputs, dict(dtype="f32", shape=shape, mag=mag), keep=False, **more)
    return conv(g, calm(g, y, 4) if y.mag > 50 else y)


def chain(g):
    """Library calls with views between them."""
    x = g.choose(matmul, conv, gemm)(g)
    for _ in range(g.rng.randint(0, 3)):
        x = view(g, x)
    step = g.rng.random()
    if 3 <= x.rank <= 5 and step < 0.5:
        return conv(g, calm(g, x, 4) if x.mag > 50 else x)
    if x.rank >= 1 and x.is_float:
        return matmul(g, calm(g, x, 4) if x.mag > 50 else x)
    return x


def residual(g):
    """Branches from one value that meet again."""
    x = image(g, 2500) if g.chance(0.5) else operand(g, least=2, most=2500)
    alone = g.chance(0.6)
    if alone:  # nobody else reads it: what is added to it may take its place
        x = g.node("Relu", [x], dict(dtype=x.dtype, shape=x.shape, mag=x.mag, low=0), keep=False)
    y = x
    for _ in range(g.rng.randint(1, 2)):
        if x.rank >= 3 and g.chance(0.7):
            kernel = [g.choose(1, 3) for _ in x.shape[2:]]
            w = weight(g, x.dtype, (x.shape[1], x.shape[1], *kernel), x.shape[1] * count(kernel))
            if w.size > 2 * MOST_ELEMENTS:
                raise Unsuitable("large")
            bias = [g.leaf(x.dtype, (x.shape[1],), 1, constant=True)] if g.chance(0.5) else []
            y = g.node("Conv", [y, w, *bias], dict(dtype=x.dtype, shape=x.shape, mag=product(y.mag, w.mag, x.shape[1] * count(kernel))),
                       pads=[k // 2 for k in kernel] * 2)
        else:
            w = weight(g, x.dtype, (x.shape[-1], x.shape[-1]), x.shape[-1])
            y = g.node("MatMul", [y, w], dict(dtype=x.dtype, shape=x.shape, mag=product(y.mag, w.mag, x.shape[-1])))
        if g.chance(0.6):
            y = g.node(g.choose("Relu", "Tanh", "Sigmoid"), [y], dict(dtype=x.dtype, shape=x.shape, mag=y.mag))
        y = calm(g, y, 4) if y.mag > 200 else y
    y = g.node(g.choose("Add", "Add", "Add" if alone else "Sub", "Mul", "Max"), g.choose([x, y], [y, x]), dict(dtype=x.dtype, shape=x.shape, mag=max(x.mag + y.mag, x.mag * y.mag)))
    return epilogue(g, y, 2)
