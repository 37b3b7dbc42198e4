#!/usr/bin/env python3
"""Ops that ONNX Runtime adds to ONNX (domain com.microsoft): what Partita computes is what ONNX Runtime computes.

    microsoft.py [CASE...]"""

import os
import pathlib
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (tools/setup.sh installs it)")
    sys.exit(77)

from decoder_model import rotations, write_decoder
from harness import Failure, compile_model, main, run_artifact



class Case:
    """One op, its inputs and its weights."""

    def __init__(self, op, outputs=1, domain="com.microsoft", version=18, tolerance=2e-5, **attributes):
        self.op, self.domain, self.version, self.tolerance, self.attributes = op, domain, version, tolerance, attributes
        self.outputs = [f"out{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.noise = np.random.default_rng(len(op))
        self.names, self.feeds, self.weights = [], {}, {}
        self.lengths, self.norms = None, {}

    def add(self, value, weight):
        if value is None:
            self.names.append("")
            return self
        name = f"in{len(self.names)}"
        self.names.append(name)
        (self.weights if weight else self.feeds)[name] = np.asarray(value)
        return self

    def input(self, value):
        return self.add(value, False)

    def weight(self, value):
        return self.add(value, True)

    def none(self, count=1):
        for _ in range(count):
            self.add(None, False)
        return self

    def x(self, *shape, weight=False, scale=1.0):
        return self.add((self.noise.standard_normal(shape) * scale).astype(np.float32), weight)

    def w(self, *shape, scale=0.5):
        return self.x(*shape, weight=True, scale=scale)

    def ids(self, high, *shape, dtype=np.int32, low=0):
        return self.input(self.noise.integers(low, high, shape).astype(dtype))

    def q(self, *shape, dtype=np.uint8, weight=False):
        """Integers of all values, or of 7 bits if they are signed: ONNX Runtime saturates sums of larger products on some processors."""
        info = np.iinfo(dtype)
        if dtype == np.int8:
            return self.add(self.noise.integers(-64, 63, shape, endpoint=True).astype(dtype), weight)
        return self.add(self.noise.integers(info.min, info.max, shape, endpoint=True).astype(dtype), weight)

    def number(self, value, dtype=np.float32):
        return self.weight(np.asarray(value, dtype))

    def meaningful(self, value):
        """What the op defines of an output: words of a sample that are no padding."""
        if not self.lengths:
            return value
        along = value.ndim - 2
        return np.concatenate([np.moveaxis(value[i], along - 1, 0)[:length].ravel() for i, length in enumerate(self.lengths)])

    def without_norms(self):
        """The same nodes for ONNX Runtime: heads of inputs are normalized by nodes of their own."""
        names, nodes = self.names[: -len(self.norms)] if self.norms else self.names, []
        attributes = {name: value for name, value in self.attributes.items() if name != "qk_norm_epsilon"}
        for name, weight in self.norms.items():
            heads = list(self.feeds[name].shape[:2]) + [-1, self.weights[weight].size]
            whole = list(self.feeds[name].shape)
            for what, shape in (("heads", heads), ("whole", whole)):
                nodes.append(helper.make_node("Constant", [], [name + what], value_ints=shape))
            nodes.append(helper.make_node("Reshape", [name, name + "heads"], [name + "split"]))
            norm = {"epsilon": self.attributes["qk_norm_epsilon"]}
            nodes.append(helper.make_node("SimplifiedLayerNormalization", [name + "split", weight], [name + "normal"], **norm))
            nodes.append(helper.make_node("Reshape", [name + "normal", name + "whole"], [name + "joined"]))
        names = [name + "joined" if name in self.norms else name for name in names]
        return nodes + [helper.make_node(self.op, names, self.outputs, name="it", domain=self.domain, **attributes)]

    def save(self, path, nodes=()):
        node = helper.make_node(self.op, self.names, self.outputs, name="it", domain=self.domain, **self.attributes)
        typed = helper.np_dtype_to_tensor_dtype
        inputs = [helper.make_tensor_value_info(name, typed(value.dtype), value.shape) for name, value in self.feeds.items()]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs if name]
        weights = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        opsets = [helper.make_opsetid("", self.version), helper.make_opsetid("com.microsoft", 1)]
        graph = helper.make_graph(list(nodes) or [node], "case", inputs, outputs, weights)
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
        return path


def cases():
    yield "gelu", Case("Gelu").x(3, 7)
    yield "bias_gelu", Case("BiasGelu").x(2, 3, 8).w(8)
    yield "fast_gelu", Case("FastGelu").x(2, 3, 8).w(8)
    yield "fast_gelu_plain", Case("FastGelu").x(2, 3, 8)
    yield "quick_gelu", Case("QuickGelu").x(2, 9)
    yield "quick_gelu_alpha", Case("QuickGelu", alpha=0.7).x(2, 9)
    yield "matmul", Case("FusedMatMul", alpha=0.25, transB=1).x(2, 3, 4).x(2, 5, 4)
    yield "matmul_ab", Case("FusedMatMul", transA=1, transB=1).x(4, 3).w(5, 4)
    yield "matmul_batch", Case("FusedMatMul", transBatchA=1, transBatchB=1, transA=1).x(4, 2, 3).x(4, 2, 5)
    yield "matmul_batch4", Case("FusedMatMul", transBatchA=1).x(3, 2, 5, 4).x(2, 5, 4, 6)
    yield "matmul_vector", Case("FusedMatMul", transA=1).x(4).x(4, 5)
    yield "transpose_matmul", Case("TransposeMatMul", transA=1, alpha=2.0).x(4, 3).w(4, 5)
    for activation in ("Relu", "Tanh", "Sigmoid", "LeakyRelu"):
        more = {"activation_alpha": 0.3} if activation == "LeakyRelu" else {}
        yield f"gemm_{activation}", Case("FusedGemm", activation=activation, transB=1, alpha=0.5, beta=2.0, **more).x(3, 4).w(5, 4).w(5)
    yield "gemm_hard", Case("FusedGemm", activation="HardSigmoid", activation_alpha=0.2, activation_beta=0.9).x(3, 4).w(4, 5).w(5)
    yield "conv", Case("FusedConv", activation="Relu", pads=[1, 1, 1, 1], kernel_shape=[3, 3]).x(2, 4, 7, 7).w(6, 4, 3, 3).w(6)
    yield "conv_sum", Case("FusedConv", activation="Relu", strides=[2, 2]).x(1, 4, 7, 7).w(6, 4, 3, 3).w(6).x(1, 6, 3, 3)
    yield "conv_leaky", Case("FusedConv", activation="LeakyRelu", activation_params=[0.2], group=2).x(1, 4, 7, 7).w(6, 2, 3, 3)
    yield "conv_clip", Case("FusedConv", activation="Clip", activation_params=[0.0, 0.5], group=2).x(1, 4, 7, 7).w(6, 2, 3, 3).w(6)
    yield "conv_hard", Case("FusedConv", activation="HardSigmoid", activation_params=[0.25, 0.4]).x(1, 4, 7, 7).w(6, 4, 3, 3).w(6)

    yield "simplified_norm", Case("SimplifiedLayerNormalization", domain="", epsilon=1e-3).x(2, 3, 8).w(8)
    yield "old_layer_norm", Case("LayerNormalization", domain="", version=13, epsilon=1e-3).x(2, 3, 8).w(8).w(8)
    yield "skip_norm", Case("SkipLayerNormalization", outputs=["y", "", "", "sum"], epsilon=1e-3).x(2, 3, 8).x(2, 3, 8).w(8).w(8).w(8)
    yield "skip_norm_plain", Case("SkipLayerNormalization").x(2, 3, 8).x(3, 8).w(8)
    yield "skip_simplified", Case("SkipSimplifiedLayerNormalization", outputs=["y", "", "", "sum"], epsilon=1e-3).x(2, 3, 8).x(2, 3, 8).w(8)
    yield "skip_simplified_bias", Case("SkipSimplifiedLayerNormalization").x(2, 3, 8).x(2, 3, 8).w(8).w(8)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    yield "embed", Case("EmbedLayerNormalization", outputs=3).ids(11, 2, 5).ids(2, 2, 5).w(11, 8).w(9, 8).w(2, 8).w(8).w(8).input(mask)
    yield "embed_positions", Case("EmbedLayerNormalization", outputs=2).ids(11, 2, 5).none().w(11, 8).w(9, 8).none().w(8).w(8).none().ids(9, 2, 5)
    yield from attention_cases()
    yield from packed_cases()
    yield from quantized_cases()


def attention_cases():
    mask2 = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    mask3 = np.random.default_rng(1).integers(0, 2, (2, 5, 5)).astype(np.int32)
    mask3[:, :, 0] = 1

    def attention(**more):
        return Case("Attention", num_heads=2, **more).x(2, 5, 6).w(6, 24).w(24)

    yield "attention", attention()
    yield "attention_causal", attention(unidirectional=1, scale=0.3)
    yield "attention_mask", attention().input(mask2)
    yield "attention_mask3", attention(unidirectional=1).input(mask3)
    yield "attention_ends", attention().input(np.array([3, 5], np.int32))
    yield "attention_ranges", attention().input(np.array([4, 5, 1, 0], np.int32))
    yield "attention_bias", attention().input(mask2).none().x(1, 2, 5, 5)
    yield "attention_sizes", Case("Attention", num_heads=2, qkv_hidden_sizes=[8, 8, 12]).x(2, 5, 6).w(6, 28).w(28)
    past_mask = np.concatenate([np.ones((2, 3), np.int32), mask2], 1)
    yield "attention_past", attention(outputs=2, unidirectional=1).input(past_mask).x(2, 2, 2, 3, 4)
    yield "attention_present", attention(outputs=2, unidirectional=1)

    def multi(**more):
        return Case("MultiHeadAttention", num_heads=2, **more).x(2, 5, 8)

    yield "multi", multi().x(2, 7, 8).x(2, 7, 8)
    yield "multi_value", multi(scale=0.2).x(2, 7, 8).x(2, 7, 12).w(28)
    yield "multi_causal", multi(unidirectional=1).x(2, 5, 8).x(2, 5, 8).w(24)
    yield "multi_mask", multi().x(2, 5, 8).x(2, 5, 8).none().input(mask2)
    yield "multi_lengths", multi().x(2, 5, 8).x(2, 5, 8).w(24).input(np.array([3, 5], np.int32)).x(1, 2, 5, 5)
    yield "multi_past", multi(outputs=3).x(2, 5, 8).x(2, 5, 8).none(2).x(2, 2, 5, 8).x(2, 2, 3, 4).x(2, 2, 3, 4)
    yield "multi_cross", multi().x(2, 2, 7, 4).x(2, 2, 7, 4)
    yield "multi_cross_bias", multi().x(2, 2, 7, 4).x(2, 2, 7, 4).w(24)

    noise = np.random.default_rng(3)
    cos, sin = rotations(16, 4, noise)
    places = np.array([[0, 1, 2], [5, 6, 9]], np.int64)
    yield "rotary", Case("RotaryEmbedding").x(2, 3, 16).input(places).weight(cos).weight(sin)
    yield "rotary_interleaved", Case("RotaryEmbedding", interleaved=1).x(2, 3, 16).input(places).weight(cos).weight(sin)
    yield "rotary_offset", Case("RotaryEmbedding").x(2, 3, 16).input(np.array([4], np.int64)).weight(cos).weight(sin)
    yield "rotary_part", Case("RotaryEmbedding", num_heads=2, rotary_embedding_dim=8).x(2, 3, 24).input(places).weight(cos).weight(sin)
    yield "rotary_4d", Case("RotaryEmbedding").x(2, 2, 3, 8).input(places).weight(cos).weight(sin)

    def group(words, total, lengths, past=None, packed=False, rotary=True, part=8, bias=False, samples=2, head=16, sink=False, **more):
        case = Case("GroupQueryAttention", outputs=3, num_heads=4, kv_num_heads=2, do_rotary=int(rotary), **more)
        if packed:
            case.x(samples, words, 8 * head).none(2)
        else:
            case.x(samples, words, 4 * head).x(samples, words, 2 * head).x(samples, words, 2 * head)
        room = past or 0
        case.x(samples, 2, room, head).x(samples, 2, room, head)
        case.input(np.array(lengths, np.int32)).number(total, np.int32)
        case.lengths = [length + 1 for length in lengths]
        if rotary:
            c, s = rotations(32, part, np.random.default_rng(5))
            case.weight(c).weight(s)
        else:
            case.none(2)
        if bias or sink:
            case.none()
        if bias:
            case.x(1, 4, words, total)
        elif sink:
            case.none()
        return case.w(4) if sink else case

    yield "group_prompt", group(5, 5, [4, 4])
    yield "group_padded", group(5, 5, [2, 4])
    yield "group_packed", group(5, 5, [4, 4], packed=True)
    yield "group_plain", group(5, 5, [4, 4], rotary=False, scale=0.3, softcap=5.0)
    yield "group_window", group(9, 9, [8, 8], local_window_size=3)
    yield "group_interleaved", group(5, 5, [4, 4], rotary_interleaved=1)
    yield "group_step", group(1, 7, [6, 6], past=6)
    yield "group_step_uneven", group(1, 7, [3, 6], past=6)
    yield "group_step_window", group(1, 9, [8, 5], past=8, local_window_size=3)
    yield "group_more", group(3, 9, [8], past=6, samples=1)
    yield "group_bias", group(3, 9, [8], past=6, samples=1, bias=True)
    yield "group_prompt_bias", group(5, 5, [4, 4], bias=True)
    yield "group_sink", group(5, 5, [4, 4], sink=True)
    yield "group_sink_step", group(1, 7, [6, 3], past=6, sink=True)
    yield "group_sink_bias", group(3, 9, [8], past=6, samples=1, sink=True, bias=True, local_window_size=4)
    yield "group_smooth", group(5, 5, [4, 4], smooth_softmax=1)
    yield "group_softcap_step", group(1, 7, [6, 3], past=6, softcap=2.0)
    yield "group_softcap_bias", group(3, 9, [8], past=6, samples=1, bias=True, softcap=2.0)
    yield "group_part", group(5, 5, [4, 4], part=8, head=32)
    # ONNX Runtime normalizes heads on GPUs only: here it does so before the op.
    case = group(5, 5, [4, 4], qk_norm_epsilon=1e-3).none(5).w(16).w(16)
    case.norms = {"in0": "in14", "in1": "in15"}
    yield "group_norm", case


def packed_cases():
    def packed(bits, block, columns, rows, zeros=None, bias=False, accuracy=0, vectors=3):
        blocks = -(-columns // block)
        case = Case("MatMulNBits", K=columns, N=rows, bits=bits, block_size=block, accuracy_level=accuracy)
        case.x(2, vectors, columns).q(rows, blocks, block * bits // 8, weight=True)
        case.weight(case.noise.uniform(0.01, 0.1, (rows, blocks)).astype(np.float32))
        if zeros == "packed":
            case.q(rows, -(-blocks * bits // 8), weight=True)
        elif zeros == "floats":
            case.weight(case.noise.uniform(0, 2**bits, (rows, blocks)).astype(np.float32))
        else:
            case.none()
        return case.none().w(rows) if bias else case

    yield "bits4", packed(4, 16, 48, 5)
    yield "bits4_zeros", packed(4, 16, 48, 5, zeros="packed")
    yield "bits4_floats", packed(4, 32, 40, 5, zeros="floats", bias=True)
    yield "bits8", packed(8, 32, 64, 6, zeros="packed")
    yield "bits2", packed(2, 32, 64, 6)
    # So many rows of x that weights are unpacked in tiles; the last ones are smaller.
    yield "bits4_many", packed(4, 32, 1056, 300, zeros="packed", vectors=150)
    yield "bits8_many", packed(8, 64, 200, 70, vectors=7, bias=True)

    def table(bits, zeros, dtype=np.uint8):
        case = Case("GatherBlockQuantized", bits=bits, block_size=16, gather_axis=0, quantize_axis=1)
        case.q(9, 32 * bits // 8, weight=True).ids(9, 2, 3, dtype=np.int64)
        case.weight(case.noise.uniform(0.01, 0.1, (9, 2)).astype(np.float32))
        return case.q(9, -(-2 * bits // 8), weight=True) if zeros else case

    yield "rows4", table(4, False)
    yield "rows4_zeros", table(4, True)
    yield "rows8", table(8, True)


def quantized_cases():
    noise = np.random.default_rng(4)
    scales = noise.uniform(0.01, 0.03, 5).astype(np.float32)
    dynamic = lambda *shape: Case("DynamicQuantizeMatMul", tolerance=1e-4).x(*shape)
    yield "dynamic_matmul", dynamic(3, 4, 16).q(16, 5, dtype=np.int8, weight=True).number(0.02).number(3, np.int8).w(5)
    yield "dynamic_columns", dynamic(3, 16).q(16, 5, weight=True).weight(scales).weight(noise.integers(0, 255, 5).astype(np.uint8))
    yield "dynamic_plain", dynamic(3, 16).q(16, 5, dtype=np.int8, weight=True).number(0.02)
    case = Case("MatMulIntegerToFloat", tolerance=1e-4).q(3, 16).q(16, 5, dtype=np.int8, weight=True).number(0.1).weight(scales)
    yield "to_float", case.number(100, np.uint8).number(3, np.int8).w(5)
    yield "to_float_plain", Case("MatMulIntegerToFloat", tolerance=1e-4).q(3, 16).q(16, 5, weight=True).number(0.1).number(0.02)
    case = Case("QGemm", transB=1, alpha=1.0).q(3, 16).number(0.1).number(100, np.uint8).q(5, 16, dtype=np.int8, weight=True).number(0.02)
    yield "q_gemm", case.number(0, np.int8).weight(noise.integers(-999, 999, 5).astype(np.int32)).number(0.5).number(120, np.uint8)
    case = Case("QGemm", alpha=1.0, tolerance=1e-4).q(3, 16).number(0.1).number(100, np.uint8)
    yield "q_gemm_floats", case.q(16, 5, dtype=np.int8, weight=True).weight(scales).weight(np.zeros(5, np.int8))
    for op in ("QLinearAdd", "QLinearMul"):
        yield op, Case(op).q(2, 3, 4).number(0.1).number(100, np.uint8).q(4).number(0.05).number(30, np.uint8).number(0.3).number(90, np.uint8)

    def one(op, dtype=np.uint8, shape=(2, 3, 4, 4), out=0.05, **more):
        return Case(op, **more).q(*shape, dtype=dtype).number(0.05).number(20, dtype).number(out).number(10, dtype)

    yield "q_leaky", one("QLinearLeakyRelu", alpha=0.1)
    yield "q_sigmoid", one("QLinearSigmoid", np.int8, out=1 / 256)
    yield "q_softmax", one("QLinearSoftmax", out=1 / 256, axis=-1, opset=13)
    yield "q_softmax_old_last", one("QLinearSoftmax", out=1 / 256, opset=11)
    yield "q_softmax_old", one("QLinearSoftmax", out=1 / 256, axis=1, opset=11)
    yield "q_pool", one("QLinearAveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    yield "q_global", one("QLinearGlobalAveragePool")
    yield "q_global_last", one("QLinearGlobalAveragePool", channels_last=1)
    case = Case("QLinearWhere").input(noise.integers(0, 2, (2, 3)).astype(bool)).q(2, 3).number(0.1).number(100, np.uint8)
    yield "q_where", case.q(3).number(0.05).number(30, np.uint8).number(0.2).number(90, np.uint8)
    case = Case("QLinearConcat", axis=1).number(0.2).number(90, np.uint8).q(2, 3).number(0.1).number(100, np.uint8)
    yield "q_concat", case.q(2, 4).number(0.05).number(30, np.uint8)
    case = Case("QAttention", num_heads=2, tolerance=1e-4).q(2, 5, 6).q(6, 24, dtype=np.int8, weight=True).w(24).number(0.02).number(0.01)
    yield "q_attention", case.input(np.array([3, 5], np.int32)).number(100, np.uint8).number(2, np.int8)
    for name, directions, more in (("lstm", 1, {}), ("lstm_both", 2, {"direction": "bidirectional"})):
        case = Case("DynamicQuantizeLSTM", outputs=3, tolerance=0.05, hidden_size=6, **more).x(5, 2, 8)
        case.q(directions, 8, 24, dtype=np.int8, weight=True).q(directions, 6, 24, dtype=np.int8, weight=True).w(directions, 48).none(4)
        for _ in range(2):
            case.weight(noise.uniform(0.005, 0.01, directions).astype(np.float32)).weight(np.zeros(directions, np.int8))
        yield name, case
    yield "quantize16", Case("QuantizeLinear").x(3, 5).number(0.001).number(9, np.uint16)
    yield "dequantize16", Case("DequantizeLinear", axis=1).q(3, 5, dtype=np.int16).weight(scales).weight(noise.integers(-9, 9, 5).astype(np.int16))


def check_decoder(work):
    """Words of a prompt, then one after another, on several devices: caches of a fixed size give what ONNX Runtime's growing ones give."""
    names, (kv_heads, head) = write_decoder(work / "decoder.onnx")
    session = onnxruntime.InferenceSession(str(work / "decoder.onnx"), providers=["CPUExecutionProvider"])
    samples, prompt, room = 2, 4, 8
    ids = np.random.default_rng(8).integers(0, 50, (samples, prompt + 3))
    dims = {"batch_size": samples, "past_sequence_length": room, "total_sequence_length": room, "sequence_length": f"1,{prompt}"}
    sizes = [flag for name, size in dims.items() for flag in ("--dim", f"{name}={size}")]
    for plan in ([], ["--devices", "2"], ["--tensor-parallel", "2"]):
        compile_model(work / "decoder.onnx", work / "decoder.partita", "--quiet", *sizes, *plan)
        growing = {name: np.zeros((samples, kv_heads, 0, head), np.float32) for caches in names for name in caches[:2]}
        fixed = {name: np.zeros((samples, kv_heads, room, head), np.float32) for caches in names for name in caches[:2]}
        begin = 0
        for end in range(prompt, prompt + 4):
            step = {"input_ids": ids[:, begin:end]}
            results = session.run(None, {**step, **growing, "attention_mask": np.ones((samples, end), np.int64)})
            wanted = dict(zip([output.name for output in session.get_outputs()], results))
            mask = (np.arange(room) < end).astype(np.int64)[None].repeat(samples, 0)
            np.savez(work / "in.npz", attention_mask=mask, **step, **fixed)
            run_artifact(work / "decoder.partita", "--threads", "1", "--no-pin", "--input", work / "in.npz", "--output", work / "out.npz")
            mine = np.load(work / "out.npz")
            difference = np.abs(mine["logits"] - wanted["logits"]).max()
            if not difference <= 1e-4 * np.abs(wanted["logits"]).max():
                raise Failure(f"decoder {plan}: the logits of words {begin} to {end} differ by {difference:.3g}")
            for caches in names:
                for past, present in zip(caches[:2], caches[2:]):
                    growing[past], fixed[past] = wanted[present], mine[present]
            begin = end


def check(name, case, work):
    model = case.save(work / f"{name}.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    reference = case.save(work / f"{name}.reference.onnx", case.without_norms()) if case.norms else model
    session = onnxruntime.InferenceSession(str(reference), options, providers=["CPUExecutionProvider"])
    outputs = [output for output in case.outputs if output]
    expected = session.run(outputs, case.feeds)
    np.savez(work / "in.npz", **case.feeds)
    compile_model(model, work / "it.partita", "--quiet")
    run_artifact(work / "it.partita", "--threads", "1", "--no-pin", "--input", work / "in.npz", "--output", work / "out.npz")
    mine = np.load(work / "out.npz")
    for output, wanted in zip(outputs, expected):
        got = mine[output]
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            raise Failure(f"{name}: {output} is {got.dtype} {got.shape}, and of ONNX Runtime {wanted.dtype} {wanted.shape}")
        got, wanted = case.meaningful(got), case.meaningful(wanted)
        difference = np.abs(got.astype(np.float64) - wanted.astype(np.float64)).max(initial=0)
        # Integers that are half way between two may be rounded otherwise.
        allowed = 1 if np.issubdtype(wanted.dtype, np.integer) else case.tolerance * max(1, np.abs(wanted).max(initial=0))
        if not difference <= allowed:
            raise Failure(f"{name}: {output} differs by {difference:.3g} from ONNX Runtime's\nmine {got.ravel()[:12]}\nORT  {wanted.ravel()[:12]}")


def test():
    chosen = set(sys.argv[1:])
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for name, case in cases():
            if not chosen or name in chosen:
                check(name, case, work)
                count += 1
        if not chosen or "decoder" in chosen:
            check_decoder(work)
            count += 1
    if not count:
        raise Failure(f"there is no case of the names {', '.join(sorted(chosen))}")
    print(f"{count} cases give what ONNX Runtime gives")


if __name__ == "__main__":
    main(test, use_workers=True, optimize=8)
