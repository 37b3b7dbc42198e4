#!/usr/bin/env python3
"""The module scopes that exporters write into the metadata of nodes: globs name modules, tables, traces and plans show them, and a partition that the
compiler writes names them, too."""

import json
import pathlib
import tempfile

from harness import BIN, REPOSITORY, Failure, compile_model, main, run, run_artifact
from vectors import fields

MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"
IMAGES = REPOSITORY / "examples" / "digits" / "digits.npy"
DIM = ("--dim", "batch=3")

# The modules around each node of the model, by what its name begins with.
MODULES = {"/conv1": "features.conv.0", "/conv2": "features.conv.1", "/conv3": "features.conv.2", "/fc": "classifier", "/Softmax": "classifier"}


def number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def block(field, data):
    return number(field << 3 | 2) + number(len(data)) + data


def encode(message):
    return b"".join(block(field, value) if isinstance(value, bytes) else number(field << 3) + number(value) for field, value in message)


def name_scopes(name):
    """What torch.onnx.export writes: the paths of the modules around the node, and the node."""
    module = next((module for begin, module in MODULES.items() if name.startswith(begin)), "")
    parts = module.split(".") if module else []
    return repr(["", *(".".join(parts[: i + 1]) for i in range(len(parts))), name.strip("/").lower()])


def add_scopes(model):
    """The bytes of a model whose nodes say their modules. Its messages must hold no fixed-size fields."""
    graph = []
    for field, value in fields(next(bytes(value) for field, value in fields(model) if field == 7)):
        if field == 1:  # a node: its metadata_props
            name = next(bytes(v).decode() for f, v in fields(value) if f == 3)
            entry = block(1, b"pkg.torch.onnx.name_scopes") + block(2, name_scopes(name).encode())
            value = bytes(value) + block(9, entry)
        graph.append((field, bytes(value) if not isinstance(value, int) else value))
    return encode((field, encode(graph) if field == 7 else value if isinstance(value, int) else bytes(value)) for field, value in fields(model))


def outputs(artifact, work):
    out = work / "out.npz"
    run_artifact(artifact, "--threads", "1", "--input", f"image={IMAGES}", "--output", out)
    return out.read_bytes()


def expect(condition, what):
    if not condition:
        raise Failure(what)


def check(work):
    model, one, split = work / "scoped.onnx", work / "one.partita", work / "split.partita"
    model.write_bytes(add_scopes(MODEL.read_bytes()))
    compile_model(model, one, *DIM)
    reference = outputs(one, work)

    nodes = json.loads(run([BIN / "partita-compile", model, *DIM, "--list-nodes", "--json"]))["nodes"]
    scopes = {node["name"]: node["scope"] for node in nodes}
    expect(scopes["/conv1/Conv"] == "features.conv.0" and scopes["/scale"] == "", f"--list-nodes: {scopes}")
    table = run([BIN / "partita-compile", model, *DIM, "--list-nodes"])
    expect("scope" in table.splitlines()[0] and "features.conv.2" in table, table)

    # Modules and nodes in one file; the same cut by names alone gives the same artifact.
    file, names = work / "modules.yaml", work / "names.yaml"
    file.write_text('blocks: {B1: ["/scale", "features.conv.[0-1]"], B2: ["features.conv.2.*", "/Flatten", classifier]}\nstages: [[B1], [B2]]\n')
    names.write_text('blocks: {B1: ["/scale", "/conv1/*", "/conv2/*"], B2: ["/conv3/*", "/Flatten", "/fc*", "/Softmax"]}\nstages: [[B1], [B2]]\n')
    by_names, written = work / "names.partita", work / "written.yaml"
    compile_model(model, split, *DIM, "--partition", file, "--emit-partition", written)
    compile_model(model, by_names, *DIM, "--partition", names)
    expect(split.read_bytes() == by_names.read_bytes(), "globs over modules cut elsewhere than globs over names")
    expect(outputs(split, work) == reference, "two stages by modules: not the bytes of one device")

    # What the compiler writes names modules, and says the same.
    text = written.read_text()
    expect('"B2": "features.conv.2"' in text, f"--emit-partition writes\n{text}")
    compile_model(model, by_names, *DIM, "--partition", written)
    expect(split.read_bytes() == by_names.read_bytes(), f"the partition file that the compiler wrote gives another artifact:\n{text}")

    file.write_text("begin_blocks: {A: /scale, B: features.conv.1, C: classifier}\n")
    compile_model(model, by_names, *DIM, "--partition", file)
    expect(outputs(by_names, work) == reference, "begin_blocks of modules: not the bytes of one device")
    file.write_text("begin_blocks: {A: /scale, B: clasifier}\n")
    status, said = compile_model(model, by_names, *DIM, "--partition", file, expect=None)
    expect(status == 1 and "no node or module is called 'clasifier'; did you mean 'classifier'?" in said, said)

    # The runtime shows them.
    expect("features.conv.0, features.conv.1" in run_artifact(split, "--plan"), "--plan shows no modules")
    trace = work / "trace.json"
    profile = json.loads(run_artifact(split, "--benchmark", "--runs", "2", "--warmup", "0", "--profile-table", "--profile", trace, "--json", alone=True))["profile"]
    found = {scope for row in profile["instructions"] for scope in row["scopes"]}
    expect({"features.conv.0", "features.conv.2", "classifier"} <= found, f"--profile-table: {found}")
    events = json.loads(trace.read_text())
    expect(events["stages"][1]["scopes"][0] == "features.conv.2", f"the legend of the trace: {events['stages']}")
    expect(any(event.get("args", {}).get("name") == "cpu:1: F1" for event in events["traceEvents"]), "the rows of the trace do not name their stages")
    expect(any(event.get("args", {}).get("modules") == "features.conv.0, features.conv.1" for event in events["traceEvents"]), "units have no modules")
    expect(any("features.conv.1" in event.get("args", {}).get("scopes", []) for event in events["traceEvents"]), "the trace shows no modules")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)), use_workers=True)
    print("modules are named, shown and written")
