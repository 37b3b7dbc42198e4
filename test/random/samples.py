"""Random models over x [N, ...], in half of which something along N is combined on purpose: where the compiler proves that samples are independent, runs in
pieces give what ONNX Runtime gives on the whole; otherwise the compiled shape does, and no other runs. See run.py --samples."""

import collections
import json
import random
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 2e-3  # of the largest value: kernels of other sizes, and sums of libraries, round in other ways
MOST = 600  # elements of a sample's tensor


class Unsuitable(Exception):
    pass


class Tensor:
    """`shape[axis]` is None: N entries, or `per` entries a sample."""

    def __init__(self, name, shape, axis, per=1):
        self.name, self.shape, self.axis, self.per = name, list(shape), axis, per

    @property
    def rank(self):
        return len(self.shape)

    @property
    def elements(self):
        return int(np.prod([s for s in self.shape if s is not None])) * self.per

    def others(self):
        return [d for d in range(self.rank) if d != self.axis]


class Maker:
    """One model: what it is made of, and how many of its nodes combine samples on purpose."""

    def __init__(self, seed):
        self.rng, self.noise = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.weights, self.values, self.mixed = [], [], [], []
        self.loose = []  # outputs that no node may read
        self.inputs = []
        for name in "xy"[:self.rng.choice((1, 1, 1, 2))]:
            shape = [None] + [self.rng.choice((1, 2, 3, 4, 5, 6, 8)) for _ in range(self.rng.choice((1, 2, 2, 3)))]
            self.inputs.append(Tensor(name, shape, 0))
        self.values += self.inputs

    def pick(self, fits=lambda v: True):
        fitting = [v for v in self.values if fits(v)]
        if not fitting:
            raise Unsuitable
        return fitting[-1] if self.rng.random() < 0.6 else self.rng.choice(fitting)

    def constant(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape):
        return self.constant((self.noise.standard_normal(shape) / max(1.0, np.sqrt(shape[0] if shape else 1))).astype(np.float32))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"n{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(op, [getattr(i, "name", i) for i in inputs], names, name=f"{op.lower()}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def add(self, name, shape, axis, per=1):
        tensor = Tensor(name, shape, axis, per)
        if tensor.elements > MOST or tensor.rank > 5:
            raise Unsuitable
        if self.rng.random() < 0.3:
            tensor.name = self.node("Tanh", name)
        self.values.append(tensor)
        return tensor

    def same(self, name, like):
        return self.add(name, like.shape, like.axis, like.per)

    def proto(self):
        used = {name for node in self.nodes for name in node.input}
        outputs = [v for v in self.values if v.name not in used and v not in self.inputs] or self.values[-1:]
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in [*(v.name for v in outputs), *self.loose]]
        inputs = [helper.make_tensor_value_info(v.name, TensorProto.FLOAT, ["N", *v.shape[1:]]) for v in self.inputs]
        graph = helper.make_graph(self.nodes, "samples", inputs, infos, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


# -- What leaves samples alone ----------------------------------------------------------------------------------------------------------------------

def unary(m):
    x = m.pick()
    m.same(m.node(m.rng.choice(("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Erf", "Sin", "Softplus", "Elu")), x), x)


def bias(m):
    x = m.pick()
    shape = [1 if s is None or m.rng.random() < 0.3 else s for s in x.shape]
    while shape and shape[0] == 1 and m.rng.random() < 0.5:
        shape.pop(0)
    m.same(m.node(m.rng.choice(("Add", "Mul", "Sub", "Max", "Min")), x, m.weight(*shape)), x)


def pair(m):
    x = m.pick()
    y = m.pick(lambda v: (v.shape, v.axis, v.per) == (x.shape, x.axis, x.per))
    m.same(m.node(m.rng.choice(("Add", "Mul", "Sub", "Max")), x, y), x)


def matmul(m):
    x = m.pick(lambda v: v.rank >= 2 and v.axis != v.rank - 1)
    wide = m.rng.choice((1, 2, 4, 7))
    m.add(m.node("MatMul", x, m.weight(x.shape[-1], wide)), [*x.shape[:-1], wide], x.axis, x.per)


def flatten(m):
    x = m.pick(lambda v: v.axis == 0 and v.per == 1 and v.rank > 1)
    m.add(m.node("Reshape", x, m.ints(0, -1)) if m.rng.random() < 0.5 else m.node("Flatten", x, axis=1), [None, x.elements], 0)


def along(m):
    x = m.pick(lambda v: v.rank > 1)
    axis = m.rng.choice(x.others())
    op = m.rng.choice(("Softmax", "LogSoftmax", "CumSum"))
    m.same(m.node(op, x, m.constant(np.int64(axis))) if op == "CumSum" else m.node(op, x, axis=axis), x)


def norm(m):
    x = m.pick(lambda v: v.rank > 1 and v.axis != v.rank - 1)
    m.same(m.node("LayerNormalization", x, m.weight(x.shape[-1]), axis=-1), x)


def reduce(m):
    x = m.pick(lambda v: v.rank > 1)
    axes = sorted(m.rng.sample(x.others(), m.rng.randint(1, len(x.others()))))
    keep = m.rng.random() < 0.5
    name = m.node(m.rng.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2")), x, m.ints(*axes), keepdims=int(keep))
    shape = [1 if d in axes else s for d, s in enumerate(x.shape)] if keep else [s for d, s in enumerate(x.shape) if d not in axes]
    m.add(name, shape, shape.index(None), x.per)


def transpose(m):
    x = m.pick(lambda v: v.rank > 1)
    perm = m.rng.sample(range(x.rank), x.rank)
    m.add(m.node("Transpose", x, perm=perm), [x.shape[p] for p in perm], perm.index(x.axis), x.per)


def unsqueeze(m):
    x = m.pick()
    at = m.rng.randint(0, x.rank)
    shape = [*x.shape[:at], 1, *x.shape[at:]]
    m.add(m.node("Unsqueeze", x, m.ints(at)), shape, shape.index(None), x.per)


def squeeze(m):
    x = m.pick(lambda v: 1 in v.shape)
    at = m.rng.choice([d for d, s in enumerate(x.shape) if s == 1])
    shape = [s for d, s in enumerate(x.shape) if d != at]
    m.add(m.node("Squeeze", x, m.ints(at)), shape, shape.index(None), x.per)


def merge(m):
    """Samples and what follows them as one dimension."""
    x = m.pick(lambda v: v.axis < v.rank - 1 and v.rank > 1)
    shape = [*x.shape[:x.axis], None, *x.shape[x.axis + 2:]]
    m.add(m.node("Reshape", x, m.ints(*(-1 if s is None else s for s in shape))), shape, x.axis, x.per * x.shape[x.axis + 1])


def part(m):
    """The opposite."""
    x = m.pick(lambda v: v.per > 1)
    sizes = [k for k in range(1, x.per + 1) if x.per % k == 0]
    k = m.rng.choice(sizes)
    shape = [*x.shape[:x.axis], None, k, *x.shape[x.axis + 1:]]
    m.add(m.node("Reshape", x, m.ints(*(-1 if s is None else s for s in shape))), shape, x.axis, x.per // k)


def rows(m):
    """Something at each step of time-major sequences, as rows of one matrix, and back."""
    x = m.pick(lambda v: v.axis == 0 and v.per == 1 and v.rank == 3)
    t, f = x.shape[1:]
    turned = m.node("Transpose", x, perm=[1, 0, 2])
    flat = m.node("Reshape", turned, m.ints(-1, f))
    done = m.node("MatMul", flat, m.weight(f, 3))
    m.add(m.node("Reshape", done, m.ints(t, -1, 3)), [t, None, 3], 1)


def concat(m):
    x = m.pick(lambda v: v.rank > 1)
    axis = m.rng.choice(x.others())
    m.add(m.node("Concat", x, x, axis=axis), [2 * s if d == axis else s for d, s in enumerate(x.shape)], x.axis, x.per)


def token(m):
    """A row of a weight before those of each sample, as classifiers have one."""
    x = m.pick(lambda v: v.rank == 3 and v.axis == 0 and v.per == 1)
    size = m.node("Slice", m.node("Shape", x), m.ints(0), m.ints(1), m.ints(0))
    shape = m.node("Concat", size, m.ints(1, x.shape[2]), axis=0)
    row = m.node("Expand", m.weight(1, 1, x.shape[2]), shape)
    m.add(m.node("Concat", row, x, axis=1), [None, x.shape[1] + 1, x.shape[2]], 0)


def expand(m):
    x = m.pick()
    shape = [1 if s is None else s for s in x.shape]
    m.same(m.node("Add", x, m.node("Expand", m.weight(*shape), m.node("Shape", x))), x)


def cut(m):
    x = m.pick(lambda v: any(s and s > 1 for s in v.shape))
    axis = m.rng.choice([d for d in x.others() if x.shape[d] > 1])
    if m.rng.random() < 0.3:  # backwards
        m.same(m.node("Slice", x, m.ints(-1), m.ints(-2**31), m.ints(axis), m.ints(-1)), x)
        return
    end = m.rng.randint(1, x.shape[axis])
    begin = m.rng.randrange(end)
    m.add(m.node("Slice", x, m.ints(begin), m.ints(end), m.ints(axis)), [end - begin if d == axis else s for d, s in enumerate(x.shape)], x.axis, x.per)


def gather(m):
    x = m.pick(lambda v: v.rank > 1)
    axis = m.rng.choice(x.others())
    places = [m.rng.randrange(x.shape[axis]) for _ in range(m.rng.randint(1, 3))]
    m.add(m.node("Gather", x, m.ints(*places), axis=axis), [len(places) if d == axis else s for d, s in enumerate(x.shape)], x.axis, x.per)


def tile(m):
    x = m.pick(lambda v: v.rank > 1)
    axis = m.rng.choice(x.others())
    m.add(m.node("Tile", x, m.ints(*(2 if d == axis else 1 for d in range(x.rank)))), [2 * s if d == axis else s for d, s in enumerate(x.shape)], x.axis, x.per)


def pad(m):
    x = m.pick(lambda v: v.rank > 1)
    axis = m.rng.choice(x.others())
    at = lambda n: [n if d == axis else 0 for d in range(x.rank)]
    m.add(m.node("Pad", x, m.ints(*at(1), *at(2))), [s + 3 if d == axis else s for d, s in enumerate(x.shape)], x.axis, x.per)


def best(m):
    x = m.pick(lambda v: v.rank > 1)
    axis = m.rng.choice(x.others())
    k = m.rng.randint(1, x.shape[axis])
    m.add(m.node("TopK", x, m.ints(k), axis=axis, outputs=2)[0], [k if d == axis else s for d, s in enumerate(x.shape)], x.axis, x.per)


def conv(m):
    x = m.pick(lambda v: v.axis == 0 and v.per == 1 and v.rank == 4)
    c, h, w = x.shape[1:]
    if m.rng.random() < 0.3:
        m.add(m.node("AveragePool", x, kernel_shape=[1, 1]), x.shape, 0)
        return
    o = m.rng.choice((1, 3, 4))
    m.add(m.node("Conv", x, m.constant((m.noise.standard_normal((o, c, 3, 3)) / 3).astype(np.float32)), pads=[1, 1, 1, 1]), [None, o, h, w], 0)


def recurrence(m):
    x = m.pick(lambda v: v.axis == 1 and v.per == 1 and v.rank == 3)
    t, _, f = x.shape
    direction = m.rng.choice(("forward", "reverse", "bidirectional"))
    d = 2 if direction == "bidirectional" else 1
    op, gates = m.rng.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    name = m.node(op, x, m.weight(d, gates * 2, f), m.weight(d, gates * 2, 2), outputs=1, hidden_size=2, direction=direction)
    m.add(name, [t, d, None, 2], 2)


def attention(m):
    x = m.pick(lambda v: v.rank == 3 and v.axis == 0 and v.per == 1)
    q, k = m.node("MatMul", x, m.weight(x.shape[2], 4)), m.node("MatMul", x, m.weight(x.shape[2], 4))
    p = m.node("Softmax", m.node("MatMul", q, m.node("Transpose", k, perm=[0, 2, 1])), axis=-1)
    m.add(m.node("MatMul", p, x), x.shape, 0)


# -- What combines them -----------------------------------------------------------------------------------------------------------------------------

def mean(m):
    x = m.pick()
    op = m.rng.choice(("ReduceMean", "ReduceSum", "ReduceMax"))
    m.same(m.node("Sub", x, m.node(op, x, m.ints(x.axis), keepdims=1)), x)


def over(m):
    x = m.pick()
    op = m.rng.choice(("Softmax", "LogSoftmax", "CumSum"))
    m.same(m.node(op, x, m.constant(np.int64(x.axis))) if op == "CumSum" else m.node(op, x, axis=x.axis), x)


def everything(m):
    x = m.pick()
    m.same(m.node("Mul", x, m.node("ReduceMax", x, keepdims=0)), x)


def backwards(m):
    x = m.pick()
    m.same(m.node("Slice", x, m.ints(-1), m.ints(-2**31), m.ints(x.axis), m.ints(-1)), x)


def rolled(m):
    x = m.pick()
    rest = m.node("Slice", x, m.ints(1), m.ints(2**31), m.ints(x.axis))
    first = m.node("Slice", x, m.ints(0), m.ints(1), m.ints(x.axis))
    m.same(m.node("Concat", rest, first, axis=x.axis), x)


def first(m):
    x = m.pick()
    m.same(m.node("Sub", x, m.node("Gather", x, m.ints(m.rng.choice((0, -1))), axis=x.axis)), x)


def counted(m):
    x = m.pick()
    size = m.node("Cast", m.node("Gather", m.node("Shape", x), m.ints(x.axis), axis=0), to=TensorProto.FLOAT)
    m.same(m.node(m.rng.choice(("Div", "Add")), x, size), x)


def numbered(m):
    x = m.pick()
    size = m.node("Squeeze", m.node("Gather", m.node("Shape", x), m.ints(x.axis), axis=0))
    places = m.node("Range", m.constant(np.int64(0)), size, m.constant(np.int64(1)))
    places = m.node("Cast", places, to=TensorProto.FLOAT)
    if x.axis < x.rank - 1:
        places = m.node("Unsqueeze", places, m.ints(*range(1, x.rank - x.axis)))
    m.same(m.node("Add", x, places), x)


def scores(m):
    x = m.pick(lambda v: v.rank == 2 and v.axis == 0)
    p = m.node("Softmax", m.node("MatMul", x, m.node("Transpose", x, perm=[1, 0])), axis=-1)
    m.same(m.node("MatMul", p, x), x)


def steps(m):
    """A recurrence whose steps are the samples."""
    x = m.pick(lambda v: v.axis == 0 and v.rank == 3)
    direction = m.rng.choice(("forward", "reverse"))
    name = m.node("LSTM", x, m.weight(1, 8, x.shape[2]), m.weight(1, 8, 2), hidden_size=2, direction=direction)
    m.add(name, [None, 1, x.shape[1], 2], 0, x.per)


def behind(m):
    """Samples as the minor part of a dimension, and left there."""
    x = m.pick(lambda v: v.axis == 0 and v.per == 1 and v.rank == 3 and v.shape[1] > 1)
    m.loose.append(m.node("Reshape", m.node("Transpose", x, perm=[1, 0, 2]), m.ints(-1, x.shape[2])))


def pooled(m):
    x = m.pick(lambda v: v.rank == 3 and v.axis == 2 and v.per == 1)
    m.same(m.node("AveragePool", x, kernel_shape=[3], pads=[1, 1]), x)


ALONE = {unary: 6, bias: 6, pair: 5, matmul: 6, flatten: 2, along: 4, norm: 3, reduce: 5, transpose: 6, unsqueeze: 2, squeeze: 2, merge: 4, part: 4, rows: 3,
         concat: 3, token: 2, expand: 2, cut: 3, gather: 3, tile: 2, pad: 2, best: 2, conv: 5, recurrence: 4, attention: 4}
MIXING = {mean: 5, over: 5, everything: 2, backwards: 2, rolled: 2, first: 3, counted: 3, numbered: 3, scores: 3, steps: 3, behind: 2, pooled: 2}


def make(seed):
    """The model of a seed. That of an odd one has a node or two that combine samples."""
    m = Maker(seed)
    wanted, mixing = m.rng.choice((2, 3, 4, 6, 8, 10)), m.rng.choice((1, 1, 2)) if seed % 2 else 0
    places = sorted(m.rng.sample(range(wanted + mixing), mixing))
    done = tries = 0
    while done < wanted + mixing and tries < 200:
        tries += 1
        table = MIXING if done in places else ALONE
        maker = m.rng.choices(list(table), list(table.values()))[0]
        state = len(m.nodes), len(m.values)
        try:
            maker(m)
        except Unsuitable:
            del m.nodes[state[0]:], m.values[state[1]:]
            continue
        done += 1
        if table is MIXING:
            m.mixed.append(maker.__name__)
    return m if m.nodes else make(seed + 1_000_000_000)


class SampleChecker:
    def __init__(self, worker, level):
        self.worker, self.level = worker, level
        self.counts = collections.Counter()

    def command(self, *words):
        done = self.worker.run(*words)
        if done.died or done.late or done.status not in (0, 1):
            raise RuntimeError(f"{words[0]}: {done.reason()}: {done.errors.strip()[-300:]}")
        return done

    def run(self, feeds):
        np.savez(self.worker.folder / "in.npz", **feeds)
        out = self.worker.folder / "out.npz"
        out.unlink(missing_ok=True)
        done = self.command("partita-run", self.worker.folder / "s.partita", "--threads", "1", "--no-pin", "--input", self.worker.folder / "in.npz", "--output", out)
        return dict(np.load(out)) if done.status == 0 else done.errors

    def differs(self, session, mine, feeds):
        """What is wrong with results; "" if nothing is."""
        if isinstance(mine, str):
            return "refused: " + mine.strip()[-200:]
        names = [o.name for o in session.get_outputs()]
        for name, wanted in zip(names, session.run(None, feeds)):
            if mine[name].shape != wanted.shape:
                return f"'{name}' has the shape {mine[name].shape}, not {wanted.shape}"
            bad = ~np.isclose(mine[name], wanted, rtol=0, atol=TOLERANCE * max(1.0, np.nanmax(np.abs(wanted), initial=0)), equal_nan=True)
            if bad.any():
                return f"'{name}' is off by {np.nanmax(np.abs(mine[name] - wanted))} of {np.nanmax(np.abs(wanted))}"
        return ""

    def check(self, seed):
        """What is wrong with the model of a seed; "" if nothing is."""
        m = make(seed)
        proto = m.proto().SerializeToString()
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        session = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
        (self.worker.folder / "s.onnx").write_bytes(proto)
        n = m.rng.choice((1, 1, 2, 3, 4))
        feed = lambda count: {v.name: m.noise.standard_normal((count, *v.shape[1:])).astype(np.float32) for v in m.inputs}
        inputs = [w for v in m.inputs for w in ("--shape", f"{v.name}=" + "x".join(map(str, [n, *v.shape[1:]])))]
        done = self.command("partita-compile", self.worker.folder / "s.onnx", "-o", self.worker.folder / "s.partita", *inputs, "--no-optimize", "--json",
                            "--cpu-level", self.level)
        self.counts["mixed on purpose" if m.mixed else "not mixed"] += 1
        if done.status:
            self.counts["not compiled"] += 1
            return "not compiled: " + done.errors.strip()[-300:]
        mixes = json.loads(done.output)["mixes"]
        if not mixes:
            self.counts["in pieces"] += 1
            if m.mixed:
                self.counts["mixed on purpose, yet independent"] += 1
            for count in {1, n, 2 * n + 1}:
                feeds = feed(count)
                if text := self.differs(session, self.run(feeds), feeds):
                    return f"{count} samples, {n} a micro-batch: {text} (mixed by {m.mixed})"
            return ""
        self.counts["whole"] += 1
        if not m.mixed:
            self.counts["not mixed, yet whole: " + mixes.split(" (", 1)[-1][:60]] += 1
        feeds = feed(n)
        if text := self.differs(session, self.run(feeds), feeds):
            return f"the compiled shape, {n} samples: {text}"
        if not isinstance(self.run(feed(2 * n + 1)), str):
            return f"{2 * n + 1} samples were computed, although {mixes}"
        return ""


def text_of(seed):
    return onnx.printer.to_text(make(seed).proto())


def check(worker, level, options):
    """Runs run.py's models and seeds; the exit status."""
    checker, begin, found, done = SampleChecker(worker, level), time.monotonic(), 0, 0
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.models)
    for seed in seeds:
        if (options.seconds is not None and time.monotonic() - begin > options.seconds) or found >= options.most:
            break
        try:
            text = checker.check(seed)
        except Exception as error:
            text = f"the test itself fails: {type(error).__name__}: {error}"
        done += 1
        if text or options.seed is not None:
            print(f"seed {seed}: {text or 'no difference'}\n{text_of(seed)}", flush=True)
        found += bool(text)
    print(f"{done} models in {time.monotonic() - begin:.0f} s; {found} differ")
    print("\n".join(f"{n:6} {what}" for what, n in sorted(checker.counts.items(), key=lambda row: -row[1])))
    return bool(found)
