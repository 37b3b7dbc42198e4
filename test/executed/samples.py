#!/usr/bin/env python3
"""Which dimension holds samples: what is proved to be independent runs in pieces and gives what ONNX Runtime gives on the whole; everything else runs in the
compiled shape alone, and says why.

    samples.py          small models: means over samples, time-major recurrences, attention over dimension 0, constants, shapes
    samples.py models   the models of the shared test data, in pieces (PARTITA_TEST_ALL=1: the slowest, too)
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (tools/setup.sh installs it)")
    sys.exit(77)

from harness import ALL, BIN, REPOSITORY, Failure, compile_model, data_folder, main, run, run_artifact
from models import ROOM

THREADS = ("--threads", "1", "--no-pin")


class Builder:
    """A model while it is made."""

    def __init__(self, **inputs):
        self.nodes, self.weights, self.noise = [], [], np.random.default_rng(0)
        self.inputs = [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()]

    def weight(self, name, *shape):
        return self.constant(name, (self.noise.standard_normal(shape) / 2).astype(np.float32))

    def constant(self, name, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, *inputs, name, outputs=None, **attributes):
        self.nodes.append(helper.make_node(op, list(inputs), outputs or [name], name=name, **attributes))
        return name

    def save(self, path, *outputs):
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "samples", self.inputs, infos, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
        return path


def expected_of(model, feeds):
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def results_of(work, artifact, feeds, **options):
    np.savez(work / "in.npz", **feeds)
    (work / "out.npz").unlink(missing_ok=True)
    text = run_artifact(artifact, *THREADS, "--input", work / "in.npz", "--output", work / "out.npz", **options)
    return text if options.get("expect") else dict(np.load(work / "out.npz"))


def check_same(what, mine, expected, tolerance=1e-4):
    for name, wanted in expected.items():
        if mine[name].shape != wanted.shape:
            raise Failure(f"{what}: '{name}' has the shape {mine[name].shape}, not {wanted.shape}")
        worst = np.abs(mine[name].astype(np.float64) - wanted).max(initial=0)
        if not worst <= tolerance * max(1.0, np.abs(wanted.astype(np.float64)).max(initial=0)):
            raise Failure(f"{what}: '{name}' is off by {worst}")


def needs(text, *needles):
    for needle in needles:
        if needle not in text:
            raise Failure(f"the text does not say {needle!r}:\n{text}")


def floats(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def axes_of(artifact):
    plan = json.loads(run_artifact(artifact, "--plan", "--json"))
    return {p["name"]: p["batch_axis"] for p in plan["inputs"] + plan["outputs"]}, plan["mixes"]


def check_whole(work, model, flags, fits, others, node):
    """A model that mixes: the compiled shape as ONNX Runtime has it, other shapes refused, and what would split it."""
    artifact = work / "whole.partita"
    needs(compile_model(model, artifact, *flags), "samples cannot be split", f"'{node}'", "samples: whole")
    axes, mixes = axes_of(artifact)
    if any(axis != -1 for axis in axes.values()) or f"'{node}'" not in mixes:
        raise Failure(f"{model.name}: axes {axes}, mixes {mixes!r}")
    needs(run_artifact(artifact, "--plan"), "samples: whole", f"'{node}'")
    for devices in (1, 2):
        compile_model(model, artifact, *flags, "--devices", devices)
        check_same(f"{model.name}, {devices} devices", results_of(work, artifact, fits), expected_of(model, fits))
        for feeds in others:
            needs(results_of(work, artifact, feeds, expect=1), "samples cannot be split", f"'{node}'")
            if (work / "out.npz").exists():
                raise Failure("an output beside an error")
    for flag in (("--micro-batches", 2), ("--data-parallel", 2)):
        needs(compile_model(model, work / "no.partita", *flags, *flag, expect=1), flag[0], f"'{node}'")
        if (work / "no.partita").exists():
            raise Failure("an artifact beside an error")
    compile_model(model, artifact, *flags, "--micro-batches", 1)
    check_library(artifact, fits, others, node, expected_of(model, fits))


def check_library(artifact, fits, others, node, expected):
    """The C interface, by the Python package: the whole shape, no other, and no dynamic batching."""
    sys.path.insert(0, str(REPOSITORY / "runtime" / "python"))
    import partita

    def refused(call):
        try:
            call()
        except partita.Error as error:
            needs(str(error), f"'{node}'")
        else:
            raise Failure("no error")

    with partita.Model(artifact, threads=1, pin=False) as model:
        if f"'{node}'" not in model.inputs[0].whole:
            raise Failure(f"inputs {model.inputs}")
        check_same("by the library", model.run(fits), expected)
        for feeds in others:
            refused(lambda: model.run(feeds))
    refused(lambda: partita.Model(artifact, threads=1, pin=False, batch_delay=0.01))


def check_pieces(work, model, flags, feeds, axes, tolerance=1e-4):
    """A model whose samples are independent: any number of them, as ONNX Runtime has them on the whole."""
    artifact = work / "pieces.partita"
    for extra in ((), ("--devices", 2, "--micro-batches", 3), ("--data-parallel", 2)):
        compile_model(model, artifact, *flags, *extra)
        found, mixes = axes_of(artifact)
        if found != axes or mixes:
            raise Failure(f"{model.name}: axes {found}, not {axes}; {mixes}")
        for each in feeds:
            check_same(f"{model.name} {extra}", results_of(work, artifact, each), expected_of(model, each), tolerance)


def check_mean(work):
    """x - ReduceMean(x, axis 0)."""
    b = Builder(x=(TensorProto.FLOAT, ["N", 8]))
    b.add("ReduceMean", "x", b.constant("axes", np.array([0], np.int64)), name="mean", keepdims=1)
    b.add("Sub", "x", "mean", name="y")
    model = b.save(work / "mean.onnx", "y")
    for n in (1, 4):
        check_whole(work, model, ("--dim", f"N={n}"), {"x": floats(n, 8)}, [{"x": floats(k, 8)} for k in (2, 3, 8)], "mean")
    # A plan for each size, exactly; samples are not padded.
    artifact = work / "sizes.partita"
    compile_model(model, artifact, "--dim", "N=2,5")
    for n in (2, 5):
        check_same(f"{n} of several sizes", results_of(work, artifact, {"x": floats(n, 8)}), expected_of(model, {"x": floats(n, 8)}))
    results_of(work, artifact, {"x": floats(4, 8)}, expect=1)
    results_of(work, artifact, {"x": floats(10, 8)}, expect=1)
    needs(compile_model(model, work / "no.partita", "--dim", "N=2,5", "--mask", "x", expect=1), "--mask", "'mean'")


def write_lstm(work, direction, reshaped=False):
    """A time-major LSTM, as PyTorch exports it: x [T, B, F]."""
    b = Builder(x=(TensorProto.FLOAT, ["T", "B", 6]))
    d = 2 if direction == "bidirectional" else 1
    b.add("LSTM", "x", b.weight("w", d, 16, 6), b.weight("r", d, 16, 4), b.weight("b", d, 32), name="lstm", outputs=["h", "last", ""],
          hidden_size=4, direction=direction)
    b.add("Transpose", "h", name="turned", perm=[0, 2, 1, 3])
    b.add("Reshape", "turned", b.constant("shape", np.array([0, 0, -1], np.int64)), name="y")
    return b.save(work / f"{direction}.onnx", "y", "last")


def check_time_major(work):
    for direction in ("forward", "reverse", "bidirectional"):
        model = write_lstm(work, direction)
        check_whole(work, model, ("--dim", "T=10", "--dim", "B=2"), {"x": floats(10, 2, 6)}, [{"x": floats(t, 2, 6)} for t in (7, 20)], "lstm")
        # Batches along dimension 1.
        for batch in (1, 2):
            flags = ("--dim", "T=10", "--dim", f"B={batch}", "--samples", "x=1")
            check_pieces(work, model, flags, [{"x": floats(10, n, 6)} for n in (1, 2, 3, 7)], {"x": 1, "y": 1, "last": 1})
        # Nothing else of it can be fed.
        artifact = work / "steps.partita"
        compile_model(model, artifact, *flags)
        results_of(work, artifact, {"x": floats(20, 2, 6)}, expect=1)
        # No samples at all.
        compile_model(model, artifact, "--dim", "T=10", "--dim", "B=2", "--samples", "x=none")
        axes, _ = axes_of(artifact)
        if set(axes.values()) != {-1}:
            raise Failure(f"--samples x=none: {axes}")
        results_of(work, artifact, {"x": floats(20, 2, 6)}, expect=1)


def check_attention(work):
    """Attention over dimension 0: tokens that attend to each other."""
    b = Builder(x=(TensorProto.FLOAT, ["N", 8]))
    b.add("MatMul", "x", b.weight("wq", 8, 8), name="q")
    b.add("MatMul", "x", b.weight("wk", 8, 8), name="k")
    b.add("Transpose", "k", name="kt", perm=[1, 0])
    b.add("MatMul", "q", "kt", name="scores")
    b.add("Softmax", "scores", name="p", axis=-1)
    b.add("MatMul", "p", "x", name="y")
    model = b.save(work / "attention.onnx", "y")
    for n in (1, 3):
        check_whole(work, model, ("--dim", f"N={n}"), {"x": floats(n, 8)}, [{"x": floats(k, 8)} for k in (2, 6)], "scores")


def check_numbers(work):
    """What depends on the position of a sample, or on how many there are, and what does not."""
    def base():
        return Builder(x=(TensorProto.FLOAT, ["N", 3]))

    def size(b):
        b.add("Shape", "x", name="shape", start=0, end=1)
        return b.add("Cast", "shape", name="size", to=TensorProto.FLOAT)

    b = base()
    b.add("Div", "x", size(b), name="y")
    check_whole(work, b.save(work / "size.onnx", "y"), ("--dim", "N=2"), {"x": floats(2, 3)}, [{"x": floats(4, 3)}], "y")
    b = base()
    b.add("Squeeze", b.add("Shape", "x", name="shape", start=0, end=1), name="n")
    b.add("Range", b.constant("zero", np.int64(0)), "n", b.constant("one", np.int64(1)), name="range")
    b.add("Unsqueeze", b.add("Cast", "range", name="numbers", to=TensorProto.FLOAT), b.constant("last", np.array([1], np.int64)), name="column")
    b.add("Add", "x", "column", name="y")
    for n in (1, 2):
        check_whole(work, b.save(work / "range.onnx", "y"), ("--dim", f"N={n}"), {"x": floats(n, 3)}, [{"x": floats(4, 3)}], "y")
    b = base()
    b.add("Add", "x", b.weight("rows", 2, 3), name="y")
    check_whole(work, b.save(work / "rows.onnx", "y"), ("--dim", "N=2"), {"x": floats(2, 3)}, [{"x": floats(4, 3)}], "y")
    # The same row for each.
    b = base()
    b.add("Expand", b.weight("row", 1, 3), b.add("Shape", "x", name="shape"), name="all")
    b.add("Add", "x", "all", name="y")
    check_pieces(work, b.save(work / "expand.onnx", "y"), ("--dim", "N=2"), [{"x": floats(n, 3)} for n in (1, 2, 5)], {"x": 0, "y": 0})
    # Several entries of an output to a sample.
    b = Builder(x=(TensorProto.FLOAT, ["N", 4, 3]))
    b.add("Reshape", "x", b.constant("flat", np.array([-1, 3], np.int64)), name="flat_x")
    b.add("MatMul", "flat_x", b.weight("w", 3, 5), name="y")
    check_pieces(work, b.save(work / "merged.onnx", "y"), ("--dim", "N=2"), [{"x": floats(n, 4, 3)} for n in (1, 2, 5)], {"x": 0, "y": 0})
    # Samples that end along another dimension than they begin.
    b = Builder(x=(TensorProto.FLOAT, ["N", 4, 3]))
    b.add("Transpose", "x", name="y", perm=[1, 2, 0])
    check_pieces(work, b.save(work / "turned.onnx", "y"), ("--dim", "N=2"), [{"x": floats(n, 4, 3)} for n in (1, 2, 5)], {"x": 0, "y": 2})
    # A table beside samples.
    b = Builder(x=(TensorProto.INT64, ["N", 2]), table=(TensorProto.FLOAT, [9, 4]))
    b.add("Gather", "table", "x", name="y")
    model, artifact = b.save(work / "table.onnx", "y"), work / "table.partita"
    compile_model(model, artifact, "--dim", "N=2", "--samples", "table=none")
    if axes_of(artifact)[0] != {"x": 0, "table": -1, "y": 0}:
        raise Failure(f"a table beside samples: {axes_of(artifact)}")


def check_fixed(work):
    """A model that says itself how many samples there are is proved as it is."""
    b = Builder(x=(TensorProto.FLOAT, [1, 4, 3]))
    b.add("Reshape", "x", b.constant("flat", np.array([1, 12], np.int64)), name="flat_x")
    b.add("MatMul", "flat_x", b.weight("w", 12, 5), name="y")
    model, artifact = b.save(work / "fixed.onnx", "y"), work / "fixed.partita"
    compile_model(model, artifact)
    each = [expected_of(model, {"x": floats(1, 4, 3, seed=s)})["y"] for s in range(3)]
    check_same("three of one", results_of(work, artifact, {"x": np.concatenate([floats(1, 4, 3, seed=s) for s in range(3)])}), {"y": np.concatenate(each)})
    b = Builder(x=(TensorProto.FLOAT, [1, 8]))
    b.add("ReduceMean", "x", b.constant("axes", np.array([0], np.int64)), name="mean", keepdims=1)
    b.add("Sub", "x", "mean", name="y")
    check_whole(work, b.save(work / "fixed-mean.onnx", "y"), (), {"x": floats(1, 8)}, [{"x": floats(2, 8)}], "mean")


def check_wrong_flags(work):
    model = write_lstm(work, "forward")
    for flag, needle in (("x=3", "3 dimensions"), ("z=1", "no input 'z'"), ("x=last", "write it as input=1"), ("x", "write it as input=1")):
        needs(compile_model(model, work / "no.partita", "--dim", "T=10", "--dim", "B=2", "--samples", flag, expect=1), "--samples", needle)


def check_exposed(work):
    """Inner values have the axis that they have, not one of the same size."""
    model, artifact = write_lstm(work, "forward"), work / "inner.partita"
    compile_model(model, artifact, "--dim", "T=2", "--dim", "B=2", "--samples", "x=1", "--expose-unfused")
    axes, _ = axes_of(artifact)
    if axes["y"] != 1 or axes.get("turned", 1) != 1:
        raise Failure(f"inner values: {axes}")


def check_small():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for check in (check_mean, check_time_major, check_attention, check_numbers, check_fixed, check_wrong_flags, check_exposed):
            check(work)
            print(f"{check.__name__[6:].replace('_', ' ')}: as ONNX Runtime has it, or refused")


# -- The shared models ------------------------------------------------------------------------------------------------------------------------------

LOOSE = {"cnn/mobilenetv2-qdq-int8/model.onnx": 0.1}  # rounding moves values by steps of a quantisation
COUNTS = (1, 3)  # samples a micro-batch
SLOW = {"cnn/fns-candy/model.onnx"}  # half of the time of all; sharded_models.py has it in pieces, too
SAMPLES = 4


def feed_of(port, shape, noise):
    """Numbers that a model takes for anything: token numbers, masks, images."""
    if port["type"].startswith("float") or port["type"] in ("double", "bfloat16"):
        dtype = {"float": np.float32, "float32": np.float32, "float64": np.float64, "double": np.float64, "float16": np.float16}[port["type"]]
        return noise.random(shape).astype(dtype)
    dtype = {"bool": np.bool_}.get(port["type"]) or np.dtype(port["type"])
    return noise.integers(0, 2, shape).astype(dtype)


def bind(shape, n):
    """A shape with `n` for its first dimension, if that is symbolic, and a moderate size for others."""
    return [int(s) if is_size(s) else n if d == 0 else 8 if len(shape) < 4 else 64 for d, s in enumerate(shape)]


def is_size(dimension):
    return str(dimension).isdigit()


def check_model(name, path, work):
    """What came of it: how it was compared, or why not."""
    ports = json.loads(run([BIN / "partita-compile", path, "--describe", "--json"]))["inputs"]
    if not ports or any(p["shape"] is None or p.get("sequence") or p.get("optional") for p in ports):
        return "its inputs have no shapes of their own"
    how = []
    for count in COUNTS:
        flags = [w for p in ports for w in ("--shape", f"{p['name']}={'x'.join(map(str, bind(p['shape'], count))) or 'scalar'}")]
        status, text = compile_model(path, work / "m.partita", *flags, "--no-optimize", *ROOM.get(f"{path.parent.parent.name}/{path.parent.name}", ()), expect=None, timeout=900)
        if status:
            how.append(f"{count} a micro-batch: not compiled ({text.strip().splitlines()[-1][:100]})")
            continue
        axes, mixes = axes_of(work / "m.partita")
        sampled = [p["name"] for p in ports if axes[p["name"]] >= 0]
        fixed = [p["name"] for p in ports if axes[p["name"]] >= 0 and is_size(p["shape"][axes[p["name"]]])]
        noise = np.random.default_rng(count)
        if not sampled:
            how.append(f"whole ({mixes or 'no common dimension 0'})")
            feeds = {p["name"]: feed_of(p, [2 * s if d == 0 else s for d, s in enumerate(bind(p["shape"], count))], noise) for p in ports}
            if any(p["shape"] for p in ports):
                np.savez(work / "in.npz", **feeds)
                run_artifact(work / "m.partita", *THREADS, "--input", work / "in.npz", "--output", work / "no.npz", expect=1)
            continue
        shapes = {p["name"]: bind(p["shape"], count) for p in ports}
        total = {n: [max(SAMPLES, 2 * s[axes[n]]) if d == axes[n] else e for d, e in enumerate(s)] for n, s in shapes.items() for s in (s,)}
        feeds = {p["name"]: feed_of(p, total[p["name"]], noise) for p in ports}
        mine = results_of(work, work / "m.partita", feeds, timeout=900)
        expected, what = whole_or_pieces(path, feeds, shapes, axes, fixed)
        check_same(f"{name}, {count} a micro-batch", mine, expected, LOOSE.get(name, 2e-3))
        how.append(f"{count} a micro-batch: {what}")
    return "; ".join(how)


def whole_or_pieces(path, feeds, shapes, axes, fixed):
    """ONNX Runtime on the whole; where the model has a fixed number of samples, on each micro-batch, joined along the proved axes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    if not fixed:
        return dict(zip(names, session.run(None, feeds))), "as ONNX Runtime on the whole"
    first = next(n for n in shapes if axes[n] >= 0)
    each, all = shapes[first][axes[first]], feeds[first].shape[axes[first]]
    parts = []
    for begin in range(0, all, each):
        places = np.minimum(np.arange(begin, begin + each), all - 1)
        parts.append(session.run(None, {n: f.take(places, axes[n]) if axes[n] >= 0 else f for n, f in feeds.items()}))
    joined = {}
    for k, name in enumerate(names):
        whole = np.concatenate([p[k] for p in parts], axes[name])
        joined[name] = whole.take(range(whole.shape[axes[name]] // (len(parts) * each) * all), axes[name])
    return joined, "as ONNX Runtime, piece by piece (its samples are fixed)"


def check_models():
    root = data_folder() / "models"
    rows, counts = [], {"compared": 0, "whole": 0, "neither": 0}
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(root.rglob("*.onnx")):
            name = str(path.relative_to(root))
            if name in SLOW and not ALL:
                continue
            try:
                how = check_model(name, path, pathlib.Path(folder))
            except onnxruntime.capi.onnxruntime_pybind11_state.Fail as error:
                how = f"ONNX Runtime refuses it: {str(error)[:80]}"
            except (Failure, Exception) as error:
                rows.append(f"{name}: FAILS: {type(error).__name__}: {error}")
                print(rows[-1], flush=True)
                continue
            kind = "compared" if "as ONNX Runtime" in how else "whole" if "whole" in how else "neither"
            counts[kind] += 1
            print(f"{name}: {how}", flush=True)
    print(", ".join(f"{n} {k}" for k, n in counts.items()))
    if failures := [r for r in rows if "FAILS" in r]:
        raise Failure("\n".join(failures))


if __name__ == "__main__":
    os.environ.setdefault("PARTITA_LIBRARY", str(BIN.parent / "lib" / "libpartita.so"))
    main(check_models if "models" in sys.argv[1:] else check_small, use_workers=True, optimize=8)
