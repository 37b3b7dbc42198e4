"""When two results are the same but for rounding."""

import numpy as np

from graph import TYPES


# By the distance of neighbours: a few of the smallest numbers, which are as far apart as they are large; or what counts as 0 (docs/numerics.md).
SMALLEST = {TYPES["f16"][2]: 8 * 2.0**-24, TYPES["bf16"][2]: 2.0**-125, TYPES["f32"][2]: 2.0**-125, TYPES["f64"][2]: 2.0**-1021}


def roundings(model):
    """For each output the coarsest type that it was computed through: the distance of neighbours there."""
    eps = {v.name: TYPES[v.dtype][2] for v in model.leaves}
    for node in model.nodes:
        most = max([eps.get(v.name, 0) for v in node.inputs if v is not None], default=0)
        if node.op in ("LayerNormalization", "RMSNormalization", "GroupNormalization"):
            most = max(most, TYPES["f32"][2])  # stash_type
        for v in node.outputs:
            eps[v.name] = max(most, TYPES[v.dtype][2])
    return eps


SPREADING = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "Softmax", "LogSoftmax",
             "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "BatchNormalization", "LpNormalization",
             "MeanVarianceNormalization", "LRN", "CumSum", "LSTM", "GRU", "RNN", "Attention", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalLpPool",
             "MaxPool", "GlobalMaxPool", "Resize", "GridSample", "RoiAlign", "ScatterElements", "ScatterND", "DynamicQuantizeLinear", "Loop", "STFT", "DFT", "Col2Im", "AffineGrid")

# What moves elements, and may repeat them.
MOVING = ("Pad", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Expand", "Tile", "Identity", "Cast")


def loosened(model):
    """Names of values in which one flipped element of a fuzzy one may have changed many."""
    loose = set()
    for node in model.nodes:
        inputs = [v for v in node.inputs if v is not None]
        spreads = node.op in SPREADING or node.op.startswith("Reduce")
        if any(v.name in loose for v in inputs) or (spreads and any(v.fuzzy for v in inputs)):
            loose |= {v.name for v in node.outputs}
    return loose


def wide(array):
    return array.astype(np.float64) if array.dtype != np.bool_ else array.astype(np.float64)


def flipped(value, eps, other):
    """One of how many elements of a value that is not continuous may differ. `other`: who computed the second one rounds elsewhere."""
    if other and eps == TYPES["f16"][2]:
        return 2  # ONNX Runtime computes chains of f16 in f32
    while value.node.op in MOVING and value.node.inputs[0].node:
        if value.dtype == "bool" and value.node.inputs[0].is_float:
            return 4  # whether numbers are exactly 0: what saturates is by one program, and not by another one
        value = value.node.inputs[0]
    if other and value.node.op in ("TopK", "ArgMax", "ArgMin"):
        return 4  # what is next to a tie changes its place, too
    return 16


def difference(value, actual, expected, eps=0.0, moves=(), loose=False, factor=1.0, terms=0.0, other=False):
    """None if `actual` is `expected` but for rounding, else a text. `moves`: how far the result moved as the leaves did. `terms`: the size of numbers that
    may have cancelled on the way, where inner values could not be moved. `other`: whether another program computed `expected`."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if expected.size == 0:
        return None
    with np.errstate(all="ignore"):
        if not value.is_float:
            wrong = actual != expected
            a, e = wide(actual), wide(expected)
            alike = [m for m in moves if m.shape == e.shape]
            if value.fuzzy and len(alike) > 1:
                # A place or a whole number that roundings change is not compared.
                wrong &= np.all([m == alike[0] for m in alike[1:]], axis=0)
        else:
            a, e = wide(actual), wide(expected)
            finite = np.isfinite(e)
            most = np.max(np.abs(e), where=finite, initial=0)
            bound = 0 if value.exact else factor * (eps * (32 * np.abs(e) + 16 * most + 8 * terms) + SMALLEST.get(eps, 0.0))
            for move in moves:
                if move.shape != e.shape:
                    continue  # how many there are depends on what was moved
                far = np.nan_to_num(np.abs(wide(move) - e), nan=0, posinf=np.inf)
                # Where two moves cancel in one element, its neighbours tell how far it may go.
                bound = bound + factor * (16 * far + 4 * np.median(far))
            wrong = ~((np.abs(a - e) <= bound) | (a == e) | (np.isnan(a) & np.isnan(e)))
            if np.any(np.isnan(e) != np.isnan(a)):
                wrong |= np.isnan(e) != np.isnan(a)
        number = int(np.count_nonzero(wrong))
        if not number:
            return None
        if loose:
            scale = np.sqrt(np.mean(np.square(e, where=np.isfinite(e), out=np.zeros_like(e)))) + 1e-30
            off = np.sqrt(np.mean(np.square(a - e, where=np.isfinite(e) & np.isfinite(a), out=np.zeros_like(e))))
            if off <= 0.15 * scale or number <= 2:
                return None
        elif value.fuzzy and number <= max(2, expected.size // flipped(value, eps, other)):
            return None
        distance = np.where(wrong, np.abs(a - e), -1.0)
        distance = np.where(np.isnan(distance), np.inf, distance)
        at = np.unravel_index(int(np.argmax(distance)), e.shape)
    place = f" at {[int(i) for i in at]}" if at else ""
    return f"{number} of {expected.size} elements differ; worst{place}: {actual[at]} instead of {expected[at]}"
