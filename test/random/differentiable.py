"""Random models of ops that have derivatives, in double precision. Every node is computed when it is made, by ONNX Runtime or ONNX's reference
implementation, so a maker knows the shape and the values of what it goes on with: it stays off the ends of domains, and never computes a shape itself.
See gradients.py."""

import random

import numpy as np
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

from formulas import BY_HAND
from graph import TYPES, Model, Node, Unsuitable, Value, count

SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9)
WIDE = (*SIZES, 11, 16, 17, 24, 33, 40)  # of one model in eight: there, vectors and blocks are filled
MOST = 260  # elements of a tensor; of a wide model ten times as many
LARGEST = 12.0  # what has larger elements is scaled: differences of a large loss say nothing about a small derivative
# Ops that compute something in f32 whatever their operands are.
SHORT = {"LayerNormalization", "GroupNormalization", "RMSNormalization", "Resize", "GridSample"}


class Witness:
    """Computes nodes, one by one: sessions are kept, so that a node that came up before costs nothing."""

    def __init__(self):
        self.known = {}
        self.options = onnxruntime.SessionOptions()
        self.options.log_severity_level, self.options.intra_op_num_threads = 4, 1

    def make(self, node, arrays, opset):
        if node.op in BY_HAND:
            computed = lambda given: BY_HAND[node.op](*given, **node.attributes)
            return lambda given: results if isinstance(results := computed(given), tuple) else [results]
        names = [f"i{i}" if a is not None else "" for i, a in enumerate(arrays)]
        outputs = [f"o{i}" for i in range(len(node.outputs))]
        made = helper.make_node(node.op, names, outputs, **node.attributes)
        ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), [None] * a.ndim) for n, a in zip(names, arrays) if n]
        results = [helper.make_tensor_value_info(o, TYPES[v.dtype][1], None) for o, v in zip(outputs, node.outputs)]
        model = helper.make_model(helper.make_graph([made], "one", ports, results), opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        feed = lambda given: {n: a for n, a in zip(names, given) if n}
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), self.options, providers=["CPUExecutionProvider"])
            return lambda given: session.run(None, feed(given))
        except Exception:
            evaluator = ReferenceEvaluator(model)
            return lambda given: [np.asarray(a) for a in evaluator.run(None, feed(given))]

    def run(self, node, arrays, opset):
        key = (node.op, repr(sorted(node.attributes.items())), tuple((a.dtype.char, a.ndim) if a is not None else None for a in arrays), len(node.outputs), opset)
        if key not in self.known:
            self.known[key] = self.make(node, arrays, opset)
        results = [np.asarray(a) for a in self.known[key]([a if a is None else np.asarray(a) for a in arrays])]
        for value, array in zip(node.outputs, results):
            if value.dtype == "f64" and array.dtype != np.float64:
                raise Unsuitable(f"{node.op} is computed in {array.dtype}")
        return results

    def forward(self, model, leaves):
        """All values of a model, by name."""
        values = dict(leaves)
        for node in model.nodes:
            arrays = [values[v.name] if v is not None else None for v in node.inputs]
            values.update(zip((v.name for v in node.outputs), self.run(node, arrays, model.opset)))
        return values


class Maker:
    def __init__(self, seed, witness):
        self.rng, self.noise, self.witness = random.Random(seed), np.random.default_rng(seed), witness
        self.opset = self.rng.choice((18, 20, 21, 22, 23, 24))
        self.nodes, self.values, self.leaves, self.names = [], [], [], 0
        self.sizes, self.most = (WIDE, 10 * MOST) if self.rng.random() < 0.125 else (SIZES, MOST)
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self.leaf(self.shape(), constant=False)

    def chance(self, probability):
        return self.rng.random() < probability

    def choose(self, *options):
        return self.rng.choice(options)

    def size(self):
        return self.rng.choice(self.sizes)

    def shape(self, rank=None):
        rank = self.rng.choices((1, 2, 3, 4, 5), (2, 5, 6, 6, 1))[0] if rank is None else rank
        while count(shape := [self.size() for _ in range(rank)]) > self.most // 2:
            pass
        return shape

    def leaf(self, shape, low=-1.5, high=1.5, constant=None, use=True):
        """An input or a weight. Its numbers are those of f32, so that a model of f32 has the same derivative."""
        constant = self.chance(0.75) if constant is None else constant
        if count(shape) > 2 * self.most:
            raise Unsuitable
        self.names += 1
        data = np.asarray(self.noise.uniform(low, high, shape)).astype(np.float32).astype(np.float64)
        value = Value(f"{'w' if constant else 'x'}{self.names}", "f64", shape, data=data)
        value.constant, value.at = constant, data
        self.leaves.append(value)
        if use and (not constant or self.chance(0.3)):
            self.values.append(value)
        return value

    def fixed(self, array):
        array = np.asarray(array)
        self.names += 1
        value = Value(f"c{self.names}", {"f": "f64", "i": "i64", "b": "bool"}[array.dtype.kind], array.shape, data=array)
        value.constant = value.fixed = True
        value.at = array
        self.leaves.append(value)
        return value

    def ints(self, *values):
        return self.fixed(np.array(values, np.int64))

    def pick(self, fits=lambda v: True):
        found = [v for v in self.values if fits(v)]
        if not found:
            raise Unsuitable
        return found[-1] if self.chance(0.5) else self.rng.choice(found)

    def take(self, rank=None, fits=lambda v: True):
        """A value of a rank (or of one of several), a new leaf where there is none."""
        ranks = (rank,) if isinstance(rank, int) else rank
        try:
            return self.pick(lambda v: (ranks is None or v.rank in ranks) and fits(v))
        except Unsuitable:
            if ranks is None:
                raise
        for _ in range(30):
            shape = self.shape(self.rng.choice(ranks))
            if fits(Value("", "f64", shape)):
                return self.leaf(shape, constant=self.chance(0.3))
        raise Unsuitable

    def node(self, op, *inputs, outputs=1, dtypes=("f64",) * 9, keep=True, **attributes):
        results = []
        for i in range(outputs):
            self.names += 1
            results.append(Value(f"t{self.names}", dtypes[i], ()))
        node = Node(op, list(inputs), results, attributes)
        try:
            arrays = self.witness.run(node, [v.at if v is not None else None for v in inputs], self.opset)
        except Exception as error:
            raise Unsuitable(f"{op}: {error}") from None
        for value, array in zip(results, arrays):
            if array.size > self.most or array.size == 0 or array.ndim > 6 or array.dtype.kind == "f" and not np.isfinite(array).all():
                raise Unsuitable
            value.at, value.shape, value.node = array, array.shape, node
        self.nodes.append(node)
        for value in inputs:
            if value is not None:
                value.uses += 1
        if not keep:
            return results[0] if outputs == 1 else results
        results = [self.small(v) for v in results]
        self.values += [v for v in results if v.is_float]
        return results[0] if outputs == 1 else results

    def small(self, value):
        if not value.is_float or np.abs(value.at).max() <= LARGEST:
            return value
        if self.chance(0.5):
            return self.node("Tanh", self.node("Mul", value, self.fixed(np.float64(0.125)), keep=False), keep=False)
        factor = 2.0 ** -np.ceil(np.log2(np.abs(value.at).max() / 2))
        return self.node("Mul", value, self.fixed(np.float64(factor)), keep=False)

    def length(self, *words, **attributes):
        """A node that computes lengths of vectors, none of which is 0: there its derivative has no value."""
        if not self.node(*words, **attributes).at.all():
            raise Unsuitable

    def inner(self, op, *inputs, **attributes):
        return self.node(op, *inputs, keep=False, **attributes)

    def axis(self, x):
        return self.rng.randrange(x.rank)

    def positive(self, x, least=0.3):
        """Something of x that is at least so large."""
        if x.at.min() >= least:
            return x
        how = self.rng.randrange(3)
        if how == 0:
            return self.inner("Add", self.inner("Mul", x, x), self.fixed(np.float64(0.5)))
        if how == 1:
            return self.inner("Add", self.inner("Abs", x), self.fixed(np.float64(0.5)))
        return self.inner("Add", self.inner("Sigmoid", x), self.fixed(np.float64(0.375)))

    def partner(self, x, low=-1.5, high=1.5):
        """What x broadcasts with: a value, or a new leaf."""
        def fits(v):
            try:
                return count(np.broadcast_shapes(v.shape, x.shape)) <= self.most
            except ValueError:
                return False
        if self.chance(0.4):
            try:
                return self.pick(fits)
            except Unsuitable:
                pass
        shape = [1 if self.chance(0.3) else s for s in x.shape]
        while shape and self.chance(0.25):
            shape.pop(0)
        if len(shape) == x.rank and self.chance(0.15):
            shape.insert(0, self.choose(1, 2, 3))
        shape = [self.choose(1, 2, 3, 5) if s == 1 and self.chance(0.2) else s for s in shape]
        leaf = self.leaf(shape, low, high)
        if not fits(leaf):
            raise Unsuitable
        return leaf


# -- one by one -------------------------------------------------------------------------------------------------------------------------------------

FREE = {"Relu": {}, "Tanh": {}, "Sigmoid": {}, "Neg": {}, "Abs": {}, "Erf": {}, "Sin": {}, "Cos": {}, "Softplus": {}, "Softsign": {}, "Elu": {"alpha": 0.75},
        "Selu": {"alpha": 1.5, "gamma": 1.25}, "LeakyRelu": {"alpha": 0.25}, "HardSigmoid": {"alpha": 0.25, "beta": 0.625}, "HardSwish": {}, "Gelu": {},
        "Mish": {}, "Identity": {}, "Atan": {}, "Asinh": {}, "ThresholdedRelu": {"alpha": 0.5}, "Exp": {}, "Sinh": {}, "Cosh": {}, "Swish": {},
        "Shrink": {"lambd": 0.5, "bias": 0.25}}


def unary(m):
    x = m.pick()
    op = m.rng.choice(list(FREE))
    if op == "Swish" and m.opset < 24 or op == "Gelu" and m.opset < 20:  # not there yet
        op = "Relu"
    if op in ("Exp", "Sinh", "Cosh") and np.abs(x.at).max() > 3:
        x = m.inner("Tanh", x)
    attributes = dict(FREE[op])
    if op == "Gelu" and m.chance(0.5):
        attributes["approximate"] = "tanh"
    m.node(op, x, **attributes)


def bounded(m):
    """Functions of which not all numbers have a value."""
    x, op = m.pick(), m.choose("Acos", "Asin", "Atanh", "Tan", "Acosh", "Log", "Sqrt", "Reciprocal")
    if op in ("Log", "Sqrt", "Reciprocal"):
        m.node(op, m.positive(x))
    elif op == "Acosh":
        m.node(op, m.inner("Add", m.positive(x), m.fixed(np.float64(1.0))))
    else:
        m.node(op, m.inner("Mul", m.inner("Tanh", x), m.fixed(np.float64(0.875))))


def stepped(m):
    """Steps, which have the derivative 0."""
    x = m.pick()
    m.node(m.choose("Mul", "Add"), m.inner(m.choose("Ceil", "Floor", "Round", "Sign"), x), x)


def binary(m):
    x = m.pick()
    op = m.rng.choices(("Add", "Sub", "Mul", "Max", "Min", "Div", "Pow", "Mod", "PRelu"), (5, 4, 6, 3, 3, 3, 3, 1, 1))[0]
    if op == "PRelu":
        shape = [1 if m.chance(0.4) else s for s in x.shape]
        m.node(op, x, m.leaf(shape[m.rng.randrange(len(shape) + 1):] if m.chance(0.5) else shape))
        return
    y = m.partner(x)
    if op == "Div":
        y = m.positive(y)
    elif op == "Pow":
        kind = m.rng.randrange(3)
        if kind == 0:
            y = m.fixed(np.float64(m.choose(2.0, 3.0, 1.0, 0.5, -1.0, -0.5, 1.5, 4.0)))
        if kind or float(y.at) not in (1.0, 2.0, 3.0, 4.0):
            x = m.positive(x)
        if np.abs(y.at).max() > 3:
            y = m.inner("Tanh", y)
    elif op == "Mod":
        m.node(op, x, m.positive(y), fmod=1)
        return
    m.node(op, *((x, y) if op == "Pow" or op == "Div" or m.chance(0.6) else (y, x)))


def itself(m):
    x = m.pick()
    m.node(m.choose("Add", "Mul", "Max"), x, x)


def variadic(m):
    x = m.pick()
    m.node(m.choose("Sum", "Mean", "Max", "Min"), *(m.partner(x) if i else x for i in range(m.choose(1, 2, 3, 4))))


def clip(m):
    x = m.pick()
    low, high = m.choose(-0.75, -0.25, None), m.choose(0.5, 1.25, None)
    m.node("Clip", x, *(m.fixed(np.float64(b)) if b is not None else None for b in (low, high)))


def where(m):
    x = m.pick()
    y = m.partner(x)
    shape = [1 if m.chance(0.3) else s for s in np.broadcast_shapes(x.shape, y.shape)]
    if m.chance(0.4):
        c = m.node(m.choose("Less", "Greater", "GreaterOrEqual"), x, m.partner(x), dtypes=("bool",))
    else:
        c = m.fixed(np.asarray(m.noise.random(shape) < 0.5))
    m.node("Where", c, *((x, y) if m.chance(0.5) else (y, x)))


# -- along a dimension ------------------------------------------------------------------------------------------------------------------------------

def softmax(m):
    x = m.take((1, 2, 3, 4))
    m.node(m.choose("Softmax", "Softmax", "LogSoftmax"), x, axis=m.axis(x) - m.choose(0, x.rank))


def norm(m):
    op = m.choose("LayerNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "BatchNormalization",
                  "BatchNormalization", "LRN", "LpNormalization", "MeanVarianceNormalization")
    if op == "LRN":
        x = m.take(4)
        m.node(op, x, size=m.choose(1, 3, 5), alpha=0.5, beta=0.75, bias=1.0)
    elif op == "LpNormalization":
        x = m.take((1, 2, 3))
        m.length(op, x, axis=m.axis(x), p=m.choose(1, 2))
    elif op == "MeanVarianceNormalization":
        x = m.take((3, 4), lambda v: count(v.shape) >= 12)
        m.node(op, x, axes=sorted(m.rng.sample(range(x.rank), 2)))
    elif op in ("LayerNormalization", "RMSNormalization"):
        x = m.take((2, 3, 4), lambda v: v.shape[-1] > 2)
        axis = m.rng.randrange(x.rank)
        if op[0] == "R" and m.opset < 23:
            raise Unsuitable
        m.node(op, x, m.leaf(x.shape[axis:]), *([m.leaf(x.shape[axis:])] if op[0] == "L" and m.chance(0.7) else []), axis=axis)
    else:
        x = m.take((3, 4), lambda v: count(v.shape[2:]) > 2)
        channels = x.shape[1]
        if op == "GroupNormalization":
            if m.opset < 21:
                raise Unsuitable
            m.node(op, x, m.leaf([channels]), m.leaf([channels]), num_groups=m.rng.choice([g for g in range(1, channels + 1) if channels % g == 0]))
        elif op == "InstanceNormalization":
            m.node(op, x, m.leaf([channels]), m.leaf([channels]))
        else:
            m.node(op, x, m.leaf([channels]), m.leaf([channels]), m.leaf([channels], constant=True, use=False), m.leaf([channels], 0.5, 2, constant=True, use=False))


def batches(m):
    """A batch normalization that measures its batch."""
    x = m.take((3, 4), lambda v: v.shape[0] * count(v.shape[2:]) > 3)
    leaves = [m.leaf([x.shape[1]]), m.leaf([x.shape[1]]), m.leaf([x.shape[1]], constant=True, use=False), m.leaf([x.shape[1]], 0.5, 2, constant=True, use=False)]
    m.values.append(m.inner("BatchNormalization", x, *leaves, outputs=3, training_mode=1)[0])


def losses(m):
    """A loss that is an op of the model."""
    x = m.take((2, 3), lambda v: v.shape[1] > 1)
    op = m.choose("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
    labels = m.noise.integers(0, x.shape[1], (x.shape[0], *x.shape[2:]))
    more = {"ignore_index": int(labels.flat[0])} if m.chance(0.3) and len(set(labels.flat)) > 1 else {}
    weights = [m.fixed(m.noise.uniform(0.25, 1.5, x.shape[1]))] if m.chance(0.4) else []
    m.node(op, x, m.fixed(labels), *weights, reduction=m.choose("mean", "sum", "none"), **more)


def chosen(m):
    """What is one at an index, and what the largest elements are."""
    if m.chance(0.5):
        m.node("OneHot", m.fixed(m.noise.integers(-3, 3, m.choose((2,), (2, 2), (5,)))), m.fixed(np.int64(3)), m.leaf([2], constant=m.chance(0.5)), axis=m.choose(-1, 0))
        return
    x = m.take((2, 3))
    m.node("Mul", m.inner("Hardmax", x, axis=m.axis(x)), x)


def reduce(m):
    x = m.pick()
    op = m.choose("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceLogSum")
    if op == "ReduceLogSum":
        x = m.positive(x)
    if x.rank == 0:
        raise Unsuitable
    axes = sorted(m.rng.sample(range(x.rank), m.rng.randint(1, x.rank)))
    make = m.length if op == "ReduceL2" else m.node
    make(op, x, *([m.ints(*(a - m.choose(0, x.rank) for a in axes))] if m.chance(0.85) else []), keepdims=m.choose(0, 1))


def running(m):
    x = m.take((1, 2, 3))
    m.node("CumSum", x, m.fixed(np.int64(m.axis(x))), exclusive=m.choose(0, 1), reverse=m.choose(0, 1))


def best(m):
    x = m.take((1, 2, 3))
    axis = m.axis(x)
    m.node("TopK", x, m.ints(m.rng.randint(1, x.shape[axis])), axis=axis, largest=m.choose(0, 1), outputs=2, dtypes=("f64", "i64"))


def pool(m):
    x = m.take((3, 4, 4, 5), lambda v: all(s > 1 for s in v.shape[2:]))
    op, n = m.choose("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), x.rank - 2
    make = m.length if "Lp" in op else m.node
    if op.startswith("Global"):
        make(op, x)
        return
    attributes = dict(kernel_shape=[m.rng.randint(1, min(3, s)) for s in x.shape[2:]])
    if m.chance(0.7):
        attributes["strides"] = [m.choose(1, 2, 3) for _ in range(n)]
    if op == "MaxPool" and m.chance(0.3):
        attributes["dilations"] = [m.choose(1, 2) for _ in range(n)]
    if m.chance(0.5):
        attributes["pads"] = [m.rng.randrange(k) for _ in range(2) for k in attributes["kernel_shape"]]
    elif m.chance(0.2) and op != "LpPool":
        attributes["auto_pad"] = m.choose("SAME_UPPER", "SAME_LOWER", "VALID")
    if m.chance(0.25) and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and m.chance(0.5):
        attributes["count_include_pad"] = 1
    if op == "LpPool":
        attributes["p"] = m.choose(1, 2, 3)
    make(op, x, **attributes)


# -- products ---------------------------------------------------------------------------------------------------------------------------------------

def matmul(m):
    x = m.take((1, 2, 3, 4))
    k, wide = x.shape[-1], m.choose(1, 2, 3, 5, 8)
    batch = list(x.shape[:-2]) if m.chance(0.4) else []
    batch = [1 if m.chance(0.3) else s for s in batch]
    y = m.leaf([k] if m.chance(0.12) else [*batch, k, wide])
    if m.chance(0.25):
        try:
            y = m.pick(lambda v: v.rank >= 2 and v.shape[-2] == k)
        except Unsuitable:
            pass
    if m.chance(0.2) and x.rank > 1 and y.rank > 1:  # (y^T x^T)^T
        turn = lambda v: m.inner("Transpose", v, perm=[*range(v.rank - 2), v.rank - 1, v.rank - 2])
        x, y = turn(y), turn(x)
    z = m.node("MatMul", x, y)
    if m.chance(0.3) and z.rank:
        m.node("Add", z, m.leaf([z.shape[-1]]))


def experts(m):
    """Rows times the matrices that indices choose for them, as exporters write layers of experts."""
    x = m.take((2, 3))
    k, n, many = x.shape[-1], m.choose(1, 3, 4), m.choose(1, 2, 3, 5)
    rows = x.size // k
    is_row, is_turned = m.chance(0.5), m.chance(0.5)
    table = m.leaf([many, *((k, n) if is_row != is_turned else (n, k))])
    chosen = m.inner("Gather", table, m.fixed(places(m, many, (rows,))))
    if is_turned:
        chosen = m.inner("Transpose", chosen, perm=[0, 2, 1])
    if is_row:
        y = m.inner("MatMul", m.inner("Reshape", x, m.ints(rows, 1, k)), chosen)
    else:
        y = m.inner("MatMul", chosen, m.inner("Reshape", x, m.ints(rows, k, 1)))
    m.node("Reshape", y, m.ints(rows, n))


def heads(m):
    """Attention as one op: in three dimensions or four, several queries for one key, a mask."""
    if m.opset < 23:
        raise Unsuitable
    n, q, kv, t, s, k = m.choose(1, 2), m.choose(2, 4), m.choose(1, 2), m.choose(1, 3), m.choose(2, 3, 5), m.choose(2, 4)
    more = {**({"is_causal": 1} if m.chance(0.3) else {}), **({"softcap": 2.0} if m.chance(0.3) else {}), **({"scale": 0.75} if m.chance(0.3) else {})}
    if m.chance(0.5):
        operands = [m.leaf([n, t, q * k]), m.leaf([n, s, kv * k]), m.leaf([n, s, kv * k])]
        more.update(q_num_heads=q, kv_num_heads=kv)
    else:
        operands = [m.leaf([n, q, t, k]), m.leaf([n, kv, s, k]), m.leaf([n, kv, s, k])]
    if m.chance(0.4):
        operands.append(m.leaf([t, s]) if m.chance(0.6) else m.fixed(np.arange(t * s).reshape(t, s) % 3 != 1))
    m.node("Attention", *operands, **more)


def square(m):
    x = m.take((2, 3))
    turned = m.inner("Transpose", x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])
    m.node("MatMul", *((x, turned) if m.chance(0.5) else (turned, x)))


def gemm(m):
    x = m.take(2)
    a, b, wide = m.choose(0, 1), m.choose(0, 1), m.choose(1, 2, 3, 6)
    rows, k = x.shape[::-1] if a else x.shape
    bias = [m.leaf(m.choose([wide], [1, wide], [rows, 1], [rows, wide], [1], []))] if m.chance(0.7) else []
    factors = dict(alpha=m.choose(0.5, 1.5), beta=m.choose(0.25, 2.0)) if m.chance(0.5) else {}
    m.node("Gemm", x, m.leaf([wide, k] if b else [k, wide]), *bias, transA=a, transB=b, **factors)


def einsum(m):
    x = m.take((2, 3))
    letters = "abc"[:x.rank]
    sizes = dict(zip(letters, x.shape), z=m.choose(1, 2, 3))
    other = "".join(m.rng.sample(letters + "z", m.rng.randint(1, x.rank)))
    result = m.rng.sample(sorted(set(letters + other)), m.rng.randint(0, len(set(letters + other))))
    m.node("Einsum", x, m.leaf([sizes[c] for c in other]), equation=f"{letters},{other}->{''.join(result)}")


def conv(m):
    transposed = m.chance(0.25)
    x = m.take((3, 4, 4, 4, 5), lambda v: count(v.shape) <= 0.6 * m.most)
    channels, spatial = x.shape[1], x.shape[2:]
    groups = m.rng.choice([g for g in range(1, channels + 1) if channels % g == 0] + [1])
    outputs = groups * m.choose(1, 1, 2, 3)
    window = [m.rng.randint(1, min(3, s + 1)) for s in spatial]
    attributes = dict(kernel_shape=window) if m.chance(0.5) else {}
    if groups > 1:
        attributes["group"] = groups
    if m.chance(0.5):
        attributes["strides"] = [m.choose(1, 2, 3) for _ in window]
    if m.chance(0.35):
        attributes["dilations"] = [m.choose(1, 2, 3) for _ in window]
    if m.chance(0.6):
        attributes["pads"] = [m.choose(0, 1, 2) for _ in range(2 * len(window))]
    if transposed and m.chance(0.3) and "strides" in attributes:
        attributes["output_padding"] = [m.rng.randrange(s) for s in attributes["strides"]]
    weights = m.leaf([channels, outputs // groups, *window] if transposed else [outputs, channels // groups, *window], -0.8, 0.8)
    m.node("ConvTranspose" if transposed else "Conv", x, weights, *([m.leaf([outputs])] if m.chance(0.5) else []), **attributes)


def attention(m):
    x = m.take(3)
    n, t, k = x.shape
    if m.opset >= 23 and m.chance(0.4):
        heads = m.choose(1, 2)
        q, key, v = m.leaf([n, heads, t, 4]), m.leaf([n, heads, 3, 4]), m.leaf([n, heads, 3, k])
        m.node("Attention", q, key, v, **({"is_causal": 1} if m.chance(0.3) else {}))
        return
    q, key, v = (m.inner("MatMul", x, m.leaf([k, d], use=False)) for d in (4, 4, 3))
    scores = m.inner("Mul", m.inner("MatMul", q, m.inner("Transpose", key, perm=[0, 2, 1])), m.fixed(np.float64(0.5)))
    if m.chance(0.3):
        scores = m.inner("Add", scores, m.leaf([t, t]))
    m.node("MatMul", m.inner("Softmax", scores, axis=-1), v)


# -- elements that move -----------------------------------------------------------------------------------------------------------------------------

def transpose(m):
    x = m.take((2, 3, 4, 5))
    m.node("Transpose", x, perm=m.rng.sample(range(x.rank), x.rank))


def reshape(m):
    x = m.pick()
    shape, left = [], x.size
    while left > 1 and len(shape) < 4 and m.chance(0.85):
        shape.append(m.rng.choice([k for k in range(1, left + 1) if left % k == 0]))
        left //= shape[-1]
    shape.append(left)
    if m.chance(0.4):
        shape[m.rng.randrange(len(shape))] = -1
    m.rng.shuffle(shape)
    m.node("Reshape", x, m.ints(*shape))


def flatten(m):
    x = m.pick()
    how = m.choose("Flatten", "Unsqueeze", "Squeeze")
    if how == "Flatten":
        m.node(how, x, axis=m.rng.randint(0, x.rank))
    elif how == "Unsqueeze":
        m.node(how, x, m.ints(m.rng.randint(0, x.rank)))
    else:
        ones = [d for d, s in enumerate(x.shape) if s == 1]
        if not ones:
            raise Unsuitable
        m.node(how, x, m.ints(m.rng.choice(ones)))


def expand(m):
    x = m.pick()
    shape = [m.choose(1, 2, 3, 4) if s == 1 else m.choose(1, s) for s in x.shape]
    if m.chance(0.4):
        shape.insert(0, m.choose(1, 2, 3))
    m.node("Expand", x, m.ints(*shape))


def cut(m):
    x = m.take((1, 2, 3, 4))
    axes = m.rng.sample(range(x.rank), m.rng.randint(1, min(2, x.rank)))
    starts, ends, steps = [], [], []
    for a in axes:
        size = x.shape[a]
        first, last = sorted((m.rng.randrange(size), m.rng.randrange(size)))
        if m.chance(0.25):
            first, last = 0, size - 1
        step = m.choose(1, 1, 2, 3, -1, -2)
        starts.append(first if step > 0 else last)
        ends.append(last + 1 if step > 0 else first - 1 if first else -2**31)
        steps.append(step)
    m.node("Slice", x, m.ints(*starts), m.ints(*ends), m.ints(*axes), m.ints(*steps))


def concat(m):
    x = m.take((1, 2, 3, 4))
    axis = m.axis(x)
    parts = [x]
    for _ in range(m.choose(1, 1, 2)):
        fits = lambda v: v.rank == x.rank and all(a == b for d, (a, b) in enumerate(zip(v.shape, x.shape)) if d != axis)
        parts.append(m.pick(fits) if m.chance(0.5) else m.leaf([m.size() if d == axis else s for d, s in enumerate(x.shape)]))
    m.rng.shuffle(parts)
    m.node("Concat", *parts, axis=axis)


def split(m):
    x = m.take((1, 2, 3), lambda v: max(v.shape) > 1)
    axis = m.rng.choice([d for d, s in enumerate(x.shape) if s > 1])
    first = m.rng.randint(1, x.shape[axis] - 1)
    m.node("Split", x, m.ints(first, x.shape[axis] - first), axis=axis, outputs=2)


def pad(m):
    x = m.take((1, 2, 3, 4))
    mode = m.choose("constant", "constant", "reflect", "edge", "wrap")
    most = [min(2, s - 1) if mode == "reflect" else min(2, s) for s in x.shape]
    pads = [m.rng.randint(-1 if mode == "constant" and s > 2 else 0, p) if m.chance(0.6) else 0 for _ in range(2) for p, s in zip(most, x.shape)]
    border = [m.choose(m.fixed(np.float64(0.75)), m.leaf([], constant=False, use=False))] if mode == "constant" and m.chance(0.5) else []
    m.node("Pad", x, m.ints(*pads), *border, **({"mode": mode} if mode != "constant" or m.chance(0.5) else {}))


def tile(m):
    x = m.take((1, 2, 3))
    m.node("Tile", x, m.ints(*(m.choose(1, 1, 2, 3) for _ in x.shape)))


def depth(m):
    x = m.take(4)
    if m.chance(0.5):
        m.node("DepthToSpace", m.leaf([x.shape[0], 4 * m.choose(1, 2), 2, 3]), blocksize=2, mode=m.choose("DCR", "CRD"))
    else:
        m.node("SpaceToDepth", m.leaf([x.shape[0], m.choose(1, 2), 4, 6]), blocksize=2)


def trilu(m):
    x = m.take((2, 3))
    m.node("Trilu", x, *([m.fixed(np.int64(m.choose(-1, 0, 1)))] if m.chance(0.6) else []), upper=m.choose(0, 1))


# -- elements by their numbers ----------------------------------------------------------------------------------------------------------------------

def places(m, size, shape):
    return m.noise.integers(-size, size, shape)


def gather(m):
    x = m.take((1, 2, 3, 4))
    axis = m.axis(x)
    m.node("Gather", x, m.fixed(places(m, x.shape[axis], m.choose((), (1,), (3,), (2, 2), (5,)))), axis=axis - m.choose(0, x.rank))


def gather_elements(m):
    x = m.take((1, 2, 3))
    axis = m.axis(x)
    shape = [m.choose(1, 2, 3) if d == axis else m.rng.randint(1, s) if m.chance(0.4) else s for d, s in enumerate(x.shape)]
    m.node("GatherElements", x, m.fixed(places(m, x.shape[axis], shape)), axis=axis)


def gather_nd(m):
    x = m.take((1, 2, 3))
    depth = m.rng.randint(1, x.rank)
    rows = m.choose(1, 2, 4)
    m.node("GatherND", x, m.fixed(np.stack([places(m, x.shape[d], rows) for d in range(depth)], -1)))


def scatter_elements(m):
    x = m.take((1, 2, 3))
    axis = m.axis(x)
    shape = [m.rng.randint(1, s) for s in x.shape]
    if m.chance(0.6):
        # Of several writes at one place the last one stays, as in ONNX Runtime.
        index, more = places(m, x.shape[axis], shape), m.choose({"reduction": "add"}, {"reduction": "max"}, {"reduction": "min"}, {})
    else:
        index, more = np.argsort(m.noise.random([x.shape[axis] if d == axis else s for d, s in enumerate(shape)]), axis).take(range(shape[axis]), axis), {}
    m.node("ScatterElements", x, m.fixed(index), m.leaf(shape), axis=axis, **more)


def scatter_nd(m):
    x = m.take((1, 2, 3))
    if m.chance(0.5):
        rows = m.choose(1, 2, 4)
        index, more = places(m, x.shape[0], (rows, 1)), m.choose({"reduction": "add"}, {"reduction": "max"}, {"reduction": "min"}, {})
    else:
        rows = m.rng.randint(1, x.shape[0])
        index, more = m.noise.permutation(x.shape[0])[:rows, None], {}
    m.node("ScatterND", x, m.fixed(index), m.leaf([rows, *x.shape[1:]]), **more)


def compress(m):
    x = m.take((1, 2, 3))
    axis = m.axis(x)
    keep = m.noise.random(x.shape[axis]) < 0.6
    keep[m.rng.randrange(keep.size)] = True
    m.node("Compress", x, m.fixed(keep), axis=axis)


def reverse_sequence(m):
    x = m.take((2, 3))
    m.node("ReverseSequence", x, m.fixed(m.noise.integers(1, x.shape[0] + 1, x.shape[1])), time_axis=0, batch_axis=1)


# -- images -----------------------------------------------------------------------------------------------------------------------------------------

def resize(m):
    x = m.take(4, lambda v: count(v.shape) <= m.most // 4)
    sizes = [*x.shape[:2], *(m.rng.randint(1, 2 * s + 1) for s in x.shape[2:])]
    mode = m.choose("nearest", "linear", "linear", "cubic")
    m.node("Resize", x, None, None, m.ints(*sizes), mode=mode, coordinate_transformation_mode=m.choose("half_pixel", "asymmetric", "align_corners"))


def grid_sample(m):
    x = m.take(4, lambda v: min(v.shape[2:]) > 1)
    mode = "linear" if m.opset >= 20 else "bilinear"
    points = m.leaf([x.shape[0], m.choose(1, 2, 3), 3, 2], -0.95, 0.95)
    m.node("GridSample", x, points, mode=mode, align_corners=m.choose(0, 1), padding_mode=m.choose("zeros", "border", "reflection"))


def dft(m):
    x = m.leaf([m.choose(1, 2), m.choose(3, 4, 5), m.choose(1, 2)])
    if m.chance(0.5):
        x = m.inner("Tanh", x)
    m.node("DFT", x, **({"onesided": 1} if x.shape[-1] == 1 and m.chance(0.4) else {}), **({} if m.opset >= 20 else {"axis": 1}))


def col2im(m):
    m.node("Col2Im", m.leaf([m.choose(1, 2), 4 * m.choose(1, 2), 6]), m.ints(4, 3), m.ints(2, 2))


def affine_grid(m):
    if m.opset < 20:
        raise Unsuitable
    n = m.choose(1, 2)
    m.node("AffineGrid", m.leaf([n, 2, 3]), m.ints(n, 1, 3, 4), align_corners=m.choose(0, 1))


def crop(m):
    x = m.take((2, 3))
    axis = m.axis(x)
    m.node("CenterCropPad", x, m.ints(m.size()), axes=[axis])


MAKERS = {unary: 22, bounded: 6, stepped: 2, binary: 16, itself: 2, variadic: 2, clip: 2, where: 4, softmax: 4, norm: 8, reduce: 9, running: 2, best: 2,
          pool: 6, matmul: 6, square: 2, gemm: 4, einsum: 3, conv: 9, attention: 2, transpose: 4, reshape: 4, flatten: 3, expand: 3, cut: 5, concat: 4,
          split: 2, pad: 4, tile: 2, depth: 1, trilu: 1, gather: 3, gather_elements: 3, gather_nd: 2, scatter_elements: 2, scatter_nd: 2, compress: 1,
          reverse_sequence: 1, resize: 2, grid_sample: 1, crop: 1, dft: 1, col2im: 1, affine_grid: 1, heads: 2, batches: 2, losses: 2, chosen: 1, experts: 2}


def make(seed, witness, only=None):
    """The model of a seed."""
    makers = {f: weight for f, weight in MAKERS.items() if not only or f.__name__ in only}
    for attempt in range(20):
        m = Maker(seed * 64 + attempt, witness)
        wanted, made = m.rng.choice((1, 2, 3, 4, 6, 8)), 0
        for _ in range(8 * wanted):
            state = len(m.nodes), len(m.values), len(m.leaves)
            try:
                m.rng.choices(list(makers), list(makers.values()))[0](m)
                made += 1
            except Unsuitable:
                # What was left half done is gone; uses that were counted only make outputs fewer.
                del m.nodes[state[0]:], m.values[state[1]:], m.leaves[state[2]:]
            if made >= wanted:
                break
        read = {v.name for n in m.nodes for v in n.inputs if v is not None}
        ends = [v for n in m.nodes for v in n.outputs if v.is_float and (v.name not in read or m.chance(0.08))]
        model = Model(m.nodes, m.leaves, ends, m.opset)
        if ends and model.inputs:
            return model
    raise RuntimeError(f"seed {seed} makes no model")
