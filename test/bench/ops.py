#!/usr/bin/env python3
"""Single ops and short chains of them, at sizes that models have, beside ONNX Runtime: shows where code is slow that no model of the benchmark runs.

    ops.py [--threads 2] [--below RATIO] [NAME ...]

Each case is compiled, its outputs are compared, and both runtimes are timed in turns; the ratio is ONNX Runtime's time over Partita's. NAME: only cases
whose names contain one of these. Times below some 50 microseconds are mostly the start of threads. Needs onnx, onnxruntime and numpy.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
SECONDS = 0.3  # a measurement

generator = np.random.default_rng(0)
cases = {}  # name: (nodes, inputs, outputs, constants, opset)
FLOAT, UINT8, INT64 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT64


def weights(*shape):
    return (generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def bytes_of(*shape):
    return generator.integers(-127, 127, shape).astype(np.int8)


def ints(*values):
    return np.array(values, np.int64)


def chain(name, nodes, inputs, constants=None, opset=21):
    """`nodes`: (op, inputs, outputs, attributes); `inputs`: {name: shape or (type, shape, limit)}; the last node's outputs are the model's."""
    cases[name] = (nodes, inputs, nodes[-1][2], constants or {}, opset)


def op(name, kind, shapes, constants=None, outputs=1, opset=21, **attributes):
    """One node: inputs of these shapes, then constants (None: absent)."""
    inputs = {f"x{i}": shape for i, shape in enumerate(shapes)}
    names = [*inputs, *((key if value is not None else "") for key, value in (constants or {}).items())]
    chain(name, [(kind, names, [f"y{i}" for i in range(outputs)], attributes)], inputs, constants, opset)


def add_contractions():
    for name, shape, kernel, attributes in [
            ("3x3 64>64 56", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": [1] * 4}), ("3x3 3>32 416", (1, 3, 416, 416), (32, 3, 3, 3), {"pads": [1] * 4}),
            ("1x1 512>512 28", (1, 512, 28, 28), (512, 512, 1, 1), {}), ("7x7s2 3>64 224", (1, 3, 224, 224), (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
            ("16x16s16 3>768 224", (1, 3, 224, 224), (768, 3, 16, 16), {"strides": [16, 16]}),
            ("dilated 256 32", (1, 256, 32, 32), (256, 256, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
            ("of 32 groups 256 28", (1, 256, 28, 28), (256, 8, 3, 3), {"pads": [1] * 4, "group": 32}),
            ("depthwise 7x7 192 28", (1, 192, 28, 28), (192, 1, 7, 7), {"pads": [3] * 4, "group": 192}),
            ("1d 3 512 1500", (1, 512, 1500), (512, 512, 3), {"pads": [1, 1]}), ("1d depthwise 31 256 400", (1, 256, 400), (256, 1, 31), {"pads": [15, 15], "group": 256}),
            ("3d 32 16x56x56", (1, 32, 16, 56, 56), (32, 32, 3, 3, 3), {"pads": [1] * 6})]:
        op("conv " + name, "Conv", [shape], {"w": weights(*kernel), "b": weights(kernel[0])}, **attributes)
    op("conv of computed weights", "Conv", [(1, 64, 56, 56), (64, 64, 3, 3)], pads=[1] * 4)
    for name, shape, kernel, attributes in [
            ("2x2s2 256>128 64", (1, 256, 64, 64), (256, 128, 2, 2), {"strides": [2, 2]}),
            ("4x4s2 256>128 32", (1, 256, 32, 32), (256, 128, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
            ("9x9s3 56>1 85", (1, 56, 85, 85), (56, 1, 9, 9), {"strides": [3, 3], "pads": [4] * 4}),
            ("1d 16s8 256>128 200", (1, 256, 200), (256, 128, 16), {"strides": [8], "pads": [4, 4]})]:
        op("transposed conv " + name, "ConvTranspose", [shape], {"w": weights(*kernel), "b": weights(kernel[1])}, **attributes)
    for rows, depth, columns in [(512, 768, 768), (197, 768, 3072), (1, 4096, 4096), (8, 768, 3072), (64, 784, 128)]:
        op(f"matmul {rows}x{depth}x{columns}", "MatMul", [(rows, depth)], {"w": weights(depth, columns)})
    op("matmul 12x512x64x512", "MatMul", [(12, 512, 64), (12, 64, 512)])
    op("matmul 4096x16x16x16", "MatMul", [(4096, 16, 16), (4096, 16, 16)])
    op("einsum bhid,bhjd", "Einsum", [(1, 12, 128, 64), (1, 12, 128, 64)], equation="bhid,bhjd->bhij")
    for kind, gates, hidden in [("LSTM", 4, 128), ("GRU", 3, 256)]:
        op(kind, kind, [(100, 1, hidden)], {"w": weights(1, gates * hidden, hidden), "r": weights(1, gates * hidden, hidden)}, hidden_size=hidden)


def add_integers():
    scales = {"s": np.float32(0.02), "z": np.uint8(128), "ws": np.float32(0.01), "wz": np.int8(0), "ys": np.float32(5), "yz": np.uint8(128)}
    chain("integer matmul 256x768x768", [("MatMulInteger", ["x", "w"], ["y"], {})], {"x": (UINT8, (256, 768), 255)}, {"w": bytes_of(768, 768)})
    for name, shape, kernel, attributes in [("3x3 64", (1, 64, 56, 56), (64, 64, 3, 3), {}), ("depthwise 64", (1, 64, 56, 56), (64, 1, 3, 3), {"group": 64})]:
        chain(f"integer conv {name}", [("QLinearConv", ["x", "s", "z", "w", "ws", "wz", "ys", "yz"], ["y"], {"pads": [1] * 4, **attributes})],
              {"x": (UINT8, shape, 255)}, {"w": bytes_of(*kernel), **scales})
    chain("quantised linear 128x768x3072",
          [("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"], {}), ("MatMulInteger", ["q", "w", "qz", "wz"], ["p"], {}), ("Cast", ["p"], ["f"], {"to": 1}),
           ("Mul", ["qs", "ws"], ["t"], {}), ("Mul", ["f", "t"], ["y"], {})], {"x": (128, 768)}, {"w": bytes_of(768, 3072), "ws": np.float32(0.01), "wz": np.int8(0)})


def add_ordered():
    for rows, size, k in [(1, 8400, 300), (1, 100000, 1000), (64, 50257, 50)]:
        op(f"topk {rows}x{size} {k}", "TopK", [(rows, size)], {"k": ints(k)}, outputs=2)
    op("cumsum 64x4096", "CumSum", [(64, 4096)], {"a": ints(1)})
    op("argmax 128x50257", "ArgMax", [(128, 50257)], axis=1)
    chain("scatter rows", [("ScatterND", ["x", "i", "u"], ["y"], {})], {"x": (4096, 256), "i": (INT64, (512, 1), 4096), "u": (512, 256)})
    chain("scatter elements", [("ScatterElements", ["x", "i", "u"], ["y"], {"axis": 1})], {"x": (64, 4096), "i": (INT64, (64, 256), 4096), "u": (64, 256)})
    chain("gather rows", [("Gather", ["e", "i"], ["y"], {})], {"i": (INT64, (1, 512), 30522)}, {"e": weights(30522, 768)})


def add_pools_and_norms():
    for name, kind, shape, attributes in [
            ("max 3x3s2 64 112", "MaxPool", (1, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
            ("max 13x13 256 20", "MaxPool", (1, 256, 20, 20), {"kernel_shape": [13, 13], "pads": [6] * 4}),
            ("max 3x3s2 3 640", "MaxPool", (1, 3, 640, 640), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
            ("average 3x3 256 35", "AveragePool", (1, 256, 35, 35), {"kernel_shape": [3, 3], "pads": [1] * 4}), ("global 2048 7", "GlobalAveragePool", (1, 2048, 7, 7), {})]:
        op("pool " + name, kind, [shape], **attributes)
    op("layernorm 512x1024", "LayerNormalization", [(512, 1024)], {"s": weights(1024), "b": weights(1024)}, axis=-1)
    op("groupnorm 32 of 256 64", "GroupNormalization", [(1, 256, 64, 64)], {"s": weights(256), "b": weights(256)}, num_groups=32)
    op("instancenorm 64 256", "InstanceNormalization", [(1, 64, 256, 256)], {"s": weights(64), "b": weights(64)})
    op("softmax 1536x128", "Softmax", [(12, 128, 128)], axis=-1)
    op("softmax of channels 21 512", "Softmax", [(1, 21, 512, 512)], axis=1)
    op("mean of rows 4096x1024", "ReduceMean", [(4096, 1024)], {"a": ints(1)})
    op("mean of columns 4096x1024", "ReduceMean", [(4096, 1024)], {"a": ints(0)})


def add_elementwise_and_moves():
    for kind in ("Gelu", "Erf", "Exp", "Tanh", "Sigmoid", "Mish", "HardSwish", "Sin"):
        op(kind.lower() + " 512x3072", kind, [(512, 3072)])
    op("add of channels 64 256", "Add", [(1, 64, 256, 256), (1, 64, 1, 1)])
    op("transpose 2048x2048", "Transpose", [(2048, 2048)], perm=[1, 0])
    op("transpose of heads", "Transpose", [(1, 512, 12, 64)], perm=[0, 2, 1, 3])
    op("concat of channels", "Concat", [(1, 64, 128, 128), (1, 64, 128, 128)], axis=1)
    op("pad reflect 32 256", "Pad", [(1, 32, 256, 256)], {"p": ints(0, 0, 4, 4, 0, 0, 4, 4)}, mode="reflect")
    op("depth to space 256 64", "DepthToSpace", [(1, 256, 64, 64)], blocksize=2)
    for mode in ("nearest", "linear", "cubic"):
        op(f"resize {mode} 64 64", "Resize", [(1, 64, 64, 64)], {"roi": None, "s": np.array([1, 1, 2, 2], np.float32)}, mode=mode)


def add_chains():
    chain("mlp 197x768", [("LayerNormalization", ["x", "s", "b"], ["a"], {}), ("MatMul", ["a", "v"], ["m"], {}), ("Gelu", ["m"], ["g"], {}), ("MatMul", ["g", "w"], ["o"], {}),
                          ("Add", ["o", "x"], ["y"], {})], {"x": (1, 197, 768)}, {"s": weights(768), "b": weights(768), "v": weights(768, 3072), "w": weights(3072, 768)})
    chain("squeeze and excite 96 56",
          [("GlobalAveragePool", ["x"], ["a"], {}), ("Conv", ["a", "v"], ["b"], {}), ("Relu", ["b"], ["c"], {}), ("Conv", ["c", "w"], ["d"], {}),
           ("Sigmoid", ["d"], ["e"], {}), ("Mul", ["x", "e"], ["y"], {})], {"x": (1, 96, 56, 56)}, {"v": weights(24, 96, 1, 1), "w": weights(96, 24, 1, 1)})
    chain("u-net step", [("ConvTranspose", ["x", "v", "b"], ["a"], {"strides": [2, 2]}), ("Concat", ["z", "a"], ["c"], {"axis": 1}), ("Conv", ["c", "w"], ["d"], {"pads": [1] * 4}),
                         ("Relu", ["d"], ["y"], {})], {"x": (1, 128, 32, 32), "z": (1, 64, 64, 64)}, {"v": weights(128, 64, 2, 2), "b": weights(64), "w": weights(64, 128, 3, 3)})
    chain("separable 64 80", [("Conv", ["x", "v"], ["a"], {}), ("Relu", ["a"], ["b"], {}), ("Conv", ["b", "w"], ["c"], {"pads": [1] * 4, "group": 64}), ("Relu", ["c"], ["y"], {})],
          {"x": (1, 64, 80, 80)}, {"v": weights(64, 64, 1, 1), "w": weights(64, 1, 3, 3)})
    chain("groupnorm, silu, conv 320 64",
          [("GroupNormalization", ["x", "s", "b"], ["g"], {"num_groups": 32}), ("Sigmoid", ["g"], ["q"], {}), ("Mul", ["g", "q"], ["m"], {}),
           ("Conv", ["m", "w"], ["y"], {"pads": [1] * 4})], {"x": (1, 320, 64, 64)}, {"s": weights(320), "b": weights(320), "w": weights(320, 320, 3, 3)})


def build(name, path):
    nodes, inputs, outputs, constants, opset = cases[name]
    typed = {key: value if isinstance(value[1], tuple) else (FLOAT, value, 0) for key, value in inputs.items()}
    graph = helper.make_graph(
        [helper.make_node(kind, ins, outs, **attributes) for kind, ins, outs, attributes in nodes], "g",
        [helper.make_tensor_value_info(key, kind, shape) for key, (kind, shape, _) in typed.items()], [onnx.ValueInfoProto(name=output) for output in outputs],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items() if value is not None])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.save(onnx.shape_inference.infer_shapes(model, data_prop=True), path)
    feeds = {}
    for key, (kind, shape, limit) in typed.items():
        if kind == FLOAT:
            feeds[key] = generator.standard_normal(shape).astype(np.float32)
        elif key == "i":  # places, none of them twice in a row
            feeds[key] = np.stack([generator.permutation(limit)[:max(shape[-1], shape[0] if shape[-1] == 1 else 1)] for _ in range(1 if shape[-1] == 1 else shape[0])])
            feeds[key] = feeds[key].reshape(shape).astype(np.int64)
        else:
            feeds[key] = generator.integers(0, limit, shape).astype(helper.tensor_dtype_to_np_dtype(kind))
    return feeds


def compare(found, expected):
    """Quantised numbers may round otherwise; others agree to a thousandth."""
    for name, value in expected.items():
        wanted, given = value.astype(np.float64), found[name].astype(np.float64)
        slack = 1 if value.dtype in (np.uint8, np.int8) else 1e-3 * max(1.0, np.abs(wanted).max(initial=0))
        if wanted.shape != given.shape or np.abs(wanted - given).max(initial=0) > slack:
            return False
    return True


def measure(name, work, threads):
    model, artifact = work / "op.onnx", work / "op.partita"
    feeds = build(name, model)
    np.savez(work / "in.npz", **feeds)
    subprocess.run([BIN / "partita-compile", model, "--quiet", "-o", artifact], check=True)
    command = [BIN / "partita-run", artifact, "--threads", str(threads), "--input", work / "in.npz"]
    subprocess.run([*command, "--output", work / "out.npz"], check=True, stdout=subprocess.DEVNULL)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    session = onnxruntime.InferenceSession(str(model), options)
    names = [output.name for output in session.get_outputs()]
    agrees = compare(np.load(work / "out.npz"), dict(zip(names, session.run(None, feeds))))

    def peer():
        times, end = [], time.perf_counter() + SECONDS
        while time.perf_counter() < end or len(times) < 3:
            start = time.perf_counter()
            session.run(None, feeds)
            times.append(time.perf_counter() - start)
        return 1e3 * statistics.median(times)

    def own():
        return json.loads(subprocess.run([*command, "--benchmark", "--json"], check=True, stdout=subprocess.PIPE).stdout)["median_ms"]

    pairs = [(peer(), own()) for _ in range(2)]
    return min(p for p, _ in pairs), min(o for _, o in pairs), agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--below", type=float, help="show only cases with a ratio below this")
    options = parser.parse_args()
    for add in (add_contractions, add_integers, add_ordered, add_pools_and_norms, add_elementwise_and_moves, add_chains):
        add()
    failed = False
    print("| case | ONNX Runtime ms | Partita ms | ratio |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in cases:
            if options.names and not any(part in name for part in options.names):
                continue
            peer, own, agrees = measure(name, pathlib.Path(folder), options.threads)
            failed |= not agrees
            if not agrees or not options.below or peer / own < options.below:
                print(f"| {name} | {peer:.3f} | {own:.3f} | {peer / own:.2f} |{'' if agrees else ' outputs differ'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
