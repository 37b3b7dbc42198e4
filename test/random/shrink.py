"""The smallest model that still shows a difference."""

import numpy as np

from files import steps
from graph import Model, Value


def with_nodes(model, nodes, leaves, outputs):
    return Model(nodes, leaves, outputs, model.opset, model.ir_version)


def copy(model, replace):
    """The model with values replaced by name, in nodes that are copies."""
    from graph import Node
    nodes = []
    for node in model.nodes:
        new = Node(node.op, [replace.get(v.name, v) if v is not None else None for v in node.inputs], node.outputs, node.attributes, node.domain)
        new.sharp = node.sharp
        if hasattr(node, "captured"):
            new.captured = node.captured
        nodes.append(new)
    return nodes


def as_leaf(value, data, constant=False):
    leaf = Value(value.name, value.dtype, value.shape, value.mag, value.low, exact=True, data=data)
    leaf.constant = constant
    return leaf


def simple(array, how):
    if array.dtype == np.bool_:
        return array
    if how == "steps":
        return steps(array.shape).astype(array.dtype)
    if how == "ones":
        return np.ones_like(array)
    return np.round(array.astype(np.float64)).astype(array.dtype)


class Shrinker:
    """`fails(model)`: whether a model still shows it. `tensors`: inner values of the model, by name, or None."""

    def __init__(self, fails, tensors, most=150):
        self.fails, self.tensors, self.left = fails, tensors or {}, most

    def better(self, candidate):
        if self.left <= 0 or not candidate.nodes or not candidate.outputs:
            return False
        self.left -= 1
        try:
            return self.fails(candidate)
        except Exception:  # a candidate that is no model shows nothing
            return False

    def shrink(self, model):
        for _ in range(4):
            before = len(model.nodes), len(model.leaves)
            for step in (self.one_output, self.end_earlier, self.begin_later, self.pass_by, self.plain_leaves):
                model = step(model)
            if (len(model.nodes), len(model.leaves)) == before or self.left <= 0:
                break
        return model

    def one_output(self, model):
        if len(model.outputs) > 1:
            for output in model.outputs:
                candidate = with_nodes(model, model.nodes, model.leaves, [output])
                if self.better(candidate):
                    return candidate
        return model

    def end_earlier(self, model):
        """The first node whose result shows it."""
        for node in model.nodes[:-1]:
            outputs = [v for v in node.outputs if getattr(v, "tensor", True)]
            candidate = with_nodes(model, model.nodes, model.leaves, outputs) if outputs else None
            if candidate and candidate.inputs and self.better(candidate):
                return candidate
        return model

    def begin_later(self, model):
        """Makes results inputs, from the last on."""
        position = len(model.nodes) - 1
        while position >= 0:
            if position < len(model.nodes):
                node = model.nodes[position]
                values = [v for v in node.outputs if v.name in self.tensors and not isinstance(self.tensors[v.name], list)]
                outputs = {v.name for v in model.outputs}
                if values and len(values) == len(node.outputs) and not any(v.name in outputs for v in node.outputs):
                    leaves = {v.name: as_leaf(v, self.tensors[v.name]) for v in values}
                    candidate = with_nodes(model, [n for n in copy(model, leaves) if not any(v.name in leaves for v in n.outputs)],
                                           model.leaves + list(leaves.values()), model.outputs)
                    if self.better(candidate):
                        model = candidate
            position -= 1
        return model

    def pass_by(self, model):
        """Leaves nodes out that keep type and shape."""
        for node in list(model.nodes):
            if not any(n is node for n in model.nodes) or len(node.outputs) != 1:
                continue
            result = node.outputs[0]
            if any(v is result for v in model.outputs):
                continue
            for value in node.inputs:
                if value is not None and value.shape == result.shape and value.dtype == result.dtype:
                    kept = [n for n in model.nodes if n is not node]
                    candidate = with_nodes(model, [n for n in copy(with_nodes(model, kept, model.leaves, model.outputs), {result.name: value})], model.leaves, model.outputs)
                    if candidate.inputs and self.better(candidate):
                        return self.pass_by(candidate)
        return model

    def plain_leaves(self, model):
        for index, leaf in enumerate(model.leaves):
            if hasattr(leaf, "fixed") or leaf.size == 0:
                continue
            for how in ("steps", "ones", "round"):
                data = simple(leaf.data, how)
                if np.array_equal(data, leaf.data):
                    break
                new = as_leaf(leaf, data, leaf.constant)
                leaves = list(model.leaves)
                leaves[index] = new
                candidate = with_nodes(model, copy(model, {leaf.name: new}), leaves, model.outputs)
                if self.better(candidate):
                    model = candidate
                    break
        return model
