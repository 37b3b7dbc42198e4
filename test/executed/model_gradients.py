#!/usr/bin/env python3
"""Gradients of whole models in f64: how much the mean of the squares of a model's outputs grows along random directions of its parameters, all together and,
where there are few, each alone, against central differences of the same model. Recurrent layers, which compute in f32, and what takes minutes in f64 are left out.

A model is turned into one of f64 first, and its trained parameters become inputs, so that one artifact serves all directions.

    model_gradients.py              all
    model_gradients.py mnist t5     those whose names hold one of these words
"""

import json
import pathlib
import sys
import tempfile

from harness import ALL, BIN, SKIPPED, Failure, compile_model, data_folder, main, run, run_artifact

try:
    import numpy as np
    import onnx
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

from onnx import TensorProto, helper, numpy_helper

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
# Models, and the sizes of their dimensions.
MODELS = {
    "cnn/mnist-burn": (),
    "cnn/mnist-cntk-8": (),
    "cnn/mnist-pytorch-java": (),
    "cnn/conv-bn-fusion": (),
    "detection/yunet-n-dynamic": (),
    "detection/ultraface-slim-320": (),
    "decoder/gpt2-nopast-pt1.3": ("batch_size=2", "seq_len=5"),
    "encoder/bert-toy-ort": (),
    "encoder/bert-dummy-vespa": (),
    "encoder/bert-tiny-mlm-vespa": ("batch=2", "tokens=7"),
    "encdec/t5-random-encoder-vespa": (),
    "encdec/t5-random-decoder-vespa": (),
    "training/ort-pipeline-split": (),
}
SHAPES = {
    "detection/yunet-n-dynamic": ("input=1x3x64x64",),
    "encoder/bert-toy-ort": ("input_ids=2x5", "token_type_ids=2x5", "input_mask=2x5"),
    "encoder/bert-dummy-vespa": ("input_ids=2x5", "attention_mask=2x5", "token_type_ids=2x5"),
    "encdec/t5-random-encoder-vespa": ("input_ids=2x6", "attention_mask=2x6"),
    "encdec/t5-random-decoder-vespa": ("input_ids=1x3", "encoder_attention_mask=1x6", "encoder_hidden_states=1x6x8"),
}
FEW = 12  # parameters that are looked at one by one
STEPS = (1e-4, 1e-5, 1e-6, 1e-7)  # of a direction; the smaller ones, whose differences have fewer digits, where a kink is near
NEAR = 1e-6
KEPT = {"Resize": (1, 2), "Upsample": (1,)}  # operands that are f32 in any model


def widen(tensor):
    if tensor.data_type == FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def widen_graph(graph):
    """f64 for f32, everywhere."""
    kept = {node.input[i] for node in graph.node for i in KEPT.get(node.op_type, ()) if i < len(node.input)}
    for tensor in graph.initializer:
        if tensor.name not in kept:
            widen(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == FLOAT and value.name not in kept:
            value.type.tensor_type.elem_type = DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                widen_graph(attribute.g)
            elif attribute.type == onnx.AttributeProto.TENSOR and not kept & set(node.output):
                widen(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == FLOAT:
                attribute.i = DOUBLE
            elif attribute.name in ("value_float", "value_floats") and not kept & set(node.output):
                values = np.array(attribute.f if attribute.name == "value_float" else attribute.floats, np.float64)
                attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(values)))
        if node.op_type == "LayerNormalization":
            others = [attribute for attribute in node.attribute if attribute.name != "stash_type"]
            del node.attribute[:]
            node.attribute.extend([*others, helper.make_attribute("stash_type", DOUBLE)])


def add_loss(graph):
    """The sum of the mean squares of all outputs of floats."""
    parts = []
    for i, output in enumerate(graph.output):
        if output.type.tensor_type.elem_type == DOUBLE:
            graph.node.append(helper.make_node("Mul", [output.name, output.name], [f"square.{i}"]))
            graph.node.append(helper.make_node("ReduceMean", [f"square.{i}"], [f"mean.{i}"], keepdims=0))
            parts.append(f"mean.{i}")
    graph.node.append(helper.make_node("Sum", parts, ["z"]))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("z", DOUBLE, []))


class Model:
    def __init__(self, work, name):
        self.work, self.name, self.path = work, name, work / "model.onnx"
        flags = [word for flag, values in (("--dim", MODELS[name]), ("--shape", SHAPES.get(name, ()))) for value in values for word in (flag, value)]
        model = onnx.load(data_folder() / "models" / name / "model.onnx")
        widen_graph(model.graph)
        add_loss(model.graph)
        onnx.save(model, self.path)
        text = run([BIN / "partita-compile", self.path, *flags, "--list-parameters", "--loss", "output:z", "--json"])
        table = json.JSONDecoder().raw_decode(text, text.index("["))[0]  # remarks may follow
        trained = {row["name"] for row in table if row["trained"]}
        self.parameters = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer if tensor.name in trained}
        if not self.parameters:
            raise Failure(f"{name}: nothing is trained: {table}")
        rest = [tensor for tensor in model.graph.initializer if tensor.name not in self.parameters]
        inputs = [port for port in model.graph.input if port.name not in self.parameters]
        del model.graph.initializer[:], model.graph.input[:]
        model.graph.initializer.extend(rest)
        model.graph.input.extend([*inputs, *(helper.make_tensor_value_info(n, DOUBLE, array.shape) for n, array in self.parameters.items())])
        onnx.save(model, self.path)
        self.forward, self.backward = work / "forward.partita", work / "backward.partita"
        compile_model(self.path, self.forward, *flags)
        compile_model(self.path, self.backward, *flags, "--gradients", "inputs", "--loss", "output:z")
        self.noise = np.random.default_rng(sum(name.encode()))
        described = json.loads(run([BIN / "partita-run", self.forward, "--plan", "--json"]))["inputs"]
        self.inputs = {port["name"]: self.draw(port) for port in described if port["name"] not in self.parameters}

    def draw(self, port):
        if port["dtype"].startswith("float"):
            high = 255 if "yunet" in self.name else 1
            return self.noise.uniform(-1 if high == 1 else 0, high, port["shape"]) if "mask" not in port["name"] else np.ones(port["shape"])
        return self.noise.integers(*((1, 2) if "mask" in port["name"] else (0, 1) if "type" in port["name"] else (2, 9)), port["shape"]).astype(port["dtype"])

    def run(self, artifact, changed):
        np.savez(self.work / "in.npz", **self.inputs, **self.parameters | changed)
        run_artifact(artifact, "--input", self.work / "in.npz", "--output", self.work / "out.npz")
        with np.load(self.work / "out.npz") as archive:
            return {name: archive[name] for name in archive.files}

    def loss(self, directions, step):
        return float(self.run(self.forward, {name: self.parameters[name] + step * direction for name, direction in directions.items()})["z"])

    def check(self, names, gradients):
        """How far the derivative along a direction of some parameters is from a difference, as a part of its size, beyond what rounding of the losses makes."""
        apart = []
        for step in STEPS:
            directions = {name: self.noise.standard_normal(self.parameters[name].shape) * max(np.sqrt(np.mean(self.parameters[name] ** 2)), 1e-3) for name in names}
            products = {name: gradients[f"{name}.grad"] * direction for name, direction in directions.items()}
            have, size = sum(map(np.sum, products.values())), np.sqrt(sum(np.sum(p * p) for p in products.values()))
            losses = [self.loss(directions, factor * step) for factor in (1, -1, 0.5, -0.5)]
            whole, half = (losses[0] - losses[1]) / (2 * step), (losses[2] - losses[3]) / step
            rounding = 16 * 2.0**-52 * abs(losses[0]) / step
            # Of higher order, or with a kink between the two: the smaller step.
            differences = [abs(wanted - have) for wanted in ((4 * half - whole) / 3, half)]
            apart.append(max(min(differences) - rounding, 0) / max(abs(half), size))
            if apart[-1] <= NEAR:
                break
        return min(apart)


def check_model(work, name):
    model = Model(work, name)
    found = model.run(model.backward, {})
    for parameter, array in model.parameters.items():
        if found[f"{parameter}.grad"].shape != array.shape:
            raise Failure(f"{name}: {parameter}.grad has the shape {found[f'{parameter}.grad'].shape}, and {parameter} {array.shape}")
    groups = [list(model.parameters)] * (2 if ALL else 1) + ([[parameter] for parameter in model.parameters] if len(model.parameters) <= FEW else [])
    worst = 0
    for group in groups:
        apart = model.check(group, found)
        worst = max(worst, apart)
        if not apart <= NEAR:
            raise Failure(f"{name}: along a direction of {group[0] if len(group) == 1 else 'all parameters'} the gradient differs by {apart:.1e} from a difference")
    print(f"{name}: {len(model.parameters)} parameters, {len(groups)} directions, at most {worst:.1e} off", flush=True)


def check():
    words, wrong = sys.argv[1:], []
    for name in MODELS:
        if not words or any(word in name for word in words):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    check_model(pathlib.Path(folder), name)
                except Failure as failure:
                    wrong.append(f"{name}: {failure}")
    if wrong:
        raise Failure("\n\n".join(wrong))


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
