#!/usr/bin/env python3
"""Replicas that share a micro-batch. Each op of the domain ai.partita gives NumPy's numbers on 1 to 4 replicas. Batch statistics over replicas are those
of the whole batch on one device. A mixture of experts, whose tokens go by all_to_all, gives the numbers of experts beside one another on one device.
All of that by threads and by processes, together with stages, with replicas that take micro-batches in turn, and with tensors that are cut. Samples
that fill no micro-batch are an error."""

import pathlib
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

from harness import Failure, compile_model, main, run_artifact

HEADER = '<ir_version: 10, opset_import: ["" : 21, "ai.partita" : 1]>\n'
TYPES = {np.dtype("f4"): "float", np.dtype("f8"): "double", np.dtype("i8"): "int64", np.dtype("?"): "bool"}
noise = np.random.default_rng(7)


def sixteenths(*shape):
    """Numbers whose sums and products of two are exact."""
    return (noise.integers(-8, 9, shape) / 16).astype("f4")


def initializer(name, value):
    value = np.asarray(value)
    values = ", ".join(str(v).lower() for v in value.reshape(-1).tolist())
    return f"{TYPES[value.dtype]}[{','.join(map(str, value.shape))}] {name} = {{{values}}}"


def graph(inputs, outputs, weights, nodes):
    ports = [", ".join(f"{type_} {name}" for name, type_ in ports.items()) for ports in (inputs, outputs)]
    tensors = ",\n ".join(initializer(name, value) for name, value in weights.items())
    return f"{HEADER}g ({ports[0]}) => ({ports[1]})\n<{tensors}>\n{{\n" + "".join(f"  {node}\n" for node in nodes) + "}\n"


def compile_text(work, text, *flags):
    (work / "m.onnxtxt").write_text(text)
    return compile_model(work / "m.onnxtxt", work / "m.partita", *flags)


def compute(work, inputs, ranks=0, expect=0):
    """The outputs of the artifact that was compiled last; with `expect` 1, the error."""
    feeds = []
    for name, value in inputs.items():
        np.save(work / f"{name}.npy", value)
        feeds += ["--input", f"{name}={work / name}.npy"]
    text = run_artifact(work / "m.partita", *feeds, "--threads", "1", "--output", work / "y.npz", ranks=ranks, expect=expect)
    return text if expect else dict(np.load(work / "y.npz"))


def same(got, wanted, what, tolerance=0.0):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Failure(f"{what}: {got.dtype} {got.shape}, expected {wanted.dtype} {wanted.shape}")
    error = np.max(np.abs(got.astype("f8") - wanted.astype("f8")), initial=0)
    if not error <= tolerance * max(np.max(np.abs(wanted), initial=0), 1):
        raise Failure(f"{what}: differs by {error}\n{got}\nexpected\n{wanted}")


# --- Each op ----------------------------------------------------------------------------------------------------------------------------------------


def exchange(xs, split_axis, concat_axis):
    """What all_to_all gives each replica."""
    parts = [np.split(x, len(xs), axis=split_axis) for x in xs]
    return [np.concatenate([given[r] for given in parts], axis=concat_axis) for r in range(len(xs))]


WEIGHTS = {
    "w": sixteenths(12, 4), "list": sixteenths(5, 4), "counts": np.arange(5), "rows": np.array([0]),
}
BATCH, SHARED = 2, sixteenths(3)

# Outputs of one model, called @ in their nodes. Name: (type, node, what each replica has of it, given the parts of x [b,12], k [b,12] and p [b,4] of all replicas).
EACH = {
    **{f"all_reduce_{kind}": ("float[b,12]", f'@ = ai.partita.AllReduce<reduction = "{kind}">(x)', lambda n, xs, ks, ps, f=f: [f(xs)] * n)
       for kind, f in {"sum": lambda v: np.sum(v, 0), "prod": lambda v: np.prod(v, 0), "max": lambda v: np.max(v, 0), "min": lambda v: np.min(v, 0),
                       "mean": lambda v: np.sum(v, 0) / np.float32(len(v))}.items()},
    "reduce_by_default": ("float[b,12]", "@ = ai.partita.AllReduce(x)", lambda n, xs, ks, ps: [np.sum(xs, 0)] * n),
    "all_sum": ("float[b,12]", "@ = ai.partita.AllSum(x)", lambda n, xs, ks, ps: [np.sum(xs, 0)] * n),
    "integers": ("int64[b,12]", '@ = ai.partita.AllReduce<reduction = "prod">(k)', lambda n, xs, ks, ps: [np.prod(ks, 0)] * n),
    "any": ("bool[b,4]", '@ = ai.partita.AllReduce<reduction = "max">(p)', lambda n, xs, ks, ps: [np.max(ps, 0)] * n),
    "all": ("bool[b,4]", '@ = ai.partita.AllReduce<reduction = "min">(p)', lambda n, xs, ks, ps: [np.min(ps, 0)] * n),
    "gathered": ("float[b,c]", "@ = ai.partita.AllGather<axis = -1>(x)", lambda n, xs, ks, ps: [np.concatenate(xs, 1)] * n),
    "gathered_bools": ("bool[b,d]", "@ = ai.partita.AllGather<axis = 1>(p)", lambda n, xs, ks, ps: [np.concatenate(ps, 1)] * n),
    "exchanged": ("float[b,12]", "@ = ai.partita.AllToAll<split_axis = 1, concat_axis = 1>(x)", lambda n, xs, ks, ps: exchange(xs, 1, 1)),
    "moved": ("int64[b,e,f]", "@ = ai.partita.AllToAll<split_axis = 1, concat_axis = 2>(k3)",
              lambda n, xs, ks, ps: exchange([k.reshape(BATCH, 12, 1) for k in ks], 1, 2)),
    "first": ("float[b,12]", "@ = ai.partita.Broadcast(x)", lambda n, xs, ks, ps: [xs[0]] * n),
    "last": ("int64[b,12]", "@ = ai.partita.Broadcast<root = LAST>(k)", lambda n, xs, ks, ps: [ks[-1]] * n),
    "own_part": ("float[b,g]", "@ = Einsum<equation = \"bi,ji->bj\">(x4, wpart)",
                 lambda n, xs, ks, ps: [x[:, :4] @ part.T for x, part in zip(xs, np.split(WEIGHTS["w"], n))]),
    "number": ("int64[b,12]", "@ = Mul(k, id)", lambda n, xs, ks, ps: [k * r for r, k in enumerate(ks)]),
    "how_many": ("int64[b,12]", "@ = Mul(k, count)", lambda n, xs, ks, ps: [k * n for k in ks]),
}
# Outputs that are the same on all replicas, without a batch dimension.
SAME = {
    "map_gather": ("float[5,4]", "@ = ai.partita.MapGather<body = f (float[4] e, int64 i) => (float[4] r) "
                   "{ c = Cast<to = 1>(i) r = Mul(e, c) }>(list, counts)", lambda xs: WEIGHTS["list"] * np.arange(5, dtype="f4")[:, None]),
    **{f"map_{kind}": ("float[4]", f'@ = ai.partita.MapReduce<reduction = "{kind}", body = f{kind} (float[4] e) => (float[4] r) '
                       "{ r = Mul(e, e) }>(list)", lambda xs, f=f: f(WEIGHTS["list"] ** 2))
       for kind, f in {"sum": lambda v: np.sum(v, 0), "prod": lambda v: np.prod(v, 0), "max": lambda v: np.max(v, 0), "min": lambda v: np.min(v, 0),
                       "mean": lambda v: np.sum(v, 0) / np.float32(5)}.items()},
    # The sum of a constant, which is known at load, is still computed by all.
    "count_by_sum": ("int64[5]", "@ = ai.partita.AllSum(counts)", lambda xs: np.arange(5) * len(xs)),
    # An input without a batch dimension goes to all.
    "sum_of_same": ("float[3]", "@ = ai.partita.AllSum(s)", lambda xs: SHARED * np.float32(len(xs))),
    "gathered_same": ("float[h]", "@ = ai.partita.AllGather(s)", lambda xs: np.concatenate([SHARED] * len(xs))),
    "as_it_is": ("float[3]", "@ = Neg(s)", lambda xs: -SHARED),
    "total": ("float[12]", "@ = ReduceSum<keepdims = 0>(all_gathered, rows)", lambda xs: np.sum(np.concatenate(xs), 0)),
}


def check_ops(work):
    nodes = ["shape3 = Constant<value_ints = [0, 12, 1]>()", "k3 = Reshape(k, shape3)", "four = Constant<value_ints = [4]>()",
             "zero = Constant<value_ints = [0]>()", "one = Constant<value_ints = [1]>()", "x4 = Slice(x, zero, four, one)",
             "wpart = ai.partita.Shard(w)", "id = ai.partita.ReplicaId()", "count = ai.partita.ReplicaCount()",
             "all_gathered = ai.partita.AllGather(x)"]
    every = {**EACH, **SAME}
    nodes += [f"[{name}] " + node.replace("@", name) for name, (_, node, _) in every.items()]
    for n, ranks in ((1, 0), (2, 0), (2, 2), (3, 0), (4, 0), (4, 4)):
        text = graph({"s": "float[3]", "x": "float[b,12]", "k": "int64[b,12]", "p": "bool[b,4]"}, {name: type_ for name, (type_, _, _) in every.items()},
                     WEIGHTS, nodes).replace("LAST", str(n - 1))
        compile_text(work, text, "--dim", f"b={BATCH}", "--replicas", n)
        x, k, p = sixteenths(n * BATCH, 12), noise.integers(-3, 4, (n * BATCH, 12)), noise.integers(0, 2, (n * BATCH, 4)).astype(bool)
        parts = [np.split(v, n) for v in (x, k, p)]
        got = compute(work, {"s": SHARED, "x": x, "k": k, "p": p}, ranks)
        for name, (_, _, expected) in EACH.items():
            same(got[name], np.concatenate(expected(n, *parts)), f"{name} on {n} replicas, {ranks} processes", 1e-6 if "prod" in name else 0)
        for name, (_, _, expected) in SAME.items():
            same(got[name], expected(parts[0]), f"{name} on {n} replicas, {ranks} processes", 1e-6)
    print(f"{len(every)} ops give NumPy's numbers on 1, 2, 3 and 4 replicas")


# --- Batch statistics over replicas -----------------------------------------------------------------------------------------------------------------

NORM = {"w1": sixteenths(6, 8), "w2": sixteenths(8, 8), "scale": sixteenths(8), "bias": sixteenths(8), "eps": np.array([1e-3], "f4"), "rows": np.array([0])}
NORM_BATCH, NORM_SAMPLES = 12, 24  # of all replicas together: two micro-batches


def norm_nodes(source, target, tag):
    """Batch normalisation with the statistics of all replicas."""
    return [f"[mean{tag}] m{tag} = ReduceMean<keepdims = 1>({source}, rows)",
            f'[sync_mean{tag}] am{tag} = ai.partita.AllReduce<reduction = "mean">(m{tag})',
            f"[center{tag}] c{tag} = Sub({source}, am{tag})", f"[square{tag}] s{tag} = Mul(c{tag}, c{tag})",
            f"[var{tag}] v{tag} = ReduceMean<keepdims = 1>(s{tag}, rows)",
            f'[sync_var{tag}] av{tag} = ai.partita.AllReduce<reduction = "mean">(v{tag})',
            f"[eps{tag}] e{tag} = Add(av{tag}, eps)", f"[root{tag}] r{tag} = Sqrt(e{tag})", f"[div{tag}] d{tag} = Div(c{tag}, r{tag})",
            f"[scale{tag}] t{tag} = Mul(d{tag}, scale)", f"[bias{tag}] {target} = Add(t{tag}, bias)"]


def norm_by_numpy(x):
    """In one piece, for each micro-batch."""

    def norm(v):
        centered = v - v.mean(0, keepdims=True)
        return centered / np.sqrt((centered**2).mean(0, keepdims=True) + 1e-3) * NORM["scale"] + NORM["bias"]

    def step(v):
        return norm(np.maximum(norm(v.astype("f8") @ NORM["w1"]), 0) @ NORM["w2"])

    return np.concatenate([step(part) for part in np.split(x, len(x) // NORM_BATCH)]).astype("f4")


def check_norm(work):
    nodes = ["[fc1] h1 = MatMul(x, w1)", *norm_nodes("h1", "n1", 1), "[relu] a1 = Relu(n1)", "[fc2] h2 = MatMul(a1, w2)", *norm_nodes("h2", "y", 2)]
    text = graph({"x": "float[b,6]"}, {"y": "float[b,8]"}, NORM, nodes)
    x = noise.standard_normal((NORM_SAMPLES, 6)).astype("f4")
    wanted = norm_by_numpy(x)
    split = work / "split.yaml"
    cuts = "shard: {w1: [null, tensor], w2: [tensor, null]}"
    more = "shard: {w1: [null, tensor], w2: [null, tensor]}"
    for mesh, shard, processes in (
            ("", "", (0,)), ("replica: 2", "", (0, 2)), ("replica: 3", "", (0, 3)), ("replica: 4", "", (0,)), ("replica: 2, stage: 2", "", (0, 4)),
            ("stage: 3, replica: 2", "", (0,)), ("data: 2, replica: 2", "", (0, 4)), ("replica: 2, tensor: 2", cuts, (0, 4)),
            ("tensor: 2, replica: 2", more, (0,)), ("replica: 2, stage: 2, tensor: 2", cuts, (0, 8)), ("data: 2, replica: 2, stage: 2", "", (0,))):
        replicas = int(mesh.partition("replica: ")[2][:1] or 1)
        split.write_text(f"mesh: {{{mesh}}}\n{shard}\nmicro_batches: {1 if 'data' in mesh else 2}\n" if mesh else "micro_batches: 2\n")
        table = compile_text(work, text, "--dim", f"b={NORM_BATCH // replicas}", "--partition", split)
        for ranks in processes:
            same(compute(work, {"x": x}, ranks)["y"], wanted, f"statistics over {{{mesh}}}, {ranks} processes", 1e-5)
        if replicas > 1 and "all_reduce along replica" not in table:
            raise Failure(f"the plan table does not show what crosses replicas:\n{table}")
        # A sample is missing: its copy would count in the statistics.
        error = compute(work, {"x": x[:-1]}, ranks=processes[-1], expect=1)
        if f"give a multiple of {NORM_BATCH} samples, not {NORM_SAMPLES - 1}" not in error:
            raise Failure(f"samples that fill no micro-batch, over {{{mesh}}}:\n{error}")
    # One whole micro-batch of two is a step.
    same(compute(work, {"x": x[:NORM_BATCH]})["y"], wanted[:NORM_BATCH], "a step that is not full", 1e-5)
    # The decision, written and read again, is the same plan.
    compile_text(work, text, "--dim", "b=6", "--replicas", 2, "--emit-partition", split)
    first = (work / "m.partita").read_bytes()
    compile_text(work, text, "--dim", "b=6", "--partition", split)
    if (work / "m.partita").read_bytes() != first:
        raise Failure(f"another plan from the partition file that was written:\n{split.read_text()}")
    print("batch statistics over replicas are those of the whole batch on one device")


# --- A mixture of experts ---------------------------------------------------------------------------------------------------------------------------

EXPERTS, WIDTH, HIDDEN = 12, 8, 16
MIXTURE = {"router": sixteenths(WIDTH, EXPERTS), "w1": sixteenths(EXPERTS, WIDTH, HIDDEN), "w2": sixteenths(EXPERTS, HIDDEN, WIDTH),
           "numbers": np.arange(EXPERTS), "two": np.array([2])}
# Each expert has a place for every token of a replica; those of other experts are 0 there. The places go to the replica that has the expert.
MIXTURE_NODES = [
    "[router] scores = MatMul(x, router)", "[gate] gates = Softmax<axis = -1>(scores)", "[best] best = ArgMax<axis = -1, keepdims = 1>(gates)",
    "[chosen] chosen = Equal(best, numbers)", "[mask] mask = Cast<to = 1>(chosen)", "[by_expert] mt = Transpose<perm = [1, 0]>(mask)",
    "[places] me = Unsqueeze(mt, two)", "[dispatch] sent = Mul(me, x)",
    "[to_experts] received = ai.partita.AllToAll<split_axis = 0, concat_axis = 1>(sent)",
    "[own_w1] o1 = ai.partita.Shard<axis = 0>(w1)", "[own_w2] o2 = ai.partita.Shard<axis = 0>(w2)",
    "[up] h = MatMul(received, o1)", "[act] a = Relu(h)", "[down] d = MatMul(a, o2)",
    "[from_experts] back = ai.partita.AllToAll<split_axis = 1, concat_axis = 0>(d)",
    "[weights] g = Mul(gates, mask)", "[gt] gtr = Transpose<perm = [1, 0]>(g)", "[ge] gu = Unsqueeze(gtr, two)", "[weigh] z = Mul(back, gu)",
    "zero = Constant<value_ints = [0]>()", "[combine] y = ReduceSum<keepdims = 0>(z, zero)"]


def mixture_by_numpy(x):
    scores = x.astype("f8") @ MIXTURE["router"]
    gates = np.exp(scores - scores.max(-1, keepdims=True))
    gates /= gates.sum(-1, keepdims=True)
    best = gates.argmax(-1)
    tokens = [np.maximum(row @ MIXTURE["w1"][e], 0) @ MIXTURE["w2"][e] * gates[t, e] for t, (row, e) in enumerate(zip(x.astype("f8"), best))]
    return np.stack(tokens).astype("f4")


def check_mixture(work):
    text = graph({"x": f"float[b,{WIDTH}]"}, {"y": f"float[b,{WIDTH}]"}, MIXTURE, MIXTURE_NODES)
    x = noise.standard_normal((24, WIDTH)).astype("f4")
    wanted = mixture_by_numpy(x)
    split = work / "split.yaml"
    for mesh, shard, processes in (
            ("", "", (0,)), ("replica: 2", "", (0, 2)), ("replica: 3", "", (0,)), ("replica: 4", "", (0, 4)), ("replica: 2, stage: 2", "", (0, 4)),
            ("data: 2, replica: 2", "", (0,)), ("replica: 2, tensor: 2", "shard: {w1: [null, null, tensor], w2: [null, tensor, null]}", (0, 4)),
            ("replica: 2, tensor: 2", "shard: {w1: [null, tensor, null], router: [null, tensor]}", (0,))):
        replicas = int(mesh.partition("replica: ")[2][:1] or 1)
        split.write_text(f"mesh: {{{mesh}}}\n{shard}\nmicro_batches: {1 if 'data' in mesh else 2}\n" if mesh else "micro_batches: 2\n")
        table = compile_text(work, text, "--dim", f"b={12 // replicas}", "--partition", split)
        if replicas > 1 and "all_to_all along replica" not in table:
            raise Failure(f"the tokens do not go by all_to_all:\n{table}")
        for ranks in processes:
            same(compute(work, {"x": x}, ranks)["y"], wanted, f"a mixture over {{{mesh}}}, {ranks} processes", 1e-5)
    print("a mixture of experts over replicas gives the numbers of one device")


def check():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_ops(work)
        check_norm(work)
        check_mixture(work)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
