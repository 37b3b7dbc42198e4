#!/usr/bin/env python3
"""Plans for several sizes in one artifact (--dim tokens=4,8,16): samples are computed by the smallest plan that fits, padded where a mask is named, and give
what a plan of exactly their size gives; the plans share weights, in the file and in memory."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    print("skipped: NumPy and onnx are not installed")
    sys.exit(77)

from harness import BIN, REPOSITORY, Failure, compile_model, main, run_artifact

SIZES = (4, 8, 16)
TOLERANCE = 1e-5  # of the largest value: sums over another number of zeros


def write_model(path, width, layers, seed=0):
    """Self-attention over tokens that a mask leaves out, and what follows it: x [batch, tokens, width], mask [batch, tokens]."""
    random = np.random.default_rng(seed)
    nodes, weights = [], []

    def weight(name, *shape):
        weights.append(numpy_helper.from_array((random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32), name))
        return name

    def add(op, *inputs, name, **attributes):
        nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op.lower()}_{name}", **attributes))
        return name

    weights += [numpy_helper.from_array(np.array(v, t), n) for n, v, t in
                (("one", 1, np.float32), ("far", -1e4, np.float32), ("scale", width ** -0.5, np.float32), ("axis1", [1], np.int64), ("axis2", [2], np.int64))]
    real = add("Cast", "mask", name="real", to=TensorProto.FLOAT)
    bias = add("Unsqueeze", add("Mul", add("Sub", "one", real, name="gone"), "far", name="low"), "axis1", name="bias")
    last = "x"
    for i in range(layers):
        q, k, v = (add("MatMul", last, weight(f"w{part}{i}", width, width), name=f"{part}{i}") for part in "qkv")
        scores = add("MatMul", add("Mul", q, "scale", name=f"scaled{i}"), add("Transpose", k, name=f"kt{i}", perm=[0, 2, 1]), name=f"scores{i}")
        mixed = add("MatMul", add("Softmax", add("Add", scores, bias, name=f"masked{i}"), name=f"p{i}", axis=-1), v, name=f"mixed{i}")
        last = add("Add", last, add("Relu", add("MatMul", mixed, weight(f"wo{i}", width, width), name=f"o{i}"), name=f"r{i}"), name=f"x{i + 1}")
    add("Identity", last, name="y")
    kept = add("Mul", last, add("Unsqueeze", real, "axis2", name="real2"), name="kept")
    nodes.append(helper.make_node("ReduceSum", [kept, "axis1"], ["total"], keepdims=0))
    graph = helper.make_graph(
        nodes, "sizes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "tokens", width]),
         helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "tokens", width]),
         helper.make_tensor_value_info("total", TensorProto.FLOAT, ["batch", width])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def samples(tokens, width, count=1, seed=0):
    random = np.random.default_rng(1000 * tokens + seed)
    mask = np.ones((count, tokens), np.int64)
    mask[:, tokens // 2 + 1:] = random.integers(0, 2)
    return {"x": random.standard_normal((count, tokens, width)).astype(np.float32), "mask": mask}


def run(work, artifact, feed, *flags):
    np.savez(work / "in.npz", **feed)
    run_artifact(artifact, "--threads", 1, "--no-pin", "--input", work / "in.npz", "--output", work / "out.npz", *flags)
    return dict(np.load(work / "out.npz"))


def check_same(what, mine, expected):
    for name, wanted in expected.items():
        if mine[name].shape != wanted.shape:
            raise Failure(f"{what}: '{name}' has the shape {mine[name].shape}, not {wanted.shape}")
        worst = np.abs(mine[name] - wanted).max(initial=0)
        if not worst <= TOLERANCE * max(1.0, np.abs(wanted).max(initial=0)):
            raise Failure(f"{what}: '{name}' is off by {worst}")


def refused(work, artifact, feed, *needles):
    np.savez(work / "in.npz", **feed)
    text = run_artifact(artifact, "--threads", 1, "--input", work / "in.npz", "--output", work / "no.npz", expect=1)
    for needle in needles:
        if needle not in text:
            raise Failure(f"the error does not say {needle!r}:\n{text}")
    if (work / "no.npz").exists():
        raise Failure("an output was written beside an error")


def check_runs(work, model, width, exact):
    """partita-run: sizes of a plan and between them; what is too large, or cannot be padded."""
    flags = ("--dim", "batch=1", "--dim", "tokens=" + ",".join(map(str, SIZES)))
    for devices in (1, 2):
        artifact = work / f"sizes{devices}.partita"
        compile_model(model, artifact, *flags, "--mask", "mask", "--devices", devices)
        for tokens, (feed, expected) in exact.items():
            check_same(f"{devices} devices, {tokens} tokens", run(work, artifact, feed), expected)
    refused(work, artifact, samples(17, width), "too large", "17 tokens", "4, 8 and 16")
    wrong = samples(8, width)
    wrong["mask"] = wrong["mask"][:, :5]
    refused(work, artifact, wrong, "'x' and 'mask' do not fit", "8 and 5 tokens")
    plan = json.loads(run_artifact(artifact, "--plan", "--json", "--dim", "tokens=8"))
    if plan["dimensions"] != {"tokens": 8}:
        raise Failure(f"--plan --dim tokens=8 shows {plan['dimensions']}")
    if "tokens = 4, 8 and 16" not in (text := run_artifact(artifact, "--dim", "tokens=9", "--plan", expect=1)):
        raise Failure(f"an unknown size: {text}")
    plain = work / "plain.partita"
    compile_model(model, plain, *flags)
    check_same("8 tokens without a mask", run(work, plain, exact[8][0]), exact[8][1])
    refused(work, plain, exact[5][0], "5 tokens", "--mask")
    compile_model(model, work / "none.partita", *flags, "--mask", "masks", expect=1)
    # Batches of two sizes: any number of samples, by whichever fits.
    batches = work / "batches.partita"
    compile_model(model, batches, "--dim", "batch=1,4", "--dim", "tokens=4,8", "--mask", "mask")
    for count in (1, 3, 4, 9):
        feed = samples(6, width, count)
        each = [run(work, batches, {k: v[i:i + 1] for k, v in feed.items()}) for i in range(count)]
        check_same(f"{count} samples", run(work, batches, feed), {k: np.concatenate([e[k] for e in each]) for k in each[0]})
    return work / "sizes2.partita"


def check_library(artifact, exact):
    """The Python package, from several threads: each takes its plan, and they take turns."""
    sys.path.insert(0, str(REPOSITORY / "runtime" / "python"))
    import partita

    with partita.Model(artifact, threads=1, pin=False) as model:
        if model.dimensions != {"tokens": SIZES} or model.inputs[0].shape[1] != "tokens":
            raise Failure(f"dimensions {model.dimensions}, {model.inputs[0]}")

        def work(number):
            tokens = list(exact)[number % len(exact)]
            feed, expected = exact[tokens]
            check_same(f"by the library, {tokens} tokens", model.run(feed), expected)

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(120)))
        try:
            model.run(samples(17, exact[4][0]["x"].shape[2]))
        except partita.Error as error:
            if "17 tokens" not in str(error):
                raise Failure(f"17 tokens: {error}") from None
        else:
            raise Failure("17 tokens: no error")


RESIDENT = """
import sys, numpy as np, partita
model = partita.Model(sys.argv[1], threads=1, pin=False)
for tokens in map(int, sys.argv[3:]):
    model.run(x=np.ones((1, tokens, int(sys.argv[2])), np.float32), mask=np.ones((1, tokens), np.int64))
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS:")))
"""


def check_shared(work):
    """The file and the resident memory of four plans beside those of the largest one alone."""
    width, sizes = 768, (16, 32, 64, 128)
    model = work / "wide.onnx"
    write_model(model, width, 4)
    artifacts = {}
    for name, which in (("one", sizes[-1:]), ("all", sizes)):
        artifacts[name] = work / f"{name}.partita"
        compile_model(model, artifacts[name], "--dim", "batch=1", "--dim", "tokens=" + ",".join(map(str, which)))
    bytes_ = {name: path.stat().st_size for name, path in artifacts.items()}
    if bytes_["all"] > 1.05 * bytes_["one"]:
        raise Failure(f"the artifact of four plans has {bytes_['all']} bytes, that of one {bytes_['one']}")
    environment = dict(os.environ, PYTHONPATH=str(REPOSITORY / "runtime" / "python"))
    resident = {}
    for name, which in (("one", sizes[-1:]), ("all", sizes)):
        done = subprocess.run([sys.executable, "-c", RESIDENT, artifacts[name], str(width), *map(str, which)], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise Failure(done.stderr)
        resident[name] = int(done.stdout)
    if resident["all"] > 1.1 * resident["one"]:
        raise Failure(f"four plans have {resident['all']} KiB resident, one {resident['one']}")
    print(f"artifact {bytes_['all'] / bytes_['one']:.3f} times, resident {resident['all'] / resident['one']:.3f} times one plan's")


def check(work):
    width = 16
    model = work / "model.onnx"
    write_model(model, width, 2)
    exact = {}
    for tokens in (1, 3, 4, 5, 8, 13, 16):
        artifact = work / f"exact{tokens}.partita"
        compile_model(model, artifact, "--dim", "batch=1", "--dim", f"tokens={tokens}")
        feed = samples(tokens, width)
        exact[tokens] = (feed, run(work, artifact, feed))
    artifact = check_runs(work, model, width, exact)
    os.environ.setdefault("PARTITA_LIBRARY", str(BIN.parent / "lib" / "libpartita.so"))
    check_library(artifact, exact)
    check_shared(work)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)))
    print("plans of several sizes give what a plan of each size gives")
