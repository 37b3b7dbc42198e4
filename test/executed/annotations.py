#!/usr/bin/env python3
"""ONNX's own pipeline annotations: a model whose nodes name their stages is split so, and a partition file says otherwise. The model is written
here, byte by byte, as a protobuf message: ONNX's text form has no word for these annotations."""

import json
import pathlib
import random
import struct
import tempfile

from harness import Failure, compile_model, main, run_artifact, write_npy

ROWS, WIDTH = 3, 8


def varint(value):
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes(data + bytes([value]))


def field(number, value):
    """One field of a message: an integer, or bytes or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(name, op, inputs, output, stage=None):
    data = b"".join(field(1, value) for value in inputs) + field(2, output) + field(3, name) + field(4, op)
    if stage is not None:  # device_configurations {configuration_id, pipeline_stage}
        data += field(10, field(1, "two") + field(3, stage))
    return field(1, data)  # GraphProto.node


def port(number, name):
    shape = b"".join(field(1, field(1, size)) for size in (ROWS, WIDTH))
    return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, shape))))


def weight(name, seed):
    noise = random.Random(seed)
    values = [noise.randrange(-16, 17) / 16 for _ in range(WIDTH * WIDTH)]
    return field(5, field(1, WIDTH) + field(1, WIDTH) + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values)))


def model(stages):
    """Three layers; `stages` gives the stage of some nodes."""
    nodes = [("dot1", "MatMul", ["x", "u"], "a"), ("tanh1", "Tanh", ["a"], "b"), ("dot2", "MatMul", ["b", "v"], "c"),
             ("tanh2", "Tanh", ["c"], "d"), ("dot3", "MatMul", ["d", "w"], "y")]
    graph = b"".join(node(*parts, stages.get(parts[0])) for parts in nodes) + field(2, "g")
    graph += b"".join(weight(name, seed) for seed, name in enumerate("uvw")) + port(11, "x") + port(12, "y")
    configuration = field(26, field(1, "two") + field(2, 2))
    return field(1, 11) + field(8, field(1, "") + field(2, 21)) + field(7, graph) + configuration


def outputs(artifact, folder):
    out = folder / "out.npz"
    run_artifact(artifact, "--threads", "1", "--input", f"x={folder / 'x.npy'}", "--output", out)
    return out.read_bytes()


def compile_json(path, artifact, *flags):
    text = compile_model(path, artifact, "--json", *flags)
    return json.loads(text[text.index("{"):])


def check(folder):
    write_npy(folder / "x.npy", (2 * ROWS, WIDTH))
    path, artifact, split = folder / "model.onnx", folder / "model.partita", folder / "split.yaml"
    path.write_bytes(model({}))
    if len(compile_json(path, artifact)["stages"]) != 1:
        raise Failure("a model without annotations, and nothing else said, is not one stage")
    expected = outputs(artifact, folder)
    # What is annotated, and how many layers each stage must then have. Nodes that say nothing go with what they read.
    for stages, layers in (
        ({"dot1": 0, "tanh1": 0, "dot2": 1, "tanh2": 1, "dot3": 1}, [1, 2]),
        ({"dot1": 0, "dot2": 1, "dot3": 2}, [1, 1, 1]),
        ({"dot1": 0, "dot3": 1}, [2, 1]),
    ):
        path.write_bytes(model(stages))
        plan = compile_json(path, artifact)
        weights = [stage["parameter_bytes"] // (4 * WIDTH * WIDTH) for stage in plan["stages"]]
        if weights != layers:
            raise Failure(f"{stages}: stages with {weights} weights, not {layers}")
        if outputs(artifact, folder) != expected:
            raise Failure(f"{stages}: not the bytes of one device")
    # A person's word counts for more than the model's.
    path.write_bytes(model({"dot1": 0, "dot3": 1}))
    split.write_text('blocks: {B0: ["dot1", "tanh1"], B1: ["dot2", "tanh2", "dot3"]}\nstages: [[B0], [B1]]\n')
    plan = compile_json(path, artifact, "--partition", split)
    if [stage["parameter_bytes"] // (4 * WIDTH * WIDTH) for stage in plan["stages"]] != [1, 2]:
        raise Failure("--partition does not override the model's annotations")
    if outputs(artifact, folder) != expected:
        raise Failure("--partition over annotations: not the bytes of one device")
    # Stages that would have to wait for each other.
    path.write_bytes(model({"dot1": 1, "dot2": 0, "dot3": 1}))
    text = compile_model(path, folder / "none.partita", expect=1)
    if "in a cycle" not in text or "dot3" not in text or (folder / "none.partita").exists():
        raise Failure(f"stages in a cycle: {text}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        main(lambda: check(pathlib.Path(work)))
    print("annotated stages are the plan's stages")
