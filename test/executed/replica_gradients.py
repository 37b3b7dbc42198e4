#!/usr/bin/env python3
"""Gradients of models whose replicas share a batch. Each op of the domain ai.partita by itself, on 2 and 4 replicas: the loss, and the gradients of a weight, of an
input that is dealt out and of one that all replicas have, against the loss by NumPy and its central differences in f64. Every loss, batch statistics over
replicas and a mixture of experts: the gradients of one device with the whole batch. Threads and processes have the same bits.

    replica_gradients.py            all
    replica_gradients.py gather     the ops whose names hold one of these words
"""

import pathlib
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

from harness import BIN, Failure, compile_model, main, run, run_artifact, some
from replicas import EXPERTS, MIXTURE, MIXTURE_NODES, NORM, WIDTH, exchange, graph, norm_nodes

BATCH, COLUMNS = 3, 8  # of one replica
NEAR_DIFFERENCE, NEAR_ONE_DEVICE = 1e-6, 1e-12
noise = np.random.default_rng(11)


def compute(work, inputs, ranks=0):
    np.savez(work / "in.npz", **inputs)
    run_artifact(work / "m.partita", "--input", work / "in.npz", "--threads", 1, "--output", work / "out.npz", ranks=ranks)
    with np.load(work / "out.npz") as archive:
        return {name: archive[name] for name in archive.files}


def compile_text(work, text, *flags, **options):
    (work / "m.onnxtxt").write_text(text)
    return compile_model(work / "m.onnxtxt", work / "m.partita", *flags, **options)


def same(got, wanted, what, tolerance):
    if set(got) != set(wanted):
        raise Failure(f"{what}: the outputs are {sorted(got)}, expected {sorted(wanted)}")
    for name, value in wanted.items():
        value = np.asarray(value)
        if got[name].shape != value.shape:
            raise Failure(f"{what}: {name} has the shape {got[name].shape}, expected {value.shape}")
        apart = np.linalg.norm(got[name] - value)
        if not apart <= tolerance * max(np.linalg.norm(value), 1e-3):
            raise Failure(f"{what}: {name} differs by {apart}\n{got[name]}\nexpected\n{value}")


# --- Each op ----------------------------------------------------------------------------------------------------------------------------------------

# Each replica has h = x * s [b,8], where all have s and each its own x; all have a weight w [8,8], and its rows r. An op's result, or what is made of it, is y.
# Name: (nodes, the shape of y, what y is of each replica, or of all if it has no batch dimension, from hs, s and w).
own, whole = "double[b,8]", "double[8]"
AXES = ["zero = Constant<value_ints = [0]>()"]


def each(f):
    """An op on h, whose result meets what is each replica's own, so that replicas have shares of its cotangent."""
    return lambda hs, s, w: [h * f(hs) for h in hs]


def columns(f):
    """An op on the sums of columns, which are the same on all replicas: so is the cotangent."""
    return lambda hs, s, w: f([h.sum(0) for h in hs])


REDUCTIONS = {"sum": lambda v: np.sum(v, 0), "mean": lambda v: np.mean(v, 0), "prod": lambda v: np.prod(v, 0), "max": lambda v: np.max(v, 0), "min": lambda v: np.min(v, 0)}
OPS = {
    **{f"all_reduce_{kind}_of_own": ([f'a = ai.partita.AllReduce<reduction = "{kind}">(h)', "y = Mul(a, h)"], own, each(f)) for kind, f in REDUCTIONS.items()},
    **{f"all_reduce_{kind}": (["c = ReduceSum<keepdims = 0>(h, zero)", f'y = ai.partita.AllReduce<reduction = "{kind}">(c)'], whole, columns(f)) for kind, f in REDUCTIONS.items()},
    "all_sum_of_same": (["a = ai.partita.AllSum(s)", "y = Mul(h, a)"], own, lambda hs, s, w: [h * s * len(hs) for h in hs]),
    "all_gather_of_own": (["a = ai.partita.AllGather<axis = 1>(h)", "t = Transpose<perm = [1, 0]>(a)", "v = MatMul(t, a)", "f = ReduceSum<keepdims = 0>(v)", "y = Mul(h, f)"], own,
                          lambda hs, s, w: [h * (np.concatenate(hs, 1).T @ np.concatenate(hs, 1)).sum() for h in hs]),
    "all_gather": (["a = ai.partita.AllGather<axis = 0>(h)", "q = Mul(a, a)", "y = ReduceSum<keepdims = 0>(q, zero)"], whole, lambda hs, s, w: (np.concatenate(hs) ** 2).sum(0)),
    "all_gather_of_same": (["a = ai.partita.AllGather(s)", "q = Mul(a, a)", "f = ReduceSum<keepdims = 0>(q)", "y = Mul(h, f)"], own, lambda hs, s, w: [h * (s * s).sum() * len(hs) for h in hs]),
    "all_to_all": (["a = ai.partita.AllToAll<split_axis = 1, concat_axis = 1>(h)", "y = Mul(a, h)"], own, lambda hs, s, w: [a * h for a, h in zip(exchange(hs, 1, 1), hs)]),
    "all_to_all_and_back": (["a = ai.partita.AllToAll<split_axis = 1, concat_axis = 0>(h)", "e = Exp(a)", "d = ReduceSum<keepdims = 1>(e, zero)", "g = Div(e, d)",
                             "y = ai.partita.AllToAll<split_axis = 0, concat_axis = 1>(g)"], own,
                            lambda hs, s, w: np.split(np.exp(np.concatenate(hs)) / np.exp(np.concatenate(hs)).sum(0), len(hs))),
    "all_to_all_of_same": (["a = ai.partita.AllToAll<split_axis = 0, concat_axis = 1>(w)", "f = ReduceSum<keepdims = 1>(a)", "y = Mul(h, f)"], own,
                           lambda hs, s, w: [h * part.sum() * len(hs) for h, part in zip(hs, np.split(w, len(hs)))]),
    "broadcast_of_own": (["a = ai.partita.Broadcast(h)", "y = Mul(a, h)"], own, each(lambda hs: hs[0])),
    "broadcast": (["c = ReduceSum<keepdims = 0>(h, zero)", "a = ai.partita.Broadcast<root = LAST>(c)", "y = Mul(a, a)"], whole, columns(lambda cs: cs[-1] ** 2)),
    "broadcast_of_same": (["a = ai.partita.Broadcast(w)", "y = MatMul(h, a)"], own, lambda hs, s, w: [h @ w for h in hs]),
    "shard": (["a = ai.partita.Shard(w)", "f = ReduceSum<keepdims = 1>(a, zero)", "y = Mul(h, f)"], own, lambda hs, s, w: [h * part.sum(0) for h, part in zip(hs, np.split(w, len(hs)))]),
    "shard_of_columns": (["a = ai.partita.Shard<axis = 1>(w)", "v = MatMul(h, a)", "f = ReduceSum<keepdims = 0>(v)", "y = Mul(h, f)"], own,
                         lambda hs, s, w: [h * (h @ part).sum() for h, part in zip(hs, np.split(w, len(hs), 1))]),
    "shard_of_gathered": (["a = ai.partita.AllGather(h)", "q = Mul(a, a)", "p = ai.partita.Shard(q)", "y = Mul(p, h)"], own, lambda hs, s, w: [h ** 3 for h in hs]),
    "replica_id": (["i = ai.partita.ReplicaId()", "j = Cast<to = 11>(i)", "y = Mul(h, j)"], own, lambda hs, s, w: [h * r for r, h in enumerate(hs)]),
    "map_gather": (["a = ai.partita.MapGather<body = f (double[8] e) => (double[8] m) { m = Mul(e, e) }>(w)", "y = MatMul(h, a)"], own, lambda hs, s, w: [h @ w**2 for h in hs]),
    # Five elements are dealt out to 2 and 4 replicas.
    **{f"map_reduce_{kind}": (["five = Constant<value_ints = [5]>()", "v = Slice(w, zero, five, zero)",
                               f'a = ai.partita.MapReduce<reduction = "{kind}", body = f (double[8] e) => (double[8] m) {{ m = Mul(e, e) }}>(v)', "y = Mul(h, a)"], own,
                              lambda hs, s, w, f=f: [h * f(w[:5] ** 2) for h in hs]) for kind, f in REDUCTIONS.items()},
    # A weight that replicas read of their own, that all read, and in slices.
    "uses_of_a_weight": (["one = Constant<value_ints = [1]>()", "three = Constant<value_ints = [3]>()", "eight = Constant<value_ints = [8]>()", "u = Slice(w, zero, three, zero)",
                          "v = Slice(w, three, eight, zero)", "o = ReduceSum<keepdims = 0>(u, zero)", "k = Mul(h, o)", "c = ReduceSum<keepdims = 0>(k, zero)", "a = ai.partita.AllSum(c)",
                          "p = Slice(w, one, three, zero)", "q = ReduceSum<keepdims = 0>(p, zero)", "d = Mul(a, q)", "e = ReduceSum<keepdims = 0>(v, zero)", "g = Mul(d, e)", "m = ReduceSum<keepdims = 0>(w, zero)", "y = Add(g, m)"],
                         whole, lambda hs, s, w: sum((h * w[:3].sum(0)).sum(0) for h in hs) * w[1:3].sum(0) * w[3:].sum(0) + w.sum(0)),
    # What all compute from a share goes on as a share.
    "all_compute": (["m = MatMul(w, w)", "t = Tanh(m)", "k = MatMul(h, t)", 'a = ai.partita.AllReduce<reduction = "mean">(k)', "q = Tanh(a)", "y = Sub(h, q)"], own,
                    lambda hs, s, w: [h - np.tanh(np.mean([g @ np.tanh(w @ w) for g in hs], 0)) for h in hs]),
}


def differences(loss, values):
    """The gradient of a function of arrays, by central differences."""
    found = {}
    for name, value in values.items():
        gradient = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = value.copy()
                moved[place] += step
                ends.append(loss(**{**values, name: moved}))
            gradient[place] = (ends[0] - ends[1]) / 2e-5
        found[f"{name}.grad"] = gradient
    return found


def check_op(work, name, nodes, type_, f, n):
    w = np.round(noise.uniform(-1, 1, (COLUMNS, COLUMNS)), 6)
    values = {"x": noise.uniform(-1, 1, (n * BATCH, COLUMNS)), "s": noise.uniform(0.5, 1.5, COLUMNS), "w": w}
    values["target"] = noise.uniform(-1, 1, (n * BATCH, COLUMNS) if type_ == own else COLUMNS)

    def loss(x, s, w, target):
        y = f(np.split(x * s, n), s, w)
        return np.mean(((np.concatenate(y) if type_ == own else y) - target) ** 2)

    # The one that a node does not read has no gradient.
    text = graph({"x": own, "s": whole}, {"y": type_}, {"w": w}, [*AXES, "h = Mul(x, s)", *(f"[n{i}] {node}" for i, node in enumerate(nodes))])
    compile_text(work, text.replace("LAST", str(n - 1)), "--dim", f"b={BATCH}", "--replicas", n, "--gradients", "inputs", "--loss", "mse:y")
    wanted = {"loss": loss(**values), **differences(loss, values)}
    if not any("w" in node.replace("(", " ").replace(",", " ").replace(")", " ").split() for node in nodes):
        del wanted["w.grad"]
    # Ops take turns at being computed by processes, too.
    for ranks in (0, n) if n == 2 and name in some(OPS, 3) else (0,):
        got = compute(work, {key: value for key, value in values.items() if key != "w"}, ranks)
        same(got, wanted, f"{name} on {n} replicas, {ranks} processes", NEAR_DIFFERENCE)
        bits = {key: value.tobytes() for key, value in got.items()}
        if ranks and bits != first:
            raise Failure(f"{name}: {ranks} processes have other bits than threads")
        first = bits


def check_ops(work, words):
    chosen = {name: case for name, case in OPS.items() if not words or any(word in name for word in words)}
    for name, case in chosen.items():
        for n in (2, 4):
            check_op(work, name, *case, n)
    print(f"{len(chosen)} derivatives across replicas agree with differences")


def check_ties(work):
    """Of equal elements each replica's gets the same share."""
    for kind in ("max", "min"):
        text = graph({"x": "double[b,2]"}, {"y": "double[2]"}, {}, [*AXES, "c = ReduceSum<keepdims = 0>(x, zero)", f'y = ai.partita.AllReduce<reduction = "{kind}">(c)'])
        compile_text(work, text, "--dim", "b=1", "--replicas", 4, "--gradients", "inputs", "--loss", "sum:y")
        sign = 1 if kind == "max" else -1
        got = compute(work, {"x": sign * np.array([[1.0, 3], [2, 0], [2, 3], [-1, 3]])})
        same(got, {"loss": sign * 5.0, "x.grad": np.array([[0, 1 / 3], [1 / 2, 0], [1 / 2, 1 / 3], [0, 1 / 3]])}, f"equal elements of a {kind}", 1e-12)
    print("equal elements of replicas share")


# --- The gradients of one device with the whole batch ---------------------------------------------------------------------------------------------


def compare_with_one(work, text, batch, inputs, flags, meshes):
    """`meshes`: {mesh: shard}, with the numbers of processes."""
    compile_text(work, text, "--dim", f"b={batch}", "--gradients", *flags)
    wanted = compute(work, inputs)
    if not all(np.linalg.norm(value) > 0 for value in wanted.values()):
        raise Failure(f"on one device there are no gradients: {wanted}")
    split = work / "split.yaml"
    for mesh, shard, processes in meshes:
        replicas = int(mesh.partition("replica: ")[2][:1])
        split.write_text(f"mesh: {{{mesh}}}\n{shard}\nmicro_batches: 1\n")
        compile_text(work, text, "--dim", f"b={batch // replicas}", "--gradients", *flags, "--partition", split)
        bits = []
        for ranks in processes:
            got = compute(work, inputs, ranks)
            same(got, wanted, f"{flags} over {{{mesh}}}, {ranks} processes, against one device", NEAR_ONE_DEVICE)
            bits.append({name: value.tobytes() for name, value in got.items()})
        if any(other != bits[0] for other in bits):
            raise Failure(f"over {{{mesh}}} processes have other bits than threads")
    return wanted


def check_losses(work):
    """Every loss, of a model that crosses nothing: means are over the samples of all replicas, also where one of them has fewer labels."""
    classes, samples = 5, 12
    text = graph({"x": "double[b,4]"}, {"y": f"double[b,{classes}]"}, {"w": noise.standard_normal((4, classes))}, ["l = MatMul(x, w)", "y = Sigmoid(l)"])
    x, labels = noise.standard_normal((samples, 4)), noise.integers(0, classes, samples)
    labels[[0, 1, 2, 7]] = -100
    values = noise.uniform(0.1, 0.9, (samples, classes))
    meshes = [("replica: 2", "", (0,)), ("replica: 4", "", (0,))]
    cases = {"cross_entropy:y": labels, "cross_entropy:y,label_smoothing=0.1": labels, "cross_entropy:y,reduction=sum": labels, "nll:y": labels, "mse:y": values, "mse:y,reduction=sum": values,
             "l1:y": values, "huber:y,delta=0.2": values, "bce:y": values, "bce_logits:y": values, "sum:y": None,
             "cross_entropy:y,axis=0": noise.integers(0, samples, classes)}  # samples as classes: the loss is of no replica
    for loss, target in cases.items():
        inputs = {"x": x} if target is None else {"x": x, "target": target}
        compare_with_one(work, text, samples, inputs, ("inputs", "--loss", loss), meshes)
    # The model's own loss.
    text = graph({"x": "double[b,4]"}, {"loss": "double"}, {"w": noise.standard_normal((4, classes))},
                 ["l = MatMul(x, w)", "q = Mul(l, l)", "m = ReduceMean<keepdims = 0>(q)", 'loss = ai.partita.AllReduce<reduction = "mean">(m)'])
    compare_with_one(work, text, samples, {"x": x}, ("inputs", "--loss", "output:loss"), meshes)
    # A wrong label is named by its place in the whole batch.
    text = graph({"x": "double[b,4]"}, {"y": "double[b,4]"}, {"w": noise.standard_normal(4)}, ["y = Mul(x, w)"])
    compile_text(work, text, "--dim", "b=3", "--replicas", 2, "--gradients", "--loss", "cross_entropy:y")
    np.savez(work / "in.npz", x=np.zeros((6, 4)), target=np.array([0, 1, 2, 3, 9, 0]))
    said = run_artifact(work / "m.partita", "--input", work / "in.npz", expect=1)
    if "9 at [4]" not in said:
        raise Failure(f"a wrong label on the second replica: {said}")
    print(f"{len(cases) + 1} losses over replicas have the gradients of one device")


def check_micro_batches(work):
    """Sums over three micro-batches of four samples, which two and four replicas share."""
    labels = noise.integers(0, 5, 12)
    labels[[0, 1, 7]] = -100
    text = graph({"x": "double[b,4]"}, {"y": "double[b,5]"}, {"w": noise.standard_normal((4, 5))}, ["l = MatMul(x, w)", "y = Sigmoid(l)"])
    inputs, flags = {"x": noise.standard_normal((12, 4)), "target": labels}, ("--gradients", "--loss", "cross_entropy:y", "--micro-batches", 3)
    compile_text(work, text, "--dim", "b=4", *flags)
    wanted = compute(work, inputs)
    for n, more in ((2, ()), (4, ()), (2, ("--devices", 4))):
        compile_text(work, text, "--dim", f"b={4 // n}", *flags, "--replicas", n, *more)
        same(compute(work, inputs), wanted, f"three micro-batches that {n} replicas share, {more}", NEAR_ONE_DEVICE)
    print("replicas share several micro-batches")


def doubles(weights):
    return {name: value.astype("f8") if value.dtype == np.dtype("f4") else value for name, value in weights.items()}


def check_norm(work):
    weights = doubles({**NORM, "eps": np.array([0.1])})
    nodes = ["[fc1] h1 = MatMul(x, w1)", *norm_nodes("h1", "n1", 1), "[relu] a1 = Relu(n1)", "[fc2] h2 = MatMul(a1, w2)", *norm_nodes("h2", "y", 2)]
    text = graph({"x": "double[b,6]"}, {"y": "double[b,8]"}, weights, nodes)
    x, target = noise.standard_normal((12, 6)), noise.standard_normal((12, 8))
    cuts = "shard: {w1: [null, tensor], w2: [tensor, null]}"
    found = compare_with_one(work, text, 12, {"x": x, "target": target}, ("inputs", "--loss", "mse:y"), [
        ("replica: 2", "", (0, 2)), ("replica: 3", "", (0,)), ("replica: 4", "", (0, 4)), ("replica: 2, stage: 2", "", (0, 4)), ("stage: 3, replica: 2", "", (0,)),
        ("replica: 2, tensor: 2", cuts, (0, 4)), ("replica: 2, stage: 2, tensor: 2", cuts, (0,))])

    def loss(x, target, w1, w2, scale, bias, eps):
        def norm(v):
            centered = v - v.mean(0, keepdims=True)
            return centered / np.sqrt((centered**2).mean(0, keepdims=True) + eps) * scale + bias
        return np.mean((norm(np.maximum(norm(x @ w1), 0) @ w2) - target) ** 2)

    values = {"x": x, "target": target, **{name: value for name, value in weights.items() if name != "rows"}}
    same(found, {"loss": loss(**values), **differences(loss, values)}, "batch statistics on one device", NEAR_DIFFERENCE)
    print("batch statistics over replicas have the gradients of one device")


def check_mixture(work):
    nodes = [node.replace("Cast<to = 1>", "Cast<to = 11>") for node in MIXTURE_NODES]
    text = graph({"x": f"double[b,{WIDTH}]"}, {"y": f"double[b,{WIDTH}]"}, doubles(MIXTURE), nodes)
    labels = noise.integers(0, WIDTH, 24)
    labels[[1, 4, 5]] = -100
    inputs = {"x": noise.standard_normal((24, WIDTH)), "target": labels}
    found = compare_with_one(work, text, 24, inputs, ("inputs", "--loss", "cross_entropy:y"), [
        ("replica: 2", "", (0, 2)), ("replica: 3", "", (0,)), ("replica: 4", "", (0, 4)), ("replica: 2, stage: 2", "", (0, 4)),
        ("replica: 2, tensor: 2", "shard: {w1: [null, null, tensor], w2: [null, tensor, null]}", (0,))])
    if set(found) != {"loss", "x.grad", "router.grad", "w1.grad", "w2.grad"} or found["w1.grad"].shape[0] != EXPERTS:
        raise Failure(f"the outputs are {[(name, value.shape) for name, value in found.items()]}")
    print("a mixture of experts over replicas has the gradients of one device")


def check_halves(work):
    """Of weights in f16 shares are added up in f32, and rounded once. No logits are gathered for the loss."""
    w = np.round(noise.standard_normal((16, 5)), 2)
    nodes = ["v = Cast<to = 10>(w)", "l = MatMul(x, v)", "y = Tanh(l)"]
    text = graph({"x": "float16[b,16]"}, {"y": "float16[b,5]"}, {"w": w.astype("f4")}, nodes)
    x, labels = noise.standard_normal((64, 16)).astype("f2"), noise.integers(0, 5, 64)
    results = []
    for n in (1, 4):
        table = compile_text(work, text, "--dim", f"b={64 // n}", "--replicas", n, "--gradients", "--loss", "cross_entropy:y")
        results.append(compute(work, {"x": x, "target": labels}))
    if "all_gather" in table:
        raise Failure(f"the loss is one of what all replicas gathered:\n{table}")
    same(results[1], results[0], "halves on 4 replicas, against one device", 2e-5)
    print("halves over replicas have the gradients of one device")


# --- What is no gradient ----------------------------------------------------------------------------------------------------------------------------

# (nodes, flags, what the message must hold)
ERRORS = [
    (["i = Constant<value_ints = [0, 1]>()", "a = ai.partita.AllSum(w)", 'z = ScatterElements<reduction = "mul">(a, i, a)', "y = Mul(x, z)"], ("--gradients", "--loss", "mse:y"),
     "nn.scatter has no derivative, and the loss depends on 'w' through it (a -> z -> loss)"),
    (["i = Cast<to = 7>(w)", "a = ai.partita.AllSum(i)", "f = Cast<to = 11>(a)", "y = Mul(x, f)"], ("--gradients", "--loss", "mse:y"), "depends on no parameter that is trained"),
    (["y = Mul(x, w)"], ("--gradients", "--loss", "mse:none"), "the model has no output 'none'"),
]


def check_errors(work):
    for nodes, flags, text in ERRORS:
        (work / "m.onnxtxt").write_text(graph({"x": "double[b,2]"}, {"y": "double[b,2]"}, {"w": np.array([1.5, -0.5])}, [f"[{node.split()[0]}] {node}" for node in nodes]))
        (work / "m.partita").unlink(missing_ok=True)
        said = run([BIN / "partita-compile", work / "m.onnxtxt", "-o", work / "m.partita", "--dim", "b=2", "--replicas", 2, *flags], expect=1)
        if text not in said or (work / "m.partita").exists():
            raise Failure(f"{nodes} {flags}: the message is\n{said}\nand not: {text}")
    print("errors say what is wrong")


def check():
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_ops(work, words)
        if not words:
            check_ties(work)
            check_losses(work)
            check_micro_batches(work)
            check_norm(work)
            check_mixture(work)
            check_halves(work)
            check_errors(work)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
