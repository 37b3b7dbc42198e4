"""A small language model of the ops that ONNX Runtime adds to ONNX, as the model builder of ONNX Runtime GenAI writes them, with weights of 4 bits."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def rotations(length, half, noise):
    """The cosines and sines of a rotary embedding."""
    angles = np.arange(length)[:, None] * noise.uniform(0.05, 1.0, half)[None]
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def write_decoder(path, layers=2, hidden=64, heads=4, kv_heads=2, head=16, inner=96, words=50, length=512, accuracy=1, growing=False, experts=0):
    """Writes the model, for texts of at most `length` words; `accuracy` is what ONNX Runtime may round to. `growing`: attention is of ONNX's ops, and caches with the
    new words are longer than those of the past, as Optimum exports them. `experts`: so many networks, two of which compute each word. Returns the names of each layer's caches (keys and values of the past, and those with the new words), and their heads and sizes."""
    noise = np.random.default_rng(7)
    nodes, weights = [], {}

    def weight(name, value):
        weights[name] = value
        return name

    def add(op, inputs, *outputs, domain="com.microsoft", **attributes):
        nodes.append(helper.make_node(op, inputs, list(outputs), name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def choose(x, i):
        """The layer's result of two of several experts, whose gates and linear parts are pairs of rows."""
        weight("scored", np.array([-1, experts], np.int64))
        scores = add("Reshape", [product(x, hidden, experts, f"{i}.router"), "scored"], f"{i}.scores", domain="")
        parts = [x, scores]
        for name, columns, rows in (("fc1", hidden, 2 * inner), ("fc2", inner, hidden)):
            parts.append(weight(f"{i}.{name}.w", noise.integers(0, 256, (experts, rows, columns // 2)).astype(np.uint8)))
            parts += [weight(f"{i}.{name}.s", noise.uniform(0.01, 0.05, (experts, rows, columns // 32)).astype(np.float32)), ""]
        return add("QMoE", parts[:-1], f"{i}.down", k=2, activation_type="swiglu", swiglu_fusion=1, normalize_routing_weights=1, expert_weight_bits=4, block_size=32)

    def scale(name):
        return weight(name, noise.uniform(0.5, 1.5, hidden).astype(np.float32))

    def product(x, columns, rows, name):
        packed = weight(name + ".w", noise.integers(0, 256, (rows, columns // 32, 16)).astype(np.uint8))
        scales = weight(name + ".s", noise.uniform(0.01, 0.05, (rows, columns // 32)).astype(np.float32))
        return add("MatMulNBits", [x, packed, scales], name, K=columns, N=rows, bits=4, block_size=32, accuracy_level=accuracy)

    cos, sin = rotations(length, head // 2, noise)
    weight("cos", cos), weight("sin", sin), weight("one", np.array([1], np.int64)), weight("length", np.array(1, np.int64))
    add("Shape", ["attention_mask"], "mask_shape", domain="")
    add("Gather", ["mask_shape", "length"], "total64", domain="")
    if growing:
        # 0 where a word reads another, and a large negative number where that is padding, or comes later.
        for name, value in (("zero", 0), ("step", 1)):
            weight(name, np.array(value, np.int64))
        weight("none", np.float32(-1e9)), weight("all", np.float32(0)), weight("outer", np.array([1, 2], np.int64))
        weight("scale", np.float32(head**-0.5)), weight("two_inner", np.array([2], np.int64))
        weight("heads", np.array([0, 0, -1, head], np.int64)), weight("flat", np.array([0, 0, heads * head], np.int64))
        weight("repeated", np.array([1, 1, heads // kv_heads, 1, 1], np.int64)), weight("merged", np.array([0, heads, -1, head], np.int64))
        add("Shape", ["input_ids"], "ids_shape", domain="")
        add("Gather", ["ids_shape", "length"], "new", domain="")
        add("Sub", ["total64", "new"], "before", domain="")
        add("Range", ["zero", "total64", "step"], "columns", domain="")
        add("Range", ["before", "total64", "step"], "rows", domain="")
        add("Unsqueeze", ["rows", "one"], "rows_up", domain="")
        add("LessOrEqual", ["columns", "rows_up"], "earlier", domain="")
        add("Unsqueeze", ["attention_mask", "outer"], "mask_up", domain="")
        add("Cast", ["mask_up"], "present", domain="", to=TensorProto.BOOL)
        add("And", ["present", "earlier"], "read", domain="")
        add("Where", ["read", "all", "none"], "bias", domain="")
    else:
        add("ReduceSum", ["attention_mask", "one"], "count", domain="")
        add("Sub", ["count", "one"], "last", domain="")
        add("Cast", ["last"], "lengths", domain="", to=TensorProto.INT32)
        add("Cast", ["total64"], "total", domain="", to=TensorProto.INT32)

    def split_heads(x, name):
        """[batch, words, n * head] as [batch, n, words, head]."""
        return add("Transpose", [add("Reshape", [x, "heads"], name + "_4", domain="")], name + "_t", domain="", perm=[0, 2, 1, 3])

    def repeat(cache, name):
        up = add("Unsqueeze", [cache, "two_inner"], name + "_up", domain="")
        return add("Reshape", [add("Expand", [up, "repeated"], name + "_wide", domain=""), "merged"], name + "_all", domain="")

    def grow(qkv, caches, i):
        """Attention of a layer in ONNX's ops."""
        weight(f"{i}.parts", np.array([heads * head, kv_heads * head, kv_heads * head], np.int64))
        nodes.append(helper.make_node("Split", [qkv, f"{i}.parts"], [f"{i}.q", f"{i}.k", f"{i}.v"], name=f"{i}.split", axis=2))
        q, k, v = (split_heads(f"{i}.{part}", f"{i}.{part}") for part in "qkv")
        q, k = (add("RotaryEmbedding", [x, "position_ids", "cos", "sin"], x + "_turned") for x in (q, k))
        for past, new, present in zip(caches[:2], (k, v), caches[2:]):
            add("Concat", [past, new], present, domain="", axis=2)
        keys = add("Transpose", [repeat(caches[2], f"{i}.keys")], f"{i}.keys_t", domain="", perm=[0, 1, 3, 2])
        scores = add("Mul", [add("MatMul", [q, keys], f"{i}.qk", domain=""), "scale"], f"{i}.scaled", domain="")
        shares = add("Softmax", [add("Add", [scores, "bias"], f"{i}.masked", domain="")], f"{i}.shares", domain="", axis=-1)
        rows = add("MatMul", [shares, repeat(caches[3], f"{i}.values")], f"{i}.rows", domain="")
        return add("Reshape", [add("Transpose", [rows], f"{i}.rows_t", domain="", perm=[0, 2, 1, 3]), "flat"], f"{i}.attention", domain="")

    sums = add("Gather", [weight("table", noise.standard_normal((words, hidden)).astype(np.float32)), "input_ids"], "words", domain="")
    x = add("SimplifiedLayerNormalization", [sums, scale("norm")], "first", domain="", epsilon=1e-5)
    names = []
    for i in range(layers):
        qkv = product(x, hidden, (heads + 2 * kv_heads) * head, f"{i}.qkv")
        caches = [f"past_key_values.{i}.key", f"past_key_values.{i}.value", f"present.{i}.key", f"present.{i}.value"]
        names.append(caches)
        if growing:
            y = grow(qkv, caches, i)
        else:
            y = add("GroupQueryAttention", [qkv, "", "", *caches[:2], "lengths", "total", "cos", "sin"], f"{i}.attention", *caches[2:],
                    num_heads=heads, kv_num_heads=kv_heads, do_rotary=1)
        y = product(y, heads * head, hidden, f"{i}.out")
        x = add("SkipSimplifiedLayerNormalization", [sums, y, scale(f"{i}.norm1")], f"{i}.x1", "", "", f"{i}.sum1", epsilon=1e-5)
        if experts:
            y = choose(x, i)
        else:
            gate, up = product(x, hidden, inner, f"{i}.gate"), product(x, hidden, inner, f"{i}.up")
            y = add("Mul", [add("QuickGelu", [gate], f"{i}.act", alpha=1.0), up], f"{i}.gated", domain="")
            y = product(y, inner, hidden, f"{i}.down")
        x = add("SkipSimplifiedLayerNormalization", [f"{i}.sum1", y, scale(f"{i}.norm2")], f"{i}.x2", "", "", f"{i}.sum2", epsilon=1e-5)
        sums = f"{i}.sum2"
    add("MatMul", [x, weight("head", noise.standard_normal((hidden, words)).astype(np.float32))], "logits", domain="")
    tensor = helper.make_tensor_value_info
    inputs = [tensor("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])]
    inputs.append(tensor("attention_mask", TensorProto.INT64, ["batch_size", "past_sequence_length + sequence_length" if growing else "total_sequence_length"]))
    inputs += [tensor("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"])] if growing else []
    inputs += [tensor(name, TensorProto.FLOAT, ["batch_size", kv_heads, "past_sequence_length", head]) for caches in names for name in caches[:2]]
    outputs = [tensor("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", words])]
    outputs += [tensor(name, TensorProto.FLOAT, None) for caches in names for name in caches[2:]]
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return names, (kv_heads, head)
