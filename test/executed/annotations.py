#!/usr/bin/env python3
"""ONNX's own annotations of devices: a model whose nodes name their stages, and the parts of tensors that devices have, is split so and gives the numbers
of one device; a partition file or a flag says otherwise; a wrong annotation is an error at its node. The model is written here, byte by byte, as a
protobuf message: ONNX's text form has no word for these annotations."""

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


def node(name, op, inputs, output, stage=None, shards=()):
    data = b"".join(field(1, value) for value in inputs) + field(2, output) + field(3, name) + field(4, op)
    if stage is not None or shards:  # device_configurations {configuration_id, sharding_spec, pipeline_stage}
        own = field(1, "two") + b"".join(field(2, shard(*each)) for each in shards)
        data += field(10, own + (field(3, stage) if stage is not None else b""))
    return field(1, data)  # GraphProto.node


def shard(tensor, dims, devices):
    """A ShardingSpecProto. `dims`: for each axis the number of shards, or [(size, shards)]; `devices`: for each shard a device, or a list of some."""
    data = field(1, tensor)
    for i, device in enumerate(devices):
        data += field(2, device if isinstance(device, int) else (1 << 64) - 1 - i)
    for i, device in enumerate(devices):
        if not isinstance(device, int):  # index_to_device_group_map {key, value}
            data += field(3, field(1, (1 << 64) - 1 - i) + b"".join(field(2, each) for each in device))
    for axis, parts in dims.items():
        simple = [(None, parts)] if isinstance(parts, int) else parts
        entries = b"".join(field(2, (field(1, size) if size else b"") + field(3, count)) for size, count in simple)
        data += field(4, field(1, axis % (1 << 64)) + entries)
    return data


def port(number, name):
    shape = b"".join(field(1, field(1, size)) for size in (ROWS, WIDTH))
    return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, shape))))


def weight_bytes(seed):
    noise = random.Random(seed)
    return struct.pack(f"<{WIDTH * WIDTH}f", *(noise.randrange(-16, 17) / 16 for _ in range(WIDTH * WIDTH)))


def weight(name, seed, file=None):
    """An initializer: with its values, or with their place in a file of all weights."""
    data = weight_bytes(seed)
    places = {"location": file, "offset": str(seed * len(data)), "length": str(len(data))}
    values = b"".join(field(13, field(1, key) + field(2, text)) for key, text in places.items()) + field(14, 1) if file else field(9, data)
    return field(5, field(1, WIDTH) + field(1, WIDTH) + field(2, 1) + field(8, name) + values)


def model(stages, shards=None, configurations=(("two", 2),), file=None):
    """Three layers; `stages` gives the stage of some nodes, `shards` how tensors of some nodes lie on devices."""
    shards = shards or {}
    nodes = [("dot1", "MatMul", ["x", "u"], "a"), ("tanh1", "Tanh", ["a"], "b"), ("dot2", "MatMul", ["b", "v"], "c"),
             ("tanh2", "Tanh", ["c"], "d"), ("dot3", "MatMul", ["d", "w"], "y")]
    graph = b"".join(node(*parts, stages.get(parts[0]), shards.get(parts[0], ())) for parts in nodes) + field(2, "g")
    graph += b"".join(weight(name, seed, file) for seed, name in enumerate("uvw")) + port(11, "x") + port(12, "y")
    configuration = b"".join(field(26, field(1, name) + field(2, devices)) for name, devices in configurations)
    return field(1, 11) + field(8, field(1, "") + field(2, 21)) + field(7, graph) + configuration


def outputs(artifact, folder):
    out = folder / "out.npz"
    run_artifact(artifact, "--threads", "1", "--input", f"x={folder / 'x.npy'}", "--output", out)
    return out.read_bytes()


def compile_json(path, artifact, *flags):
    return json.loads(compile_model(path, artifact, "--json", "--quiet", *flags))


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


FOUR = (("two", 4),)
# What is annotated: stages, shards, configurations; and the axes, and places of stages, that the compiler must find.
SHARDED = {
    "two stages of two shards": (
        {"dot1": 0, "dot3": 1},
        {"dot1": [("u", {1: 2}, [0, 1])], "dot2": [("v", {0: 2}, [0, 1])], "dot3": [("w", {-1: 2}, [2, 3])]}, FOUR,
        'mesh: {"stage": 2, "tensor": 2}', "devices: [0, 1]"),
    "devices of stages in turn, and the second stage first": (
        {"dot1": 0, "dot3": 1},
        {"dot1": [("u", {1: 2}, [1, 3])], "dot3": [("w", {1: [(8, 2)]}, [0, 2]), ("y", {}, [[0, 2]])]}, FOUR,
        'mesh: {"tensor": 2, "stage": 2}', "devices: [1, 0]"),
    "one stage, two axes": (
        {}, {"dot1": [("u", {0: 2, 1: 2}, [0, 1, 2, 3])], "dot2": [("v", {0: 2}, [[0, 2], [1, 3]])], "dot3": [("w", {1: 2}, [[0, 1], [2, 3]])]}, FOUR,
        'mesh: {"stage": 1, "tensor_0": 2, "tensor_1": 2}', "devices: [0]"),
    "a dimension of two, each of which is cut": (
        {}, {"dot1": [("u", {1: [(2, 1), (4, 2)]}, [0, 1])]}, (("two", 2),), '"u": [null, {"tensor": 2}]', "devices: [0]"),
    "no devices": (
        {"dot1": 0, "dot3": 1}, {"dot1": [("u", {1: 2}, [])], "dot3": [("w", {0: 2}, [])]}, FOUR, 'mesh: {"stage": 2, "tensor": 2}', "devices: [0, 1]"),
    "an activation that is gathered, and another one that is cut": (
        {}, {"dot1": [("u", {1: 2}, [0, 1]), ("a", {}, [[0, 1]])], "tanh2": [("d", {1: 2}, [0, 1])]}, (("two", 2),),
        'mesh: {"stage": 1, "tensor": 2}', "devices: [0]"),
}
# What is wrong, and what the error says.
WRONG = {
    "an axis": ({}, {"dot1": [("u", {2: 2}, [0, 1])]}, (("two", 2),), "node 'dot1': the sharding of tensor 'u': axis 2 does not exist: it has 2 dimensions"),
    "an axis twice": ({}, {"dot1": [("u", {1: 2, -1: 2}, [0, 1, 2, 3])]}, FOUR, "axis 1 is there twice"),
    "a tensor": ({}, {"dot1": [("v", {1: 2}, [0, 1])]}, (("two", 2),), "node 'dot1': it shards the tensor 'v', which is neither an input nor an output"),
    "fewer devices than shards": ({}, {"dot1": [("u", {1: 4}, [0, 1])]}, FOUR, "it has 4 shards, and 2 devices or groups of devices"),
    "no shard": ({}, {"dot1": [("u", {1: [(8, 0)]}, [0])]}, FOUR, "axis 1 is cut into 0 shards"),
    "a device": ({}, {"dot1": [("u", {1: 2}, [0, 2])]}, (("two", 2),), "device 2 does not exist: the configuration 'two' has 2"),
    "a device twice": ({}, {"dot1": [("u", {1: 2}, [1, 1])]}, (("two", 2),), "device 1 is there twice"),
    "a size": ({}, {"dot1": [("u", {1: [(9, 2)]}, [0, 1])]}, (("two", 2),), "axis 1 has the size 8, not 9"),
    "too many parts": ({}, {"dot1": [("u", {1: [(4, 1), (2, 3)]}, [0, 1, 2])]}, (("two", 3),), "has the size 8, which cannot be cut into 12 equal parts"),
    "parts of several sizes in two dimensions": (
        {}, {"dot1": [("u", {1: [(2, 2), (4, 3)]}, [0, 1, 2, 3, 4, 5])]}, (("two", 6),), "one of the size 4, which does not divide into 3"),
    "a part of a stage's devices": (
        {}, {"dot1": [("u", {1: 2}, [0, 1])], "dot2": [("v", {1: 2}, [2, 3])]}, FOUR, "it is on devices 0, 1, and stage 0 on devices 0, 1, 2, 3"),
    "stages of several sizes": (
        {"dot1": 0, "dot3": 1}, {"dot1": [("u", {1: 2}, [0, 1])], "dot3": [("w", {}, [2])]}, FOUR, "all stages have equally many devices"),
    "devices against their order": ({}, {"dot1": [("u", {1: 2}, [1, 0])]}, (("two", 2),), "its parts do not lie on devices 0, 1 as on a mesh"),
    "two meshes": (
        {}, {"dot1": [("u", {1: 2}, [[0, 1, 2], [3, 4, 5]])], "dot2": [("v", {0: 3}, [[0, 1], [2, 3], [4, 5]])]}, (("two", 6),),
        "node 'dot2': the sharding of tensor 'v': it does not fit into one mesh with tensor 'u' of node 'dot1'"),
    "a configuration": ({"dot1": 0}, {}, (("three", 2),), "annotated for the device configuration 'two', which the model does not have: it has 'three' (2 devices)"),
    "several configurations": ({"dot1": 0}, {}, (("two", 2), ("three", 1)), "name one with --configuration: it has 'two' (2 devices), 'three' (1 device)"),
    "no devices at all": ({"dot1": 0}, {}, (("two", 0),), "the device configuration 'two' has 0 devices"),
}


def check_shards(folder):
    path, artifact, cut = folder / "model.onnx", folder / "model.partita", folder / "cut.yaml"
    path.write_bytes(model({}, configurations=()))
    compile_model(path, artifact)
    reference = folder / "one.npz"
    reference.write_bytes(outputs(artifact, folder))
    for name, (stages, shards, configurations, mesh, devices) in SHARDED.items():
        path.write_bytes(model(stages, shards, configurations))
        text = compile_model(path, artifact, "--emit-partition", cut)
        if mesh not in cut.read_text() or devices not in cut.read_text() or "not taken" in text:
            raise Failure(f"{name}: not {mesh} and {devices}, but\n{cut.read_text()}{text}")
        run_artifact(artifact, "--threads", "1", "--input", f"x={folder / 'x.npy'}", "--compare", reference, "--rtol", "1e-5", "--atol", "1e-6")
    for name, (stages, shards, configurations, message) in WRONG.items():
        path.write_bytes(model(stages, shards, configurations))
        (folder / "none.partita").unlink(missing_ok=True)
        text = compile_model(path, folder / "none.partita", "--emit-onnx", folder / "none.onnx", expect=1)
        if message not in text or (folder / "none.partita").exists() or (folder / "none.onnx").exists():
            raise Failure(f"{name}: not '{message}', but\n{text}")


def check_choice(folder):
    """Several configurations, and what comes before annotations."""
    path, artifact = folder / "model.onnx", folder / "model.partita"
    path.write_bytes(model({"dot1": 0, "dot3": 1}, configurations=(("two", 2), ("three", 3))))
    if len(compile_json(path, artifact, "--configuration", "two")["stages"]) != 2:
        raise Failure("--configuration two: not two stages")
    text = compile_model(path, artifact, "--configuration", "three")
    if "the device configuration 'three' has 3 devices, and no node says what they compute" not in text:
        raise Failure(f"a configuration of which no node speaks:\n{text}")
    for flags, message in (
        (["--configuration", "four"], "has no device configuration 'four': it has 'two' (2 devices), 'three' (3 devices)"),
        (["--configuration", "two", "--devices", "2"], "--configuration and --devices contradict each other"),
    ):
        if message not in (text := compile_model(path, artifact, *flags, expect=1)):
            raise Failure(f"{flags}: not '{message}', but\n{text}")
    for flags in (["--devices", "3"], ["--tensor-parallel", "2"], ["--stages", "3"]):
        text = compile_model(path, artifact, *flags)
        if f"are not taken: {flags[0]} says how it is split" not in text:
            raise Failure(f"{flags} before annotations, without a remark:\n{text}")
    # Replicas are not of what annotations say.
    path.write_bytes(model({"dot1": 0, "dot3": 1}))
    text = compile_model(path, artifact, "--data-parallel", "2")
    if not all(device in text for device in ("cpu:0, cpu:2", "cpu:1, cpu:3")):
        raise Failure(f"--data-parallel 2 with two annotated stages:\n{text}")


def check_writing(folder):
    """Where the annotated model may be written, and what is left after a failure."""
    path, artifact, written = folder / "model.onnx", folder / "model.partita", folder / "written.onnx"
    path.write_bytes(model({"dot1": 0, "dot3": 1}))
    before = path.read_bytes()
    names = lambda: sorted(file.name for file in folder.iterdir())
    known = names()
    for flags, message in (
        (["--emit-onnx", path], "it is the model that is compiled; name another file"),
        (["--emit-onnx", folder / "no" / "written.onnx"], "No such file or directory"),
        (["--emit-onnx", artifact], "--emit-onnx and --output name the same file"),
        (["--emit-onnx", written, "--emit", "nn"], "writes the decision, and none is made"),
    ):
        if message not in (text := compile_model(path, artifact, *flags, expect=1)) or names() != known or path.read_bytes() != before:
            raise Failure(f"{flags}: not '{message}', or files were left: {names()}\n{text}")
    # Weights in another file.
    inside = folder / "inside"
    inside.mkdir()
    (inside / "weights.bin").write_bytes(b"".join(weight_bytes(seed) for seed in range(3)))
    (inside / "model.onnx").write_bytes(model({"dot1": 0, "dot3": 1}, file="weights.bin"))
    compile_model(path, artifact)
    expected = outputs(artifact, folder)
    for target in (inside / "written.onnx", folder / "written.onnx"):
        compile_model(inside / "model.onnx", artifact, "--emit-onnx", target)
        if outputs(artifact, folder) != expected:
            raise Failure("weights in another file: other numbers")
        compile_model(target, artifact)
        if outputs(artifact, folder) != expected:
            raise Failure(f"{target}: other numbers than the model's")
        target.unlink()
    (folder / "beside").mkdir()
    text = compile_model(inside / "model.onnx", artifact, "--emit-onnx", folder / "beside" / "written.onnx", expect=1)
    if "the model has weights in 'weights.bin'" not in text or list((folder / "beside").iterdir()):
        raise Failure(f"weights that cannot be named from there:\n{text}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        def everything():
            folder = pathlib.Path(work)
            check(folder)
            check_shards(folder)
            check_choice(folder)
            check_writing(folder)
        main(everything, use_workers=True)
    print(f"annotated stages are the plan's stages; {len(SHARDED)} shardings give the numbers of one device, {len(WRONG)} are errors")
