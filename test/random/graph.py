"""A model while it is being made: values with what is known of them, nodes, and the leaves' data."""

import random
import zlib

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

# Short names of element types: numpy's type, ONNX's number, and the relative distance of neighbours.
TYPES = {
    "f32": (np.float32, TensorProto.FLOAT, 2.0**-23),
    "f64": (np.float64, TensorProto.DOUBLE, 2.0**-52),
    "f16": (np.float16, TensorProto.FLOAT16, 2.0**-10),
    "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16, 2.0**-7),
    "i8": (np.int8, TensorProto.INT8, 0),
    "i16": (np.int16, TensorProto.INT16, 0),
    "i32": (np.int32, TensorProto.INT32, 0),
    "i64": (np.int64, TensorProto.INT64, 0),
    "u8": (np.uint8, TensorProto.UINT8, 0),
    "u16": (np.uint16, TensorProto.UINT16, 0),
    "u32": (np.uint32, TensorProto.UINT32, 0),
    "u64": (np.uint64, TensorProto.UINT64, 0),
    "bool": (np.bool_, TensorProto.BOOL, 0),
}
FLOATS = ("f32", "f64", "f16", "bf16")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS

# Ops whose constants ONNX Runtime has as numbers of f32 where the computation is in f64.
SHORT_CONSTANTS = ("HardSwish", "Gelu", "LeakyRelu", "Selu", "HardSigmoid", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
                   "ThresholdedRelu", "Celu", "Elu", "Mish", "Swish", "Shrink", "Gemm")

# What ops of the list make of NaN and infinities is left open, or depends on how sums are arranged.
UNDEFINED = {**{op: "a conversion to integers" for op in ("QuantizeLinear", "DynamicQuantizeLinear")},
             **{op: "how it compares with NaN" for op in ("ArgMax", "ArgMin", "TopK", "Hardmax", "Sign", "Mod", "MaxPool", "GlobalMaxPool")},
             **{op: "which products with zero there are" for op in ("ConvTranspose", "STFT", "DFT", "Einsum", "GridSample", "Resize", "RoiAlign", "Col2Im",
                                                                    "LSTM", "GRU", "RNN", "Attention", "LRN", "AffineGrid", "ReduceLogSumExp", "LpPool",
                                                                    "GlobalLpPool", "LpNormalization", "LayerNormalization", "InstanceNormalization",
                                                                    "GroupNormalization", "RMSNormalization", "MeanVarianceNormalization")}}

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16, 17, 19, 20, 23, 31, 32, 33, 37, 48, 65)
MOST_ELEMENTS = 6000


def count(shape):
    return int(np.prod(shape, dtype=np.int64))


def onnx_type(dtype):
    return TYPES[dtype][1]


class Value:
    """A tensor. `mag`: about the largest absolute value; `low`: a bound from below, or None. `exact`: every right implementation has the same
    bits. `fuzzy`: rounding may have flipped some elements (a comparison, a rounding, an index of what was computed). `doubt`: why ONNX Runtime is no
    witness for it, or ""."""

    def __init__(self, name, dtype, shape, mag=2.0, low=None, exact=False, fuzzy=False, doubt="", data=None):
        self.name, self.dtype, self.shape, self.mag, self.low = name, dtype, tuple(int(s) for s in shape), float(mag), low
        self.exact, self.fuzzy, self.doubt, self.data = exact, fuzzy, doubt, data
        self.uses, self.node = 0, None

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return count(self.shape)

    @property
    def is_float(self):
        return self.dtype in FLOATS

    def __repr__(self):
        return f"{self.name}:{self.dtype}{list(self.shape)}"


class Node:
    def __init__(self, op, inputs, outputs, attributes, domain=""):
        self.op, self.inputs, self.outputs, self.attributes, self.domain = op, inputs, outputs, attributes, domain
        self.sharp = False  # a small change of an operand may change the result much


class Unsuitable(Exception):
    """What was drawn does not fit the model so far; another is drawn."""


class Graph:
    def __init__(self, seed, values="finite", zero=False):
        self.seed = seed
        self.rng = random.Random(seed)
        self.noise = np.random.default_rng(seed)
        self.values_kind = values
        self.zero = zero and self.rng.random() < 0.25  # dimensions of 0 may come up
        self.dyadic = self.rng.random() < 0.5  # leaves of few bits
        self.opset = self.rng.choices((1, 9, 13, 17, 18, 19, 20, 21, 22, 23, 24, 26), (2, 2, 10, 10, 10, 10, 10, 20, 10, 10, 10, 2))[0]
        self.floats = self.rng.choices(FLOATS, (80, 7, 10, 3 if self.opset >= 22 else 0))[0] if self.opset >= 13 else "f32"  # most ops take bf16 from opset 22 on
        self.leaves, self.nodes, self.values = [], [], []
        self.inputs = self.rng.randint(1, 3)
        self.names = 0

    # -- choices ------------------------------------------------------------------------------------------------------------------------------------

    def chance(self, probability):
        return self.rng.random() < probability

    def choose(self, *options):
        return self.rng.choice(options)

    def size(self, most=65):
        if self.zero and self.chance(0.1):
            return 0
        return self.rng.choice([s for s in SIZES if s <= most])

    def shape(self, rank=None, most=MOST_ELEMENTS):
        rank = self.rng.choices((0, 1, 2, 3, 4, 5), (1, 3, 6, 6, 6, 2))[0] if rank is None else rank
        square = self.chance(0.12)  # what is exchanged wrongly there shows in the values alone
        while True:
            shape = [self.size(11)] * rank if square else [self.size() for _ in range(rank)]
            if count(shape) <= most:
                return tuple(shape)
            shape[self.rng.randrange(rank)] = 1
            most += most // 4

    # -- values -------------------------------------------------------------------------------------------------------------------------------------

    def name(self, kind):
        self.names += 1
        return f"{kind}{self.names}"

    def data(self, dtype, shape, mag, low, special):
        kind = TYPES[dtype][0]
        if dtype == "bool":
            return np.asarray(self.noise.random(shape) < 0.5)
        if dtype in INTEGERS:
            lowest = (0 if dtype in UNSIGNED else -int(mag)) if low is None else int(low)
            return np.asarray(self.noise.integers(lowest, max(lowest, int(mag)) + 1, shape)).astype(kind)
        if low is not None:
            x = low + self.noise.random(shape) * (mag - low)
        else:
            x = (self.noise.random(shape) * 2 - 1) * mag
        if self.dyadic:
            step = 2.0 ** np.floor(np.log2(max(mag, 1e-3))) / 16
            x = np.round(x / step) * step
            if low is not None:
                x = np.maximum(x, np.ceil(low / step) * step)
        x = np.asarray(x).astype(kind)
        if special and x.size:
            x = x.copy().reshape(-1)
            specials = [np.nan, np.inf, -np.inf, 0.0, -0.0]
            for _ in range(self.rng.randint(1, max(1, x.size // 16))):
                x[self.rng.randrange(x.size)] = self.rng.choice(specials)
            x = x.reshape(shape)
        return x

    def leaf(self, dtype, shape, mag=2.0, low=None, constant=None, special=True):
        """A new input of the model, or a constant (None: either). `special`: NaN may be in it where a model has such."""
        if count(shape) > 4 * MOST_ELEMENTS:
            raise Unsuitable("a large leaf")
        if constant is None:
            constant = self.inputs <= 0 or self.chance(0.6)
        value = Value(self.name("w" if constant else "x"), dtype, shape, mag, low, exact=True,
                      data=self.data(dtype, shape, mag, low, special and self.values_kind == "special" and not constant and self.chance(0.7)))
        value.constant = constant
        if not constant:
            self.inputs -= 1
            self.values.append(value)
        elif self.chance(0.3):
            self.values.append(value)  # may be shared
        self.leaves.append(value)
        return value

    def constant(self, array, dtype="i64"):
        """An initializer that holds just this."""
        array = np.asarray(array).astype(TYPES[dtype][0])
        value = Value(self.name("c"), dtype, array.shape, float(np.max(np.abs(array.astype(np.float64)), initial=0)), exact=True, data=array)
        value.constant = value.fixed = True
        self.leaves.append(value)
        return value

    def node(self, op, inputs, *results, domain="", sharp=False, keep=True, **attributes):
        """Adds a node; `results` are dictionaries for Value (dtype, shape, ...). What its results inherit from the inputs: fuzzy and doubt.
        `sharp`: the op is not continuous."""
        present = [v for v in inputs if v is not None]
        if any(count(r["shape"]) > 4 * MOST_ELEMENTS for r in results):
            raise Unsuitable("a large result")
        fuzzy = any(v.fuzzy for v in present) or (sharp and any(not v.exact for v in present))
        doubt = next((v.doubt for v in present if v.doubt), "")
        if op in UNDEFINED and self.values_kind == "special" and not doubt:
            doubt = f"{op} of NaN or infinity: {UNDEFINED[op]}"
        if op in SHORT_CONSTANTS and not doubt and results[0]["dtype"] == "f64":
            doubt = f"{op} of f64: its constants have the digits of f32"
        outputs = []
        for result in results:
            value = Value(self.name("t"), **{"doubt": doubt, **result})
            value.fuzzy |= fuzzy
            value.exact = (value.exact or not value.is_float) and not value.fuzzy
            outputs.append(value)
        node = Node(op, list(inputs), outputs, {k: v for k, v in attributes.items() if v is not None}, domain)
        node.sharp = sharp
        for value in present:
            value.uses += 1
        for value in outputs:
            value.node = node
        self.nodes.append(node)
        if keep:
            self.values += outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def pick(self, *suits, newest=0.6):
        """One of the values for which all of `suits` hold, rather a new one; or None."""
        found = [v for v in self.values if all(suit(v) for suit in suits)]
        if not found:
            return None
        return found[-1] if self.chance(newest) else self.rng.choice(found)

    def take(self, types=FLOATS, rank=None, least=0, suits=None, fresh=0.15, most=MOST_ELEMENTS, mag=2.0):
        """A value to go on with: one that is there, else a leaf. `rank`: a number or None; `least`: the least rank."""
        fits = lambda v: v.dtype in types and (rank is None or v.rank == rank) and v.rank >= least and v.size <= most and (suits is None or suits(v))
        value = None if self.chance(fresh) else self.pick(fits)
        if value is not None:
            return value
        dtype = self.floats if self.floats in types else self.rng.choice(types)
        for _ in range(20):
            shape = self.shape(max(least, self.rng.randint(1, 4)) if rank is None else rank, most)
            if suits is None or suits(Value("", dtype, shape)):
                return self.leaf(dtype, shape, mag)
        raise Unsuitable("no such shape")

    # -- the model ----------------------------------------------------------------------------------------------------------------------------------

    def outputs(self):
        """What nobody uses, and some of what somebody does."""
        made = [v for node in self.nodes for v in node.outputs if getattr(v, "tensor", True)]
        return [v for v in made if v.uses == 0 or self.rng.random() < 0.12]


def tensor(value):
    array = np.ascontiguousarray(value.data)
    return helper.make_tensor(value.name, onnx_type(value.dtype), value.shape, array.tobytes(), raw=True)


def port(value):
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), value.shape)


class Model:
    """A finished model: what of a graph its outputs need."""

    def __init__(self, nodes, leaves, outputs, opset, ir_version=10):
        self.outputs, self.opset, self.ir_version = list(outputs), opset, ir_version
        needed, self.nodes = {v.name for v in outputs}, []
        for node in reversed(nodes):
            if any(v.name in needed for v in node.outputs):
                self.nodes.insert(0, node)
                needed |= {v.name for v in node.inputs if v is not None} | set(getattr(node, "captured", ()))
        self.leaves = [v for v in leaves if v.name in needed]
        self.inputs = [v for v in self.leaves if not v.constant]

    @classmethod
    def of(cls, graph):
        return cls(graph.nodes, graph.leaves, graph.outputs(), graph.opset)

    def rounded(self):
        """The results that implementations round, each in its way."""
        return [v for n in self.nodes for v in n.outputs if v.is_float and not v.exact and getattr(v, "tensor", True)]

    def proto(self, peer=False, inner=False):
        """The model. For ONNX Runtime (`peer`) constants of floats are inputs as well, so that they can be moved, and what is rounded is added to
        a further input `NAME_moved`; `inner`: all tensors of numbers are outputs."""
        moved = {v.name for v in self.rounded()} if peer else set()
        made = lambda v: f"{v.name}_raw" if v.name in moved else v.name
        nodes = []
        for n in self.nodes:
            nodes.append(helper.make_node(n.op, [v.name if v is not None else "" for v in n.inputs], [made(v) for v in n.outputs],
                                          name=n.outputs[0].name, domain=n.domain, **n.attributes))
            nodes += [helper.make_node("Add", [made(v), f"{v.name}_moved"], [v.name]) for v in n.outputs if v.name in moved]
        # Some constants are nodes.
        inline = [] if peer else [v for v in self.leaves if v.constant and zlib.crc32(f"{v.name} {v.shape}".encode()) % 7 == 0]
        nodes = [helper.make_node("Constant", [], [v.name], name=v.name, value=tensor(v)) for v in inline] + nodes
        outputs = list(self.outputs)
        if inner:
            known = {v.name for v in outputs}
            outputs += [v for n in self.nodes for v in n.outputs if v.name not in known and getattr(v, "tensor", True)]
        inputs = self.inputs + ([v for v in self.leaves if v.constant and not hasattr(v, "fixed")] if peer else [])
        ports = [port(v) for v in inputs]
        ports += [helper.make_tensor_value_info(f"{v.name}_moved", onnx_type(v.dtype), v.shape) for v in self.rounded() if peer]
        graph = helper.make_graph(nodes, "random", ports, [port(v) for v in outputs], [tensor(v) for v in self.leaves if v.constant and v not in inline])
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=self.ir_version)

    def text(self):
        return onnx.printer.to_text(self.proto())
