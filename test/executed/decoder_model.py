"""A small language model of the ops that ONNX Runtime adds to ONNX, as the model builder of ONNX Runtime GenAI writes them, with weights of 4 bits."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def rotations(length, half, noise):
    """The cosines and sines of a rotary embedding."""
    angles = np.arange(length)[:, None] * noise.uniform(0.05, 1.0, half)[None]
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def write_decoder(path, layers=2, hidden=64, heads=4, kv_heads=2, head=16, inner=96, words=50, length=512, accuracy=1):
    """Writes the model, for texts of at most `length` words; `accuracy` is what ONNX Runtime may round to. Returns the names of each layer's caches (keys and values of the past, and those with the new words), and their heads and sizes."""
    noise = np.random.default_rng(7)
    nodes, weights = [], {}

    def weight(name, value):
        weights[name] = value
        return name

    def add(op, inputs, *outputs, domain="com.microsoft", **attributes):
        nodes.append(helper.make_node(op, inputs, list(outputs), name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def scale(name):
        return weight(name, noise.uniform(0.5, 1.5, hidden).astype(np.float32))

    def product(x, columns, rows, name):
        packed = weight(name + ".w", noise.integers(0, 256, (rows, columns // 32, 16)).astype(np.uint8))
        scales = weight(name + ".s", noise.uniform(0.01, 0.05, (rows, columns // 32)).astype(np.float32))
        return add("MatMulNBits", [x, packed, scales], name, K=columns, N=rows, bits=4, block_size=32, accuracy_level=accuracy)

    cos, sin = rotations(length, head // 2, noise)
    weight("cos", cos), weight("sin", sin), weight("one", np.array([1], np.int64)), weight("length", np.array(1, np.int64))
    add("ReduceSum", ["attention_mask", "one"], "count", domain="")
    add("Sub", ["count", "one"], "last", domain="")
    add("Cast", ["last"], "lengths", domain="", to=TensorProto.INT32)
    add("Shape", ["attention_mask"], "mask_shape", domain="")
    add("Gather", ["mask_shape", "length"], "total64", domain="")
    add("Cast", ["total64"], "total", domain="", to=TensorProto.INT32)
    sums = add("Gather", [weight("table", noise.standard_normal((words, hidden)).astype(np.float32)), "input_ids"], "words", domain="")
    x = add("SimplifiedLayerNormalization", [sums, scale("norm")], "first", domain="", epsilon=1e-5)
    names = []
    for i in range(layers):
        qkv = product(x, hidden, (heads + 2 * kv_heads) * head, f"{i}.qkv")
        caches = [f"past_key_values.{i}.key", f"past_key_values.{i}.value", f"present.{i}.key", f"present.{i}.value"]
        names.append(caches)
        y = add("GroupQueryAttention", [qkv, "", "", *caches[:2], "lengths", "total", "cos", "sin"], f"{i}.attention", *caches[2:],
                num_heads=heads, kv_num_heads=kv_heads, do_rotary=1)
        y = product(y, heads * head, hidden, f"{i}.out")
        x = add("SkipSimplifiedLayerNormalization", [sums, y, scale(f"{i}.norm1")], f"{i}.x1", "", "", f"{i}.sum1", epsilon=1e-5)
        gate, up = product(x, hidden, inner, f"{i}.gate"), product(x, hidden, inner, f"{i}.up")
        y = add("Mul", [add("QuickGelu", [gate], f"{i}.act", alpha=1.0), up], f"{i}.gated", domain="")
        y = product(y, inner, hidden, f"{i}.down")
        x = add("SkipSimplifiedLayerNormalization", [f"{i}.sum1", y, scale(f"{i}.norm2")], f"{i}.x2", "", "", f"{i}.sum2", epsilon=1e-5)
        sums = f"{i}.sum2"
    add("MatMul", [x, weight("head", noise.standard_normal((hidden, words)).astype(np.float32))], "logits", domain="")
    tensor = helper.make_tensor_value_info
    inputs = [tensor("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])]
    inputs.append(tensor("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]))
    inputs += [tensor(name, TensorProto.FLOAT, ["batch_size", kv_heads, "past_sequence_length", head]) for caches in names for name in caches[:2]]
    outputs = [tensor("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", words])]
    outputs += [tensor(name, TensorProto.FLOAT, None) for caches in names for name in caches[2:]]
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return names, (kv_heads, head)
