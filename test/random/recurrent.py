"""LSTM, GRU and RNN in all their forms."""

from elementwise import epilogue
from graph import Unsuitable


def recurrent(g):
    op = g.choose("LSTM", "LSTM", "GRU", "RNN")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    kind = "f32"
    steps, batch, width, hidden = g.choose(1, 2, 3, 7), g.choose(1, 2, 3, 5), g.choose(1, 3, 8, 17), g.choose(1, 4, 8, 17)
    direction = g.choose("forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    x = g.pick(lambda v: v.dtype == kind and v.rank == 3 and v.size <= 1500 and v.mag < 20) if g.chance(0.5) else None
    if x is not None and 0 not in x.shape and max(x.shape) <= 24:
        steps, batch, width = x.shape
    else:
        x = g.leaf(kind, (steps, batch, width), 1)
    def parameter(*shape, strided=0.4):
        """A parameter, as it lies or through strides: turned round, or every second element."""
        if not g.chance(strided):
            return g.leaf(kind, shape, 0.5, constant=True)
        result = dict(dtype=kind, shape=shape, mag=0.5, exact=True)
        constant = g.chance(0.5)
        if g.chance(0.5):
            turned = g.leaf(kind, shape[::-1], 0.5, constant=constant)
            return g.node("Transpose", [turned], result, perm=list(range(len(shape)))[::-1], keep=False)
        wider = g.leaf(kind, (*shape[:-1], 2 * shape[-1]), 0.5, constant=constant)
        return g.node("Slice", [wider, g.constant([g.choose(0, 1)]), g.constant([2**31]), g.constant([-1]), g.constant([2])], result, keep=False)
    w = parameter(d, gates * hidden, width)
    r = parameter(d, gates * hidden, hidden)
    optional = [None] * 5
    if g.chance(0.6):
        optional[0] = parameter(d, 2 * gates * hidden)
    if g.chance(0.3):
        optional[1] = g.leaf("i32", (batch,), steps, 1)
    if g.chance(0.4):
        optional[2] = g.leaf(kind, (d, batch, hidden), 1)
    if op == "LSTM" and g.chance(0.4):
        optional[3] = g.leaf(kind, (d, batch, hidden), 1)
    if op == "LSTM" and g.chance(0.6):
        optional[4] = parameter(d, 3 * hidden, strided=0.7)
    inputs = [x, w, r, *optional]
    while inputs[-1] is None:
        inputs.pop()
    more = dict(hidden_size=hidden, direction=direction if g.chance(0.8) or d == 2 or direction == "reverse" else None)
    if op == "GRU":
        more["linear_before_reset"] = g.choose(None, 1)
    if op == "LSTM" and g.chance(0.15):
        more["input_forget"] = 1
    if g.chance(0.15):
        more["clip"] = 1.5
    if g.chance(0.2):
        names = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}[op]
        swap = {"Sigmoid": ("Sigmoid", "HardSigmoid"), "Tanh": ("Tanh", "Relu", "Softsign")}
        more["activations"] = [g.choose(*swap[n]) for n in names] * d
    mag = 3 if "activations" in more else 1
    results = [dict(dtype=kind, shape=(steps, d, batch, hidden), mag=mag), dict(dtype=kind, shape=(d, batch, hidden), mag=mag)]
    if op == "LSTM" and g.chance(0.5):
        results.append(dict(dtype=kind, shape=(d, batch, hidden), mag=4))
    y = g.node(op, inputs, *results, **more)[0]
    if g.chance(0.6):
        y = g.node("Transpose", [y], dict(dtype=kind, shape=(steps, batch, d, hidden), mag=mag), perm=[0, 2, 1, 3])
        y = g.node("Reshape", [y, g.constant([steps, batch, d * hidden])], dict(dtype=kind, shape=(steps, batch, d * hidden), mag=mag))
    return epilogue(g, y, 2)
