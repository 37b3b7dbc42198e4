#!/usr/bin/env python3
"""Weights that DequantizeLinear makes of integers of 2, 4 and 8 bits stay packed in products, and tables in Gather: with one scale, with scales for columns and for blocks, with zero
points and without, as MatMul, behind a Transpose, and as Gemm; sizes that do not divide; one row and many. They give what NumPy gives for the floats that they
stand for, on one device, with stages, cut tensors, as --reference and without library calls. What is not such a product is computed as it was."""

import pathlib
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (tools/setup.sh installs it)")
    sys.exit(77)

from harness import BIN, TARGET, Failure, compile_model, main, run, run_artifact

TYPES = {"int4": (TensorProto.INT4, 4, True), "uint4": (TensorProto.UINT4, 4, False), "int8": (TensorProto.INT8, 8, True), "uint8": (TensorProto.UINT8, 8, False),
         "int2": (TensorProto.INT2, 2, True), "uint2": (TensorProto.UINT2, 2, False)}
# type, K, N, scales: "one", "columns" or the size of blocks; zero points; form; whether it stays packed.
CASES = [
    ("int4", 64, 24, 32, False, "matmul", True), ("uint4", 64, 24, 16, True, "matmul", True), ("int4", 50, 7, 16, True, "matmul", True),
    ("uint4", 96, 75, 32, False, "transposed", True), ("int4", 120, 49, "columns", True, "transposed", True), ("int4", 33, 8, "one", False, "gemm", True),
    ("int8", 48, 10, "columns", False, "matmul", True), ("uint8", 48, 10, "columns", True, "gemm", True), ("int8", 300, 6, "one", True, "matmul", True),
    ("uint8", 170, 41, 64, True, "transposed", True), ("int8", 20, 3, 16, False, "gemm", True), ("int2", 64, 6, 32, False, "matmul", True),
    ("uint2", 140, 50, "columns", True, "transposed", True), ("uint4", 5, 4, "one", True, "matmul", True),
    # Rows that Gather chooses; "other blocks" lie along them.
    ("int8", 5000, 6, "rows", False, "gather", True), ("uint8", 2500, 12, "columns", True, "gather", True), ("int4", 4000, 24, "one", True, "gather", True),
    ("uint4", 2000, 32, "other blocks", True, "gather", True), ("int8", 1500, 40, "other blocks", False, "gather", True),
    # Blocks of another size, along the other dimension, and scales along K.
    ("int4", 48, 8, 24, False, "matmul", False), ("int4", 32, 32, "other blocks", False, "matmul", False), ("int8", 12, 12, "rows", False, "matmul", False),
]


def make(case, path, noise):
    """Writes the model; returns the floats [K, N] that the weights stand for."""
    name, depth, columns, scales, has_zeros, form, _ = case
    kind, bits, signed = TYPES[name]
    low = -(1 << bits - 1) if signed else 0
    turned = form in ("transposed", "gemm")  # the weights are [N, K]
    shape = (columns, depth) if turned else (depth, columns)
    along = 1 if turned else 0  # K
    numbers = noise.integers(low, low + (1 << bits), shape)
    attributes = {}
    if scales == "one":
        parameters, spread = (), lambda p: p
    elif scales in ("columns", "rows"):
        axis = 1 - along if scales == "columns" else along
        attributes["axis"] = axis
        parameters, spread = (shape[axis],), lambda p: np.expand_dims(p, 1 - axis)
    else:
        axis, block = (1 - along, 16) if scales == "other blocks" else (along, scales)
        attributes.update(axis=axis, block_size=block)
        parameters = tuple(-(-size // block) if dim == axis else size for dim, size in enumerate(shape))
        spread = lambda p: np.take(np.repeat(p, block, axis), range(shape[axis]), axis)
    scale = noise.uniform(0.05, 0.2, parameters).astype(np.float32)
    zero = noise.integers(low, low + (1 << bits), parameters) if has_zeros else np.zeros(parameters, np.int64)
    weights = (numbers - spread(zero)).astype(np.float32) * spread(scale)
    initializers = [helper.make_tensor("q", kind, shape, numbers.flatten().tolist()), numpy_helper.from_array(scale, "s")]
    if has_zeros:
        initializers.append(helper.make_tensor("z", kind, parameters, zero.flatten().tolist()))
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"] + ["z"] * has_zeros, ["w"], name="w", **attributes)]
    if form == "transposed":
        nodes += [helper.make_node("Transpose", ["w"], ["t"], name="t", perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["p"], name="p")]
    elif form == "gemm":
        nodes.append(helper.make_node("Gemm", ["x", "w"], ["p"], name="p", transB=1, alpha=0.5))
    else:
        nodes.append(helper.make_node("Gather", ["w", "x"], ["p"], name="p") if form == "gather" else helper.make_node("MatMul", ["x", "w"], ["p"], name="p"))
    nodes.append(helper.make_node("Neg", ["p"], ["y"], name="y"))
    float_port = lambda port, shape: helper.make_tensor_value_info(port, TensorProto.FLOAT, shape)
    x = helper.make_tensor_value_info("x", TensorProto.INT64, ["rows"]) if form == "gather" else float_port("x", ["rows", depth])
    graph = helper.make_graph(nodes, "g", [x], [float_port("y", ["rows", columns])], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13), path)
    return (weights.T if turned else weights) * np.float32(0.5 if form == "gemm" else 1)


def check(number, case, work):
    noise = np.random.default_rng(number)
    weights, is_gather = make(case, work / "model.onnx", noise), case[-2] == "gather"
    for rows in (1, 20) if number % 2 else (3, 9):
        if is_gather:
            x = noise.integers(-len(weights), len(weights), rows)
            wanted, terms = -weights[x], np.abs(weights)
        else:
            x = noise.standard_normal((rows, len(weights))).astype(np.float32)
            wanted, terms = -(x.astype(np.float64) @ weights), np.abs(x) @ np.abs(weights)
        np.save(work / "x.npy", x)
        size = ("--dim", f"rows={rows}")
        if not TARGET:
            text = run([BIN / "partita-compile", work / "model.onnx", *size, "--emit", "plan", "--quiet", "--no-optimize"])
            is_packed = f"{weights.shape[0]}x{weights.shape[1]}xf32" not in text if is_gather else "plan.call <packed_dot" in text
            if is_packed != case[-1]:
                raise Failure(f"{case}: the weights {'do not stay' if case[-1] else 'are'} packed")
        for plan in ([], ["--devices", "2"], ["--tensor-parallel", "2"], ["--reference"], ["--no-library-calls"]):
            compile_model(work / "model.onnx", work / "it.partita", "--quiet", *size, *plan)
            run_artifact(work / "it.partita", "--threads", "1", "--no-pin", "--input", f"x={work / 'x.npy'}", "--output", work / "out.npz")
            difference = np.abs(np.load(work / "out.npz")["y"] - wanted).max()
            if not difference <= 1e-6 * terms.max():
                raise Failure(f"{case}, {rows} rows, {plan}: y differs by {difference:.3g}")


def test():
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES):
            check(number, case, pathlib.Path(folder))
    print(f"{len(CASES)} products and tables with dequantised weights give what NumPy gives")


if __name__ == "__main__":
    main(test, use_workers=True, optimize=4)
