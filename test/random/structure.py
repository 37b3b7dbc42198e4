"""Branches, loops and sequences whose course is known."""

from onnx import TensorProto, helper

from graph import MOST_ELEMENTS, Unsuitable, onnx_type, port
from shapes import ALL, axis, like


def branch(g):
    """If, with a constant condition; both branches read a value from outside."""
    x = g.take(("f32", "f64"))
    taken = g.chance(0.5)
    out = g.name("b")
    def body(op):
        node = helper.make_node(op, [x.name], [out])
        return helper.make_graph([node], op, [], [helper.make_tensor_value_info(out, onnx_type(x.dtype), x.shape)])
    then, other = g.choose(("Neg", "Abs"), ("Abs", "Sigmoid"), ("Relu", "Neg"))
    x.uses += 1
    y = g.node("If", [g.constant(taken, "bool")], dict(dtype=x.dtype, shape=x.shape, mag=max(x.mag, 1), fuzzy=x.fuzzy, doubt=x.doubt,
               exact=x.exact and (then if taken else other) != "Sigmoid"), then_branch=body(then), else_branch=body(other))
    y.node.captured = [x.name]
    return y


def loop(g):
    """A loop of a known number of iterations: a running sum, and all its values."""
    x = g.take(("f32", "f64", "i64"), most=1000)
    trips = g.rng.randint(1, 4)
    kind, names = onnx_type(x.dtype), {n: g.name(n) for n in ("i", "go", "state", "kept", "next", "seen")}
    nodes = [helper.make_node("Identity", [names["go"]], [names["kept"]]),
             helper.make_node("Add", [names["state"], x.name], [names["next"]]),
             helper.make_node("Neg", [names["next"]], [names["seen"]])]
    body = helper.make_graph(
        nodes, "body",
        [helper.make_tensor_value_info(names["i"], TensorProto.INT64, []), helper.make_tensor_value_info(names["go"], TensorProto.BOOL, []),
         helper.make_tensor_value_info(names["state"], kind, x.shape)],
        [helper.make_tensor_value_info(names["kept"], TensorProto.BOOL, []), helper.make_tensor_value_info(names["next"], kind, x.shape),
         helper.make_tensor_value_info(names["seen"], kind, x.shape)])
    mag = x.mag * (trips + 1)
    y, all_ = g.node("Loop", [g.constant(trips), g.constant(True, "bool"), x], dict(dtype=x.dtype, shape=x.shape, mag=mag),
                     dict(dtype=x.dtype, shape=(trips, *x.shape), mag=mag), body=body)
    return g.choose(y, all_)


def sequence(g):
    """A sequence, made and taken apart again."""
    x = g.take(("f32", "i64", "f64"), least=1, most=2000)
    place, written = axis(g, x)
    parts = [x] + [g.leaf(x.dtype, x.shape) for _ in range(g.rng.randint(0, 2))]
    whole = dict(dtype=x.dtype, shape=x.shape)
    seq = g.node("SequenceConstruct", parts, whole, keep=False)
    seq.tensor = False
    how = g.choose("at", "concat", "stack", "insert", "split")
    exact = all(p.exact for p in parts)
    mag = max(p.mag for p in parts)
    if how == "insert":
        parts.insert(0, x)
        seq = g.node("SequenceInsert", [seq, x, g.constant(0)], whole, keep=False)
        seq.tensor = False
        how = "concat"
    if how == "at":
        at = g.rng.randrange(-len(parts), len(parts))
        return g.node("SequenceAt", [seq, g.constant(at)], like(x, x.shape, mag=mag, low=None, exact=exact))
    if how == "split" and x.shape[place] >= 2:
        seq = g.node("SplitToSequence", [x, g.constant([1, x.shape[place] - 1])], whole, axis=written, keep=False)
        seq.tensor = False
        return g.node("SequenceAt", [seq, g.constant(1)], like(x, [s - 1 if i == place else s for i, s in enumerate(x.shape)]))
    if how == "stack":
        shape = list(x.shape)
        shape.insert(place, len(parts))
        return g.node("ConcatFromSequence", [seq], like(x, shape, mag=mag, low=None, exact=exact), axis=place, new_axis=1)
    shape = [s * len(parts) if i == place else s for i, s in enumerate(x.shape)]
    if shape[place] * 1 > MOST_ELEMENTS:
        raise Unsuitable("large")
    return g.node("ConcatFromSequence", [seq], like(x, shape, mag=mag, low=None, exact=exact), axis=written)


def edited_sequence(g):
    """A sequence that begins empty; how many are left is a number of the model, too."""
    x = g.take(("f32", "i64", "f64"), most=2000)
    parts = [x] + [g.leaf(x.dtype, x.shape) for _ in range(g.rng.randint(0, 2))]
    whole = dict(dtype=x.dtype, shape=x.shape)

    def step(op, inputs, **more):
        made = g.node(op, inputs, whole, keep=False, **more)
        made.tensor = False
        return made

    seq, order = step("SequenceEmpty", [], dtype=onnx_type(x.dtype)), []
    for part in parts:
        place = g.rng.randrange(-len(order), len(order) + 1) if order and g.chance(0.5) else None
        seq = step("SequenceInsert", [seq, part] + ([] if place is None else [g.constant(place)]))
        order.insert(len(order) if place is None else place, part)
    if len(order) > 1:
        place = g.rng.randrange(-len(order), len(order)) if g.chance(0.7) else None
        seq = step("SequenceErase", [seq] + ([] if place is None else [g.constant(place)]))
        del order[-1 if place is None else place]
    if g.chance(0.5):
        return g.node("SequenceLength", [seq], dict(dtype="i64", shape=(), mag=3, exact=True))
    at = g.rng.randrange(len(order))
    return g.node("SequenceAt", [seq, g.constant(at)], like(x, x.shape, mag=max(p.mag for p in parts), low=None, exact=all(p.exact for p in parts)))


def mapped(g):
    """A function of every tensor of a sequence."""
    if g.opset < 17:
        raise Unsuitable("opset")
    x = g.take(("f32", "f64"), most=2000)
    parts = [x] + [g.leaf(x.dtype, x.shape) for _ in range(g.rng.randint(0, 2))]
    whole = dict(dtype=x.dtype, shape=x.shape)
    seq = g.node("SequenceConstruct", parts, whole, keep=False)
    seq.tensor = False
    kind, names = onnx_type(x.dtype), [g.name("e"), g.name("f")]
    op = g.choose("Neg", "Abs", "Relu")
    body = helper.make_graph([helper.make_node(op, names[:1], names[1:])], "body", [helper.make_tensor_value_info(names[0], kind, None)],
                             [helper.make_tensor_value_info(names[1], kind, None)])
    seq = g.node("SequenceMap", [seq], whole, keep=False, body=body)
    seq.tensor = False
    return g.node("SequenceAt", [seq, g.constant(g.rng.randrange(len(parts)))],
                  like(x, x.shape, mag=max(p.mag for p in parts), low=None, exact=all(p.exact for p in parts)))


def optional(g):
    """A tensor that is there, asked for and taken out again."""
    if g.opset < 15:
        raise Unsuitable("opset")
    x = g.take(("f32", "i64", "f64"), most=2000)
    held = g.node("Optional", [x], dict(dtype=x.dtype, shape=x.shape), keep=False)
    held.tensor = False
    if g.chance(0.5):
        return g.node("OptionalHasElement", [held], dict(dtype="bool", shape=(), mag=1, exact=True))
    return g.node("OptionalGetElement", [held], like(x, x.shape))
