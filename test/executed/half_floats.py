#!/usr/bin/env python3
"""Models of half floats on CPUs: they give what the same numbers give in f32, rounded at the end, bit for bit, on any number of devices; they agree
with ONNX Runtime, op by op with --reference, and with their tensors cut, within the tolerance of the type; what jumps sees halves."""

import pathlib
import sys
import tempfile

from harness import BIN, REPOSITORY, SKIPPED, TARGET, Failure, compile_model, main, run, run_artifact

sys.path.append(str(REPOSITORY / "test" / "bench"))
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    import halves
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(SKIPPED)

MODELS = {"transformer": {"width": 128, "layers": 2, "tokens": 16, "head": 32}, "cnn": {"size": 32}}


def rounded(x, kind):
    """Numbers as bits of the type, to nearest, ties to even."""
    x = np.ascontiguousarray(x, np.float32)
    if kind == "f16":
        return x.astype(np.float16).view(np.uint16)
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widened(bits, kind):
    return bits.view(np.float16).astype(np.float32) if kind == "f16" else (bits.astype(np.uint32) << 16).view(np.float32)


def write_tensor(path, name, bits, kind):
    tensor = TensorProto(name=name, data_type=halves.TYPES[kind], dims=bits.shape, raw_data=bits.tobytes())
    path.write_bytes(tensor.SerializeToString())


def in_f32(model, kind):
    """The same model with the same numbers, in f32."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for tensor in wide.graph.initializer:
        if tensor.data_type == halves.TYPES[kind]:
            numbers = np.asarray(numpy_helper.to_array(tensor)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))
    for port in (*wide.graph.input, *wide.graph.output):
        port.type.tensor_type.elem_type = TensorProto.FLOAT
    return wide


def outputs(artifact, *flags):
    result = artifact.with_suffix(".npz")
    run_artifact(artifact, "--threads", "1", "--output", result, *flags)
    return {name: value.view(np.uint16) if value.dtype.itemsize == 2 else value for name, value in np.load(result).items()}


def check_model(name, kind, folder):
    model, x, result = halves.make(name, kind, **MODELS[name])
    bits = rounded(x, kind)
    half, wide = folder / "half.onnx", folder / "wide.onnx"
    onnx.save(model, half)
    onnx.save(in_f32(model, kind), wide)
    vectors = folder / "vectors"
    vectors.mkdir()
    write_tensor(vectors / "input_0.pb", "x", bits, kind)
    feed = ("--input", vectors / "input_0.pb")

    compile_model(wide, folder / "wide.partita")
    np.save(folder / "x.npy", widened(bits, kind))
    expected = rounded(outputs(folder / "wide.partita", "--input", folder / "x.npy")[result], kind)
    write_tensor(vectors / "output_0.pb", result, expected, kind)
    for devices in (1, 2, 3):
        artifact = folder / f"{devices}.partita"
        compile_model(half, artifact, "--devices", devices)
        found = outputs(artifact, *feed)[result]
        if not np.array_equal(found, expected):
            raise Failure(f"{name} in {kind} on {devices} devices: {np.count_nonzero(found != expected)} of {found.size} are not those of f32, rounded")

    calls = [run([BIN / "partita-compile", model_file, "--emit", "plan", *TARGET]).count("plan.call <") for model_file in (half, wide)]
    if calls[0] != calls[1] or not calls[0]:
        raise Failure(f"{name} in {kind}: {calls[0]} library calls, and {calls[1]} in f32")

    one = folder / "1.partita"
    for flags in (("--reference",), ("--tensor-parallel", "2")):
        other = folder / "other.partita"
        compile_model(half, other, *flags)
        said = run_artifact(other, "--test-data", vectors)
        if "PASS" not in said or "cosine" not in said:
            raise Failure(f"{name} in {kind} with {flags}:\n{said}")
    # Inner tensors in f32 are compared with halves.
    if kind == "f16":
        compile_model(half, folder / "inner.partita", "--expose")
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        exposed = onnx.ModelProto()
        exposed.CopyFrom(model)
        exposed.graph.output.extend(onnx.ValueInfoProto(name=n.output[0]) for n in model.graph.node[:-1])
        session = onnxruntime.InferenceSession(exposed.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [port.name for port in session.get_outputs()]
        peers = dict(zip(names, session.run(names, {"x": bits.view(np.float16)})))
        np.savez(folder / "peer.npz", **peers)
        said = run_artifact(folder / "inner.partita", *feed, "--compare", folder / "peer.npz")
        if "PASS" not in said or int(said.split("PASS: ")[1].split()[0]) < 10:
            raise Failure(f"{name} beside ONNX Runtime:\n{said}")

    # An element that is far off is no rounding.
    wrong = expected.copy()
    place = int(np.argmax(widened(expected, kind)))
    wrong.flat[place] += 40
    write_tensor(vectors / "output_0.pb", result, wrong, kind)
    said = run_artifact(one, "--test-data", vectors, expect=1)
    if "1 of " not in said or f"steps of {'float16' if kind == 'f16' else 'bfloat16'}" not in said:
        raise Failure(f"{name} in {kind} with a wrong element:\n{said}")


def check_numbers(folder):
    """Sums beyond the largest half, conversions that the model asks for, and what jumps."""
    half, single, whole = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.INT64
    nodes = [helper.make_node("Mul", ["x", "x"], ["square"]), helper.make_node("Mul", ["square", "small"], ["scaled"]),
             helper.make_node("Mul", ["x", "tenth"], ["part"]), helper.make_node("Floor", ["part"], ["floor"]), helper.make_node("Cast", ["part"], ["whole"], to=whole),
             helper.make_node("Greater", ["part", "one"], ["greater"]), helper.make_node("Less", ["part", "one"], ["less"]),
             helper.make_node("Mul", ["z", "third"], ["wide"]), helper.make_node("Cast", ["wide"], ["narrow"], to=half), helper.make_node("Cast", ["narrow"], ["again"], to=single)]
    results = {"square": half, "scaled": half, "floor": half, "whole": whole, "greater": TensorProto.BOOL, "less": TensorProto.BOOL, "again": single}
    constants = [helper.make_tensor(name, kind, [], [value])
                 for name, kind, value in (("small", half, 2.0**-10), ("tenth", half, 0.1), ("one", half, 1.0), ("third", single, 1 / 3))]
    graph = helper.make_graph(nodes, "numbers", [helper.make_tensor_value_info("x", half, [4]), helper.make_tensor_value_info("z", single, [4])],
                              [helper.make_tensor_value_info(name, kind, [4]) for name, kind in results.items()], constants)
    model = folder / "numbers.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), model)
    x, z = np.array([300, 10, -10, 3], np.float16), np.array([1, 2, 4, 7], np.float32)
    np.savez(folder / "in.npz", x=x, z=z)
    compile_model(model, folder / "numbers.partita")
    run_artifact(folder / "numbers.partita", "--input", folder / "in.npz", "--output", folder / "out.npz")
    found = np.load(folder / "out.npz")
    with np.errstate(over="ignore"):
        part = x * np.float16(0.1)  # 0.99976 is rounded to 1
        expected = {"square": x * x, "scaled": (x.astype(np.float32) ** 2 * 2.0**-10).astype(np.float16), "floor": np.floor(part), "whole": part.astype(np.int64),
                    "greater": part > 1, "less": part < 1, "again": (z * np.float32(1 / 3)).astype(np.float16).astype(np.float32)}
    if not (np.isinf(expected["square"][0]) and expected["floor"][1] == 1):
        raise Failure("the numbers do not show what they should")
    for name, value in expected.items():
        if not np.array_equal(found[name], value):
            raise Failure(f"{name}: {found[name]} instead of {value}")


def check():
    with tempfile.TemporaryDirectory() as folder:
        check_numbers(pathlib.Path(folder))
    for name in MODELS:
        for kind in ("f16", "bf16"):
            with tempfile.TemporaryDirectory() as folder:
                check_model(name, kind, pathlib.Path(folder))


if __name__ == "__main__":
    main(check, optimize=8)
