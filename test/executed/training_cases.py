"""Models that training.py trains by Partita, and training_reference.py by PyTorch: seeded weights, their ONNX files, samples, and how each is trained."""

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STEPS = 20
BATCH = 4
MICRO_BATCHES = 8
IGNORED = -100
# An attribute of ONNX is of f32; this is exact there, so that models of f64 agree, too.
EPSILON = 2.0**-17
# What a running statistic keeps of its old value. PyTorch's momentum is the rest.
KEPT = 0.875
TOKENS, WORDS, WIDTH, HEADS = 6, 13, 8, 2
CELLS, FEATURES, TIMES = 6, 4, 5
EXPERTS, CHOSEN, ROW, INNER = 5, 2, 6, 9


def weights(name):
    """The parameters of a model, in f32, by name."""
    noise = np.random.default_rng(sum(name.encode()))

    def normal(*shape, scale=0.3):
        return (scale * noise.standard_normal(shape)).astype(np.float32)

    def around(one, *shape):
        return (one + normal(*shape, scale=0.1)).astype(np.float32)

    return {
        "mlp": lambda: {"fc1.weight": normal(8, 6), "fc1.bias": normal(8), "fc2.weight": normal(3, 8), "fc2.bias": normal(3)},
        "mnist": lambda: {
            "conv1.weight": normal(4, 1, 3, 3), "conv1.bias": normal(4), "conv2.weight": normal(6, 4, 2, 2), "conv2.bias": normal(6),
            "fc1.weight": normal(16, 24), "fc1.bias": normal(16), "fc2.weight": normal(10, 16), "fc2.bias": normal(10)},
        "cnn": lambda: {
            "conv1.weight": normal(5, 3, 3, 3), "bn1.weight": around(1, 5), "bn1.bias": normal(5), "conv2.weight": normal(6, 5, 3, 3),
            "bn2.weight": around(1, 6), "bn2.bias": normal(6), "fc.weight": normal(5, 6), "fc.bias": normal(5)},
        "transformer": lambda: {
            "wte": normal(WORDS, WIDTH), "wpe": normal(TOKENS, WIDTH), "ln1.weight": around(1, WIDTH), "ln1.bias": normal(WIDTH),
            "qkv.weight": normal(WIDTH, 3 * WIDTH), "proj.weight": normal(WIDTH, WIDTH), "proj.bias": normal(WIDTH),
            "ln2.weight": around(1, WIDTH), "ln2.bias": normal(WIDTH), "fc1.weight": normal(WIDTH, 4 * WIDTH), "fc1.bias": normal(4 * WIDTH),
            "fc2.weight": normal(4 * WIDTH, WIDTH), "fc2.bias": normal(WIDTH), "ln.weight": around(1, WIDTH), "ln.bias": normal(WIDTH)},
        "lstm": lambda: {
            "lstm.input": normal(1, 4 * CELLS, FEATURES), "lstm.recurrent": normal(1, 4 * CELLS, CELLS), "lstm.bias": normal(1, 8 * CELLS),
            "fc.weight": normal(4, CELLS), "fc.bias": normal(4)},
        # Matrices of experts in both orders.
        "experts": lambda: {
            "in.weight": normal(ROW, ROW), "in.bias": normal(ROW), "router.weight": normal(EXPERTS, ROW), "router.bias": normal(EXPERTS),
            "fc1.weight": normal(EXPERTS, INNER, ROW), "fc1.bias": normal(EXPERTS, INNER), "fc2.weight": normal(EXPERTS, INNER, 4), "fc2.bias": normal(EXPERTS, 4)},
    }[name]()


def statistics(name):
    """The running statistics that a model begins with, in f32, by name: means from -0.1 to 0.1, variances from 0.9 to 1.1."""
    if name != "cnn":
        return {}
    spread = lambda first, last, count: np.linspace(first, last, count).astype(np.float32)
    return {f"bn{i}.{part}": spread(*ends, count) for i, count in ((1, 5), (2, 6)) for part, ends in (("running_mean", (-0.1, 0.1)), ("running_var", (0.9, 1.1)))}


# The input of a model and what the loss compares with.
INPUTS = {"mlp": ("x", "target"), "mnist": ("image", "label"), "cnn": ("image", "label"), "transformer": ("tokens", "next"), "lstm": ("x", "label"), "experts": ("x", "label")}


def samples(name, loss="cross_entropy", ragged=False):
    """All samples of a model: the inputs, floats in f32, and labels or values."""
    noise = np.random.default_rng(1000 + sum(name.encode()))
    count = STEPS * MICRO_BATCHES * BATCH

    def normal(*shape):
        return noise.standard_normal((count, *shape)).astype(np.float32)

    if name == "mlp":
        x = normal(6)
        y = x[:, :3] * x[:, 3:] + 0.1 * normal(3)
        return x, (y > 0).astype(np.float32) * np.float32(0.75) + np.float32(0.125) if loss == "bce_logits" else y
    if name == "transformer":
        tokens = [noise.integers(0, WORDS, count)]
        for _ in range(TOKENS):
            tokens.append(np.where(noise.random(count) < 0.1, noise.integers(0, WORDS, count), (5 * tokens[-1] + 3) % WORDS))
        tokens = np.stack(tokens, 1)
        labels = tokens[:, 1:].copy()
        if ragged:
            # Each micro-batch has another number of labels that count: the first of a step one, the sixth none.
            share = noise.random((STEPS, MICRO_BATCHES, 1, 1))
            share[:, 5] = 0
            kept = noise.random((STEPS, MICRO_BATCHES, BATCH, TOKENS)) < share
            kept[:, 0] = 0
            kept[:, 0, 2, 3] = 1
            labels[~kept.reshape(labels.shape)] = IGNORED
        return tokens[:, :-1].copy(), labels
    classes, shape = {"mnist": (10, (1, 12, 12)), "cnn": (5, (3, 8, 8)), "lstm": (4, (TIMES, FEATURES)), "experts": (4, (ROW,))}[name]
    labels = noise.integers(0, classes, count)
    patterns = noise.standard_normal((classes, *shape))
    return (patterns[labels] + normal(*shape)).astype(np.float32), labels


class Graph:
    """An ONNX model as it is built."""

    def __init__(self, dtype):
        self.dtype, self.nodes, self.initializers = dtype, [], []
        self.kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def tensor(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def number(self, name, value):
        return self.tensor(name, np.array(value, self.dtype))

    def integers(self, name, *values):
        return self.tensor(name, np.array(values, np.int64))

    def node(self, op, *inputs, outputs=None, **attributes):
        outputs = outputs or [f"{op.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=f"/{op}_{len(self.nodes)}", **attributes))
        return outputs[0]

    def model(self, input, output, parameters):
        for name, array in parameters.items():
            self.tensor(name, array.astype(self.dtype))
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info(*input)], [helper.make_tensor_value_info(*output)], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, producer_name="training_cases")
        onnx.checker.check_model(model)
        return model


def build(name, dtype, training=True):
    """The ONNX model, with its first weights and batches of BATCH. It is written in training mode, or for inference."""
    g, given = Graph(dtype), weights(name)
    gemm = lambda x, layer, out=None: g.node("Gemm", x, f"{layer}.weight", f"{layer}.bias", outputs=out and [out], transB=1)
    if name == "mlp":
        gemm(g.node("Tanh", gemm("x", "fc1")), "fc2", "y")
        return g.model(("x", g.kind, [BATCH, 6]), ("y", g.kind, [BATCH, 3]), given)
    if name == "mnist":
        x = "image"
        for layer in ("conv1", "conv2"):
            x = g.node("Conv", x, f"{layer}.weight", f"{layer}.bias")
            x = g.node("Relu", g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))
        gemm(g.node("Relu", gemm(g.node("Flatten", x), "fc1")), "fc2", "logits")
        return g.model(("image", g.kind, [BATCH, 1, 12, 12]), ("logits", g.kind, [BATCH, 10]), given)
    if name == "cnn":
        x = "image"
        g.number("ratio", 0)
        if training:
            g.tensor("training", np.array(True))
        for i, stride in ((1, 1), (2, 2)):
            x = g.node("Conv", x, f"conv{i}.weight", pads=[1, 1, 1, 1], strides=[stride, stride])
            running = [g.tensor(name, array.astype(dtype)) for name, array in statistics(name).items() if name.startswith(f"bn{i}.")]
            outputs = [f"bn{i}", f"bn{i}_mean", f"bn{i}_var"] if training else [f"bn{i}"]
            x = g.node("BatchNormalization", x, f"bn{i}.weight", f"bn{i}.bias", *running, outputs=outputs, epsilon=EPSILON, momentum=KEPT, training_mode=int(training))
            x = g.node("Dropout", g.node("Relu", x), "ratio", "training" if training else "")
        gemm(g.node("ReduceMean", x, g.integers("area", 2, 3), keepdims=0), "fc", "logits")
        return g.model(("image", g.kind, [BATCH, 3, 8, 8]), ("logits", g.kind, [BATCH, 5]), given)
    if name == "transformer":
        return build_transformer(g, given)
    if name == "experts":
        return build_experts(g, given)
    x = g.node("Transpose", "x", perm=[1, 0, 2])
    g.node("LSTM", x, "lstm.input", "lstm.recurrent", "lstm.bias", outputs=["", "last"], hidden_size=CELLS)
    gemm(g.node("Squeeze", "last", g.integers("first", 0)), "fc", "logits")
    return g.model(("x", g.kind, [BATCH, TIMES, FEATURES]), ("logits", g.kind, [BATCH, 4]), given)


def build_transformer(g, given):
    """One causal layer; the head has the weight of the embedding."""
    norm = lambda x, layer: g.node("LayerNormalization", x, f"{layer}.weight", f"{layer}.bias", axis=-1, epsilon=EPSILON, stash_type=g.kind)
    linear = lambda x, layer: g.node("Add", g.node("MatMul", x, f"{layer}.weight"), f"{layer}.bias")
    heads, whole = g.integers("heads", BATCH, TOKENS, HEADS, WIDTH // HEADS), g.integers("whole", BATCH, TOKENS, WIDTH)
    x = g.node("Add", g.node("Gather", "wte", "tokens"), "wpe")
    # Without a bias: that of keys changes no softmax, and Adam would follow the rounding errors of its gradient.
    g.node("Split", g.node("MatMul", norm(x, "ln1"), "qkv.weight"), outputs=["q", "k", "v"], axis=2, num_outputs=3)
    split = lambda part, perm: g.node("Transpose", g.node("Reshape", part, heads), perm=perm)
    scores = g.node("Mul", g.node("MatMul", split("q", [0, 2, 1, 3]), split("k", [0, 2, 3, 1])), g.number("scale", 0.5))
    mask = g.tensor("mask", np.triu(np.full((TOKENS, TOKENS), -1e9), 1).astype(g.dtype))
    y = g.node("MatMul", g.node("Softmax", g.node("Add", scores, mask), axis=-1), split("v", [0, 2, 1, 3]))
    x = g.node("Add", x, linear(g.node("Reshape", g.node("Transpose", y, perm=[0, 2, 1, 3]), whole), "proj"))
    x = g.node("Add", x, linear(g.node("Gelu", linear(norm(x, "ln2"), "fc1")), "fc2"))
    g.node("MatMul", norm(x, "ln"), g.node("Transpose", "wte", perm=[1, 0]), outputs=["logits"])
    return g.model(("tokens", TensorProto.INT64, [BATCH, TOKENS]), ("logits", g.kind, [BATCH, TOKENS, WORDS]), given)


def build_experts(g, given):
    """A router chooses two of several small networks for each sample, as exporters write it: their weights are gathered."""
    x = g.node("Tanh", g.node("Gemm", "x", "in.weight", "in.bias", transB=1))
    g.node("TopK", g.node("Gemm", x, "router.weight", "router.bias", transB=1), g.integers("k", CHOSEN), outputs=["scores", "chosen"])
    ids = g.node("Reshape", "chosen", g.integers("flat", BATCH * CHOSEN))
    rows = g.node("Reshape", g.node("Expand", g.node("Unsqueeze", x, g.integers("one", 1)), g.integers("each", BATCH, CHOSEN, ROW)), g.integers("columns", BATCH * CHOSEN, ROW, 1))
    y = g.node("Squeeze", g.node("MatMul", g.node("Gather", "fc1.weight", ids), rows), g.integers("last", 2))
    y = g.node("Gelu", g.node("Add", y, g.node("Gather", "fc1.bias", ids)))
    y = g.node("MatMul", g.node("Unsqueeze", y, "one"), g.node("Gather", "fc2.weight", ids))
    y = g.node("Add", g.node("Squeeze", y, "one"), g.node("Gather", "fc2.bias", ids))
    y = g.node("Reshape", y, g.integers("split", BATCH, CHOSEN, 4))
    weighted = g.node("Mul", y, g.node("Unsqueeze", g.node("Softmax", "scores", axis=-1), "last"))
    g.node("ReduceSum", weighted, "one", outputs=["logits"], keepdims=0)
    return g.model(("x", g.kind, [BATCH, ROW]), ("logits", g.kind, [BATCH, 4]), given)


@dataclasses.dataclass
class Case:
    """A model and how it is trained. Settings have Partita's names; `groups` are (globs, settings)."""

    name: str
    model: str
    optimizer: str
    settings: dict
    groups: tuple = ()
    clip: float = None
    micro: int = 1
    schedule: dict = None
    loss: str = "cross_entropy"
    freeze: str = None
    ragged: bool = False
    dtypes: tuple = ("f64", "f32")

    def output(self):
        return "y" if self.model == "mlp" else "logits"

    def files(self, dtype):
        """The arrays of samples, in their order, by the names of the inputs."""
        x, y = samples(self.model, self.loss, self.ragged)
        count = STEPS * self.micro * BATCH
        convert = lambda a: a[:count].astype({"f64": np.float64, "f32": np.float32}[dtype]) if a.dtype == np.float32 else a[:count]
        return dict(zip(INPUTS[self.model], (convert(x), convert(y))))

    def rate(self, base, step):
        """The learning rate of a step, from 0 on, as docs and PyTorch's schedulers have it."""
        s = {"warmup": 0, "steps": 0, "final": 0.0, "every": 0, "factor": 0.1, "decay": 0, **(self.schedule or {"kind": "constant"})}
        if step < s["warmup"]:
            return base * (step + 1) / s["warmup"]
        if s["kind"] == "step":
            return base * s["factor"] ** (step // s["every"])
        first = s["steps"] - s["decay"] if s["kind"] == "wsd" else s["warmup"]
        if s["kind"] == "constant" or step < first:
            return base
        done = min(1.0, (step - first) / (s["steps"] - first))
        if s["kind"] == "cosine":
            return s["final"] + (base - s["final"]) * (1 + np.cos(np.pi * done)) / 2
        return base + (s["final"] - base) * done

    def flags(self):
        """Of partita-compile."""
        words = lambda head, settings: ",".join([head, *(f"{key}={text(value)}" for key, value in settings.items() if key != "kind")])
        text = lambda value: ":".join(map(repr, value)) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else repr(value)
        flags = ["--loss", f"{self.loss}:{self.output()}:{INPUTS[self.model][1]}", "--optimizer", words(self.optimizer, self.settings)]
        for globs, settings in self.groups:
            flags += ["--group", words(globs, settings)]
        if self.schedule:
            flags += ["--schedule-rate", words(self.schedule["kind"], self.schedule)]
        if self.clip:
            flags += ["--clip-norm", repr(self.clip)]
        if self.freeze:
            flags += ["--freeze", self.freeze]
        if self.micro > 1:
            flags += ["--micro-batches", self.micro]
        return flags


def rate(value, **others):
    return {"learning_rate": value, **others}


M = MICRO_BATCHES
COSINE = {"kind": "cosine", "warmup": 3, "steps": 18, "final": 0.0005}
CASES = [
    # Each optimizer, with most of its settings.
    Case("sgd", "mlp", "sgd", rate(0.05), loss="mse"),
    Case("sgd-decay", "mlp", "sgd", rate(0.05, momentum=0.9, dampening=0.5, weight_decay=0.02), loss="mse", micro=M),
    Case("nesterov-clip", "mlp", "sgd", rate(0.05, momentum=0.9, nesterov=True), loss="mse", clip=0.3),
    Case("adam-decay", "mlp", "adam", rate(0.01, weight_decay=0.02), loss="mse"),
    Case("adamw-betas", "mlp", "adamw", rate(0.01, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1), loss="mse"),
    Case("adagrad-all", "mlp", "adagrad", rate(0.03, learning_rate_decay=0.05, initial_accumulator=0.1, eps=1e-6, weight_decay=0.01), loss="mse"),
    Case("bce", "mlp", "adam", rate(0.02), loss="bce_logits", clip=0.1, micro=M),
    # Groups, what is frozen, schedules.
    Case("groups", "mlp", "adamw", rate(0.01, weight_decay=0.1), (("*.bias", {"weight_decay": 0.0}), ("fc2.weight|fc2*", {"learning_rate": 0.05, "betas": (0.7, 0.9)})), loss="mse", schedule=COSINE),
    Case("freeze", "mlp", "sgd", rate(0.05, momentum=0.5), loss="mse", freeze="fc1.*", clip=1.0),
    Case("cosine", "mlp", "sgd", rate(0.05), loss="mse", schedule=COSINE, dtypes=("f64",)),
    Case("step", "mlp", "sgd", rate(0.05), loss="mse", schedule={"kind": "step", "warmup": 2, "every": 6, "factor": 0.3}, dtypes=("f64",)),
    Case("linear", "mlp", "sgd", rate(0.05), loss="mse", schedule={"kind": "linear", "warmup": 4, "steps": 17, "final": 0.01}, dtypes=("f64",)),
    Case("wsd", "mlp", "sgd", rate(0.05), loss="mse", schedule={"kind": "wsd", "warmup": 5, "steps": 19, "decay": 8}, dtypes=("f64",)),
    Case("constant", "mlp", "sgd", rate(0.05), loss="mse", schedule={"kind": "constant", "warmup": 6}, dtypes=("f64",)),
    # Models.
    Case("mnist-momentum", "mnist", "sgd", rate(0.02, momentum=0.9)),
    Case("mnist-adamw", "mnist", "adamw", rate(0.002), clip=1.0, micro=M),
    Case("cnn-sgd", "cnn", "sgd", rate(0.05)),
    Case("cnn-adam", "cnn", "adam", rate(0.002), clip=0.5, micro=M),
    Case("transformer-nesterov", "transformer", "sgd", rate(0.05, momentum=0.9, nesterov=True), micro=M, ragged=True),
    Case("transformer-adamw", "transformer", "adamw", rate(0.004, weight_decay=0.05), (("*.bias|ln*|wpe", {"weight_decay": 0.0}),), clip=1.0, micro=M, ragged=True, schedule=COSINE),
    Case("transformer-adagrad", "transformer", "adagrad", rate(0.02), clip=1.0),
    Case("lstm-adam", "lstm", "adam", rate(0.01)),
    Case("lstm-momentum", "lstm", "sgd", rate(0.1, momentum=0.9), clip=0.2, micro=M),
    Case("experts-momentum", "experts", "sgd", rate(0.05, momentum=0.9)),
    Case("experts-adamw", "experts", "adamw", rate(0.01, weight_decay=0.05), clip=0.3, micro=M),
]
