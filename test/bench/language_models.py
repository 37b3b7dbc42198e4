"""GPT-2 and BERT as exporters write them: from op to op, with weights that are all the same or drawn from a seed. Needs onnx and numpy."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

HEAD = 64  # width of an attention head


class Transformer:
    """`model` computes `result` ([batch, tokens, ...]) from `ids` ([batch, tokens]). Weights are all 0.01, or random with a seed."""

    def __init__(self, layers, width, tokens, words, seed=None):
        self.width, self.tokens, self.words = width, tokens, words
        self.noise = None if seed is None else np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0
        shape = self.build(layers)
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", tokens])
        result = helper.make_tensor_value_info(self.result, TensorProto.FLOAT, ["batch", *shape])
        graph = helper.make_graph(self.nodes, type(self).__name__.lower(), [ids], [result], self.weights)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

    def op(self, kind, *inputs, result=None, outputs=1, **attributes):
        self.count += 1
        names = [result or f"{kind}_{self.count}"] + [f"{kind}_{self.count}_{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape):
        if self.noise is None:
            return self.constant(np.full(shape, 0.01, np.float32))
        return self.constant((self.noise.standard_normal(shape) * (0.02 if len(shape) > 1 else 1)).astype(np.float32))

    def norm(self, x):
        return self.op("LayerNormalization", x, self.weight(self.width), self.weight(self.width))

    def linear(self, x, rows, columns):
        return self.op("Add", self.op("MatMul", x, self.weight(rows, columns)), self.weight(columns))

    def heads(self, x):
        shape = self.constant(np.array([0, 0, self.width // HEAD, HEAD]))
        return self.op("Transpose", self.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attention(self, q, k, v, mask=None):
        scores = self.op("MatMul", self.heads(q), self.op("Transpose", self.heads(k), perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.constant(np.array(HEAD**-0.5, np.float32)))
        weights = self.op("Softmax", self.op("Add", scores, mask) if mask else scores, axis=-1)
        y = self.op("Transpose", self.op("MatMul", weights, self.heads(v)), perm=[0, 2, 1, 3])
        y = self.op("Reshape", y, self.constant(np.array([0, 0, self.width])))
        return self.linear(y, self.width, self.width)


class Gpt2(Transformer):
    """Norms come first; queries, keys and values have one weight; logits."""

    result = "logits"

    def build(self, layers):
        width = self.width
        x = self.op("Add", self.op("Gather", self.weight(self.words, width), "ids"), self.weight(self.tokens, width))
        mask = self.constant(np.where(np.tril(np.ones((self.tokens, self.tokens))), 0, -1e4).astype(np.float32))
        for _ in range(layers):
            parts = self.op("Split", self.linear(self.norm(x), width, 3 * width), outputs=3, axis=2, num_outputs=3)
            x = self.op("Add", x, self.attention(*parts, mask))
            h = self.op("Gelu", self.linear(self.norm(x), width, 4 * width), approximate="tanh")
            x = self.op("Add", x, self.linear(h, 4 * width, width))
        self.op("MatMul", self.norm(x), self.weight(width, self.words), result=self.result)
        return [self.tokens, self.words]


class Bert(Transformer):
    """Norms come last; queries, keys and values have a weight each; the last hidden state."""

    result = "hidden"

    def build(self, layers):
        width = self.width
        x = self.norm(self.op("Add", self.op("Gather", self.weight(self.words, width), "ids"), self.weight(self.tokens, width)))
        for _ in range(layers):
            parts = [self.linear(x, width, width) for _ in range(3)]
            x = self.norm(self.op("Add", x, self.attention(*parts)))
            h = self.op("Gelu", self.linear(x, width, 4 * width))
            x = self.norm(self.op("Add", x, self.linear(h, 4 * width, width)))
        self.op("Identity", x, result=self.result)
        return [self.tokens, width]
