#!/usr/bin/env python3
"""Dimensions of 0: what compiles and runs gives what ONNX says.

    empty.py                      a decoder without a past, over devices and processes; then models of the ONNX backend suite, each dimension of each input
                                  set to 0 in turn
    empty.py test_add test_relu   only those of these cases

Of the suite it takes one case for each op; with PARTITA_TEST_ALL=1 all that pass.

A case has as many variants as its inputs have dimensions, and as there are sizes that several dimensions share, which become 0 together. What a
variant should give comes from ONNX Runtime, or where that refuses it from ONNX's reference implementation, which checks less: what only that one accepts
may also be refused, with an error message. A variant that both refuse is left out. Each is compiled for two devices and run. Needs onnx, onnxruntime and
numpy, and the suite."""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import pickle
import re
import sys
import tempfile
import time
import warnings

import backend
from harness import ALL, SKIPPED, Failure, compile_model, main, run_artifact, some

try:
    import numpy as np
    import onnx
    import onnx.parser
    import onnx.reference
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(SKIPPED)

RUNTIME = "ONNX Runtime"
# What ONNX Runtime accepts and we do not, or computes as ONNX does not say: regular expressions over what is printed.
OTHERWISE = [
    # Keys and values of different lengths or batches, which meet in a Concat that leaves one out.
    r"test_attention_\w*_expanded [145]\.\d.*: does not compile: (Add|Concat|Expand):",
    r"test_dynamicquantizelinear\w* 0\.0: runs wrong",  # ONNX's definition makes the scale of nothing 0, and not 1
]


DECODER = """<ir_version: 10, opset_import: ["" : 21]>
g (float[batch, T, 8] x, float[batch, 2, P, 4] past, float[batch, 0] nothing)
  => (float[batch, T, 8] y, float[batch, 2, S, 4] present, float[batch, 2, P, 4] old, float[batch, 6] z, float[batch, 0, 3] none)
<float[8, 8] w = {WEIGHTS}, float[0, 6] wn = {}, float[6] bias = {1, 2, 3, 4, 5, 6}, int64[4] heads = {0, 0, 2, 4}, int64[3] flat = {0, 0, 8},
 int64[1] axis = {1}, float[1, 3] v = {1, 2, 3}>
{
  a = MatMul(x, w)  b = Reshape(a, heads)  k = Transpose<perm = [0, 2, 1, 3]>(b)
  present = Concat<axis = 2>(past, k)  kt = Transpose<perm = [0, 1, 3, 2]>(present)
  s = MatMul(k, kt)  p = Softmax<axis = -1>(s)  o = MatMul(p, present)
  ot = Transpose<perm = [0, 2, 1, 3]>(o)  of = Reshape(ot, flat)  y = MatMul(of, w)
  old = Identity(past)  zn = MatMul(nothing, wn)  z = Add(zn, bias)
  e = Unsqueeze(nothing, axis)  et = Transpose<perm = [0, 2, 1]>(e)  none = MatMul(et, v)
}
"""


def check_decoder(work):
    """A past of length 0, no new tokens, an empty batch: over 1 to 3 devices, by threads and (in turns) processes, in micro-batches of which the last is not
    full, from and to .npy and .npz files; all give the same bytes."""
    model = work / "decoder.onnxtxt"
    model.write_text(DECODER.replace("WEIGHTS", ", ".join(str((i * 7 % 13 - 6) / 10) for i in range(64))))
    proto = onnx.parser.parse_model(model.read_text())
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for turn, (batch, tokens, past, samples) in enumerate([(2, 3, 0, 9), (2, 0, 0, 9), (0, 3, 2, 0), (2, 3, 2, 9)]):
        feeds = {"x": np.linspace(-1, 1, samples * tokens * 8), "past": np.linspace(1, 2, samples * past * 8), "nothing": np.zeros(0)}
        shapes = {"x": (samples, tokens, 8), "past": (samples, 2, past, 4), "nothing": (samples, 0)}
        feeds = {name: array.astype(np.float32).reshape(shapes[name]) for name, array in feeds.items()}
        names = [output.name for output in session.get_outputs()]
        right = dict(zip(names, session.run(None, feeds)))
        np.savez(work / "in.npz", **feeds)
        flags = []
        for name, array in feeds.items():
            np.save(work / f"{name}.npy", array)
            flags += ["--input", f"{name}={work / name}.npy"]
        found = []
        for devices in (1, 2, 3):
            artifact, out = work / "decoder.partita", work / "out"
            sizes = [word for dim, size in (("batch", batch), ("T", tokens), ("P", past)) for word in ("--dim", f"{dim}={size}")]
            compile_model(model, artifact, *sizes, "--devices", devices, "--micro-batches", 3)
            run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz", "--no-pin")
            found.append(dict(np.load(work / "out.npz")))
            run_artifact(artifact, *flags, "--output", f"{out}/", "--no-pin")
            found.append({name: np.load(out / f"{name}.npy") for name in names})
            if devices in some((1, 2, 3), 3, turn):
                run_artifact(artifact, "--input", work / "in.npz", "--output", work / "out.npz", ranks=devices)
                found.append(dict(np.load(work / "out.npz")))
        what = f"batch {batch}, {tokens} tokens, a past of {past}"
        for name in names:
            if any(other[name].shape != found[0][name].shape or other[name].tobytes() != found[0][name].tobytes() for other in found):
                raise Failure(f"{what}: '{name}' is not the same on all devices")
            if found[0][name].shape != right[name].shape or not np.allclose(found[0][name], right[name], 1e-4, 1e-5):
                raise Failure(f"{what}: '{name}' is {found[0][name]}, and {right[name]} in ONNX Runtime")
    print("a decoder without past, tokens or batch runs on 1 to 3 devices")


def read_inputs(case):
    """The arrays of a case's first data set, or None if one is no tensor of numbers."""
    inputs = []
    for i in range(len(list((case / "test_data_set_0").glob("input_*.pb")))):
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString((case / "test_data_set_0" / f"input_{i}.pb").read_bytes())
            inputs.append(onnx.numpy_helper.to_array(tensor))
        except Exception:
            return None
        if inputs[-1].dtype.kind in "OUS":
            return None
    return inputs


def variants(inputs):
    """Sets of (input, dimension) that become 0."""
    dims = [(i, d) for i, array in enumerate(inputs) for d in range(array.ndim) if array.shape[d]]
    sizes = collections.defaultdict(list)
    for i, d in dims:
        sizes[inputs[i].shape[d]].append((i, d))
    chosen = [(dim,) for dim in dims] + [tuple(shared) for size, shared in sorted(sizes.items()) if len(shared) > 1]
    # Of the first two inputs, the same dimension counted from either side.
    for offset in (0, 1):
        for d in range(8):
            pair = tuple((i, d if offset == 0 else array.ndim - 1 - d) for i, array in enumerate(inputs[:2]) if array.ndim > d)
            if len(pair) == 2:
                chosen.append(pair)
    return list(dict.fromkeys(tuple(sorted(zero)) for zero in chosen))


def run_references(model, names, inputs):
    """[(whose, the outputs)] of those that accept the model, ONNX Runtime first."""
    feeds = dict(zip(names, inputs))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    found = []
    for whose, run in (
        (RUNTIME, lambda: onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)),
        ("onnx.reference", lambda: onnx.reference.ReferenceEvaluator(model).run(None, feeds)),
    ):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                outputs = run()
        except BaseException:
            continue
        if all(isinstance(output, (np.ndarray, np.generic)) for output in outputs):
            found.append((whose, [np.asarray(output) for output in outputs]))
    return found


def references(tasks):
    """The same of several, each a (model, names, inputs), in a process of its own: what crashes it has no reference, and the next ones get another."""
    found = []
    while len(found) < len(tasks):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reader)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                with os.fdopen(writer, "wb") as pipe:
                    for task in tasks[len(found):]:
                        pickle.dump(run_references(*task), pipe)
                        pipe.flush()
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            try:
                while len(found) < len(tasks):
                    found.append(pickle.load(pipe))
            except (EOFError, pickle.UnpicklingError):
                found.append([])
        os.waitpid(child, 0)
    return found


def write_tensors(folder, kind, arrays):
    for i, array in enumerate(arrays):
        (folder / "test_data_set_0" / f"{kind}_{i}.pb").write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())


def write_variant(case, inputs, zero, folder):
    """Writes model and inputs like a case of the suite. Returns the model, the inputs' names and the inputs, or None."""
    model = onnx.load(str(case / "model.onnx"))
    names = [value.name for value in model.graph.input]
    if len(names) != len(inputs):
        return None
    changed = list(inputs)
    for i, d in zero:
        changed[i] = np.take(changed[i], [], axis=d)
    for value, array in zip(model.graph.input, changed):
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        for size in array.shape:
            shape.dim.add().dim_value = size
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    (folder / "test_data_set_0").mkdir(parents=True)
    onnx.save(model, str(folder / "model.onnx"))
    write_tensors(folder, "input", changed)
    return model, names, changed


def write_case(case, inputs, zeros, folders):
    """Writes the variants of a case. Returns what each should give, by `references`."""
    tasks = [write_variant(case, inputs, *variant) for variant in zip(zeros, folders)]
    return references(tasks) if None not in tasks else [[] for _ in tasks]


def check_variant(folder, found):
    """'pass', 'refused', or what is wrong; None if nobody says what it should give. `found`: what it should give, and who says so."""
    for whose, outputs in found:
        write_tensors(folder, "output", outputs)
        result = backend.outcome(folder, devices=(2,))
        if result.startswith("does not compile:") and found[0][0] != RUNTIME:
            return "refused"
        # Where the two differ, either may be right.
        if not result.startswith("runs wrong:"):
            return result
    return f"{result} ({' and '.join(whose for whose, _ in found)})" if found else None


def check_case(case, writers):
    """What each variant that somebody can compute gave. `writers`: processes for `write_case`."""
    inputs = read_inputs(case)
    zeros = variants(inputs) if inputs else []
    results = {}
    with tempfile.TemporaryDirectory() as work:
        folders = [pathlib.Path(work) / str(number) / case.name for number in range(len(zeros))]
        expected = writers.submit(write_case, case, inputs, zeros, folders).result()
        for zero, folder, found in zip(zeros, folders, expected):
            result = check_variant(folder, found)
            name = f"{case.name} {' '.join(f'{i}.{d}' for i, d in zero)}"
            if result:
                results[name] = "refused" if any(re.match(pattern, f"{name}: {result}") for pattern in OTHERWISE) else result
    return results


def chosen_cases(cases, names):
    """The first case of each op. Those whose ops are expanded have nothing that others have not."""
    chosen = {}
    for name in names:
        if not name.endswith("_expanded"):
            chosen.setdefault(onnx.load(str(cases[name] / "model.onnx")).graph.node[0].op_type, name)
    return sorted(chosen.values())


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    cases = backend.find_cases()
    names = options.cases or [name for name, result in sorted(backend.read_list().items()) if result == "pass"]
    if not options.cases and not ALL:
        names = chosen_cases(cases, names)
    if not options.cases:
        with tempfile.TemporaryDirectory() as folder:
            check_decoder(pathlib.Path(folder))
    counts = collections.Counter()
    # References are computed by processes, for they fork, which threads must not; they are there before the first thread.
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as writers:
        list(writers.map(time.sleep, [0.1] * os.cpu_count()))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in concurrent.futures.as_completed([pool.submit(check_case, cases[name], writers) for name in names]):
                results = done.result()
                counts.update(result if result in ("pass", "refused") else "wrong" for result in results.values())
                for variant, result in results.items():
                    if result not in ("pass", "refused"):
                        print(f"{variant}: {result}", flush=True)
    print(f"of {counts.total()} variants of {len(names)} cases {counts['pass']} give what they should, {counts['refused']} are refused")
    if counts["wrong"] or not counts["pass"]:
        raise Failure(f"{counts['wrong']} do not")


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
