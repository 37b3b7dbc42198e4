"""Models and their inputs as files: what was found, kept as tests."""

import json

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from graph import TYPES, Model, Node, Value

NAMES = {number: name for name, (_, number, _) in TYPES.items()}


def save(model, path, note):
    """Writes the model as text, its inputs and `note` (why it is kept) beside it. A model whose constants the text cannot say is written as .onnx."""
    proto = model.proto()
    path = path.with_suffix(".onnxtxt")
    try:
        text = onnx.printer.to_text(proto)
        same = onnx.parser.parse_model(text).graph
        if [t.name for t in same.initializer] != [t.name for t in proto.graph.initializer] or any(
                not np.array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b), equal_nan=a.data_type in (1, 10, 11))
                for a, b in zip(same.initializer, proto.graph.initializer)):
            raise ValueError("the text says something else")
        path.write_text(text)
    except Exception:
        path = path.with_suffix(".onnx")
        path.write_bytes(proto.SerializeToString())
    inputs = {v.name: {"type": v.dtype, "shape": v.shape, "data": numbers(v)} for v in model.inputs}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(given)}" for name, given in inputs.items())
    path.with_suffix(".json").write_text(f'{{"note": {json.dumps(note)},\n "inputs": {{\n{lines}}}}}\n')
    return path


def steps(shape):
    """0, 1, ..., 6, 0, 1, ..., as the shrinker makes them."""
    return (np.arange(int(np.prod(shape))) % 7).reshape(shape)


def numbers(value):
    """An input's elements: a word for those that have one, else a list."""
    wide = np.asarray(value.data).astype(np.float64)
    if np.array_equal(wide, steps(value.shape)):
        return "steps"
    return [float(x) if value.is_float else int(x) for x in wide.reshape(-1)]


def load(path):
    """The model of a file, and the note. What is exact is not known: integers are, floats are not."""
    proto = onnx.load(path) if path.suffix == ".onnx" else onnx.parser.parse_model(path.read_text())
    beside = json.loads(path.with_suffix(".json").read_text())
    known = shape_inference.infer_shapes(proto, data_prop=True).graph
    types = {v.name: v.type for v in [*known.value_info, *known.output]}
    values, leaves = {}, []
    for leaf in proto.graph.initializer:
        array = numpy_helper.to_array(leaf)
        values[leaf.name] = Value(leaf.name, NAMES[leaf.data_type], array.shape, exact=True, data=array)
        values[leaf.name].constant = True
        if array.dtype.kind != "f":
            values[leaf.name].fixed = True
        leaves.append(values[leaf.name])
    for name, given in beside["inputs"].items():
        data = steps(given["shape"]) if given["data"] == "steps" else np.array(given["data"]).reshape(given["shape"])
        data = data.astype(TYPES[given["type"]][0])
        values[name] = Value(name, given["type"], given["shape"], exact=True, data=data)
        values[name].constant = False
        leaves.append(values[name])
    nodes = []
    for node in proto.graph.node:
        if node.op_type == "Constant":
            array = numpy_helper.to_array(node.attribute[0].t)
            leaf = values[node.output[0]] = Value(node.output[0], NAMES[node.attribute[0].t.data_type], array.shape, exact=True, data=array)
            leaf.constant = leaf.fixed = True
            leaves.append(leaf)
            continue
        outputs = []
        for name in node.output:
            kind = types.get(name)
            is_tensor = kind is not None and kind.HasField("tensor_type")
            shape = [d.dim_value for d in kind.tensor_type.shape.dim] if is_tensor else []
            value = Value(name, NAMES.get(kind.tensor_type.elem_type, "f32") if is_tensor else "f32", shape)
            value.exact, value.tensor = is_tensor and not value.is_float, is_tensor
            values[name] = value
            outputs.append(value)
        made = Node(node.op_type, [values[n] if n else None for n in node.input], outputs, {a.name: helper.get_attribute_value(a) for a in node.attribute}, node.domain)
        inner = {n for a in node.attribute if a.HasField("g") for b in a.g.node for n in b.input}
        made.captured = sorted(inner & set(values))
        made.sharp = True
        for value in outputs:
            value.node = made
        nodes.append(made)
    outputs = [values[o.name] for o in proto.graph.output]
    return Model(nodes, leaves, outputs, proto.opset_import[0].version, proto.ir_version), beside["note"]
