"""ONNX Runtime as a witness, and how far its results move when the leaves do."""

import os
import re

import numpy as np
import onnxruntime

from compare import SPREADING
from graph import TYPES

onnxruntime.set_default_logger_severity(4)


class Refusal(Exception):
    """ONNX Runtime does not run the model; the text says why, without names and numbers."""


def reason(error):
    text = str(error)
    found = re.search(r"implementation for (\w+)|kernel for (\w+)", text)
    if found:
        return f"no implementation for the type: {found[1] or found[2]}"
    found = re.search(r"Type '([^']*)' of input parameter .* of operator \(([^)]*)\)", text)
    if found:
        return f"no type {found[1]}: {found[2]}"
    return re.sub(r"\b[twxcb]\d+|\d+", "N", re.sub(r"^\[ONNXRuntimeError\] : \d+ : ", "", text))[:160]


class Peer:
    """The tensors of a model, inner ones too, unfused and unoptimised."""

    def __init__(self, model):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.enable_cpu_mem_arena = False
        if any(v.dtype == "bf16" for v in model.leaves) or any(v.dtype == "bf16" for n in model.nodes for v in n.outputs):
            raise Refusal("no arrays of bfloat16 in its Python interface")
        try:
            text = model.proto(peer=True, inner=True).SerializeToString()
            self.session = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise Refusal(reason(error)) from None
        self.names = [o.name for o in self.session.get_outputs()]
        self.model = model

    def run(self, feeds, noise=None, tensors=None):
        """The tensors; with `noise` each of them some roundings away from where it was in `tensors`."""
        feeds = dict(feeds)
        for value in self.model.rounded():
            kind, _, eps = TYPES[value.dtype]
            shift = np.full(value.shape, -0.0)  # which leaves every number what it is, zeros with their sign
            if noise is not None:
                array = tensors[value.name].astype(np.float64)
                shift = np.nan_to_num(noise.choice((-2.0, 2.0), value.shape) * eps * self.reach(value, tensors), nan=-0.0, posinf=-0.0, neginf=-0.0)
                if array.size and array.min() >= 0:
                    shift = np.where(array + shift < 0, -shift, shift)
            feeds[f"{value.name}_moved"] = np.asarray(shift).astype(kind)
        signal = self.survives(feeds) if noise is None else None
        if signal is not None:
            raise Refusal(f"it dies of signal {signal} on a dimension of 0")
        try:
            with np.errstate(all="ignore"):
                return dict(zip(self.names, self.session.run(None, feeds)))
        except Exception as error:
            raise Refusal(reason(error)) from None


    def survives(self, feeds):
        """Tried in a process of its own where a tensor has no elements: the signal by which ONNX Runtime dies there (it divides by 0), or None."""
        values = list(self.model.leaves) + [v for n in self.model.nodes for v in n.outputs]
        if not any(0 in getattr(v, "shape", ()) for v in values):
            return None
        child = os.fork()
        if child == 0:
            try:
                self.session.run(None, feeds)
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else None

    @staticmethod
    def reach(value, tensors):
        """For each element the size of the terms whose rounding it bears."""
        node, sizes = value.node, np.abs(tensors[value.name].astype(np.float64))
        if node.op in ("Elu", "Celu", "Selu", "Softplus", "Mish", "Sigmoid", "RNN", "GRU", "LSTM"):
            return sizes + 1  # by way of exp(x) - 1 or 1 + exp(x), or by a fraction that is right to so much
        if node.op == "Gelu" and node.inputs[0].shape == value.shape:
            x = node.inputs[0]
            return sizes + np.abs(tensors.get(x.name, x.data).astype(np.float64))  # by way of x * (1 + tanh(x))
        if sizes.size == 0 or not (node.op in SPREADING or node.op.startswith("Reduce")):
            return sizes
        with np.errstate(all="ignore"):
            most = np.max(sizes, where=np.isfinite(sizes), initial=0)
            # Terms may be larger than what is left of them.
            terms = np.clip(value.mag, most, 4 * most)
            if node.op == "InstanceNormalization":
                # x * scale and mean * scale are apart in ONNX Runtime.
                x, scale = (np.abs(tensors.get(v.name, v.data).astype(np.float64)).max() for v in node.inputs[:2])
                terms = max(terms, x * scale / np.sqrt(node.attributes.get("epsilon", 1e-5)))
            if node.op == "MeanVarianceNormalization":
                # ONNX Runtime takes the variance to be the difference of two means.
                x = tensors.get(node.inputs[0].name, node.inputs[0].data).astype(np.float64)
                axes = tuple(node.attributes.get("axes", (0, 2, 3)))
                terms = max(terms, most * np.nan_to_num(np.max(np.mean(x * x, axes) / np.var(x, axes)), nan=1.0, posinf=1.0))
            return np.maximum(sizes, np.minimum(terms, 1e4 * np.maximum(sizes, most)))


def unmoved(model):
    """Names of leaves on which something depends that is not continuous and has been exact so far: moving them would show nothing."""
    still, makers = set(), {v.name: n for n in model.nodes for v in n.outputs}
    stack = [v for n in model.nodes if n.sharp for v in n.inputs if v is not None and v.exact]
    while stack:
        value = stack.pop()
        if value.name in still:
            continue
        still.add(value.name)
        if value.name in makers:
            stack += [v for v in makers[value.name].inputs if v is not None]
    return still


def moved(values, still, noise):
    """The leaves, each float some roundings away from where it was."""
    feeds = {}
    for value in values:
        eps = TYPES[value.dtype][2]
        data = value.data
        if value.is_float and value.name not in still and data.size:
            with np.errstate(all="ignore"):
                wide = data.astype(np.float64)
                data = np.asarray((wide * (1 + noise.choice((-2.0, 2.0), wide.shape) * eps)).astype(TYPES[value.dtype][0]))
        feeds[value.name] = data
    return feeds
