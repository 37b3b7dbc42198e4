#!/usr/bin/env python3
"""What `--explain` suggests is true: written into the partition file, it spares the collective, and there is no other one instead. Small sums that are combined
give the bits that they have apart. --tensor-parallel alone cuts transformers well."""

import json
import pathlib
import re
import sys
import tempfile

from harness import BIN, REPOSITORY, Failure, compile_model, main, run, run_artifact
from sharding import CASES, graph, partition, write_inputs

sys.path.append(str(REPOSITORY / "test" / "bench"))

REMARK = re.compile(r"(partial sums|parts) of '(.*?)' are (?:joined|exchanged|gathered)(?: for '.*?')?: each device sends .*?; to spare that, (.*?): by prediction")
MACHINE = REPOSITORY / "test" / "tools" / "partita-compile" / "Inputs" / "machine.json"


def collectives(model, artifact, *flags):
    """What the plan says of them."""
    return json.loads(run([BIN / "partita-compile", model, "-o", artifact, "--json", "--quiet", "--no-optimize", *flags]))["collectives"]


def apply(text, change):
    """The mesh of a partition file, with other cuts. Blocks may name the part of an input that is cut, which may be whole then."""
    text = text[text.index("mesh:"):]
    cuts = [(name, int(dim)) for name, dim in re.findall(r"cut '([^']*)' along dimension (\d+)", change)]
    cuts += [(name, None) for names in re.findall(r"keep (.*) whole", change) for name in re.findall(r"'([^']*)'", names)]
    for name, dim in cuts:
        entry = re.search(rf'^  "{re.escape(name)}": \[(.*)\]$', text, re.M)
        if not entry:
            raise Failure(f"'{name}' of '{change}' is not in the file:\n{text}")
        axes = ["null"] * len(entry[1].split(", "))
        if dim is not None:
            axes[dim] = '"tensor"'
        text = text.replace(entry[0], f'  "{name}": [{", ".join(axes)}]')
    return text


def check_suggestions(work):
    count = 0
    for name in ("two layers", "images", "attention over heads, of a weight of three parts", "an embedding, a norm, a head", "moved elements"):
        inputs, outputs, weights, nodes, constants, more = CASES[name]
        model, split, emitted, artifact = (work / file for file in ("m.onnxtxt", "split.yaml", "emitted.yaml", "m.partita"))
        model.write_text(graph(inputs, outputs, weights, nodes, constants))
        first, *_ = weights
        for shard in [*more, *(f"{{{w}: [{', '.join('tensor' if i == d else 'null' for i in range(len(s)))}]}}"
                               for w, s in weights.items() for d in range(len(s)) if s[d] % 2 == 0)]:
            split.write_text(partition({"tensor": 2}, shard))
            text = compile_model(model, artifact, "--dim", "n=2", "--partition", split, "--emit-partition", emitted, "--explain")
            before = collectives(model, artifact, "--dim", "n=2", "--partition", emitted)
            for what, node, change in REMARK.findall(text):
                split.write_text(apply(emitted.read_text(), change))
                after = collectives(model, artifact, "--dim", "n=2", "--partition", split)
                if len(after) >= len(before) or not {c["kind"] for c in after} <= {c["kind"] for c in before}:
                    raise Failure(f"{name}: {shard}: '{change}' at '{node}' leaves {len(after)} of {len(before)} collectives\n{text}\n{after}")
                count += 1
    if count < 10:
        raise Failure(f"there were only {count} suggestions")
    print(f"{count} suggestions spare a collective each")


def check_combined(work):
    """Three sums of little, on a machine whose collectives take long to begin."""
    inputs = {"x": "float[n,12]"}
    outputs = {f"y{i}": f"float[n,{size}]" for i, size in enumerate((5, 8, 3))}
    weights = {f"w{i}": (12, size) for i, size in enumerate((5, 8, 3))}
    nodes = [line for i in range(3) for line in (f"[a{i}] a{i} = MatMul(x, w{i})", f"[y{i}] y{i} = Sigmoid(a{i})")]
    model, split, artifact = (work / file for file in ("c.onnxtxt", "c.yaml", "c.partita"))
    model.write_text(graph(inputs, outputs, weights, nodes))
    flags = write_inputs(work, inputs)
    machine = json.loads(MACHINE.read_text())
    for devices in (2, 3, 4):
        split.write_text(partition({"tensor": devices}, '{"w*": [tensor, null]}'))
        found = []
        for latency, expected in ((1, 3), (1e6, 1)):
            for team in machine["teams"]:
                team["tables"]["collective"]["values"] = [latency, latency + 1]
            slow = work / f"latency-{latency:g}.json"  # a process reads a machine file once
            slow.write_text(json.dumps(machine))
            plan = collectives(model, artifact, "--dim", "n=2", "--partition", split, "--machine", slow)
            if [c["kind"] for c in plan] != ["all_reduce"] * expected:
                raise Failure(f"{devices} devices: {len(plan)} collectives where {expected} were expected: {plan}")
            result = work / "c.npz"
            run_artifact(artifact, *flags, "--threads", "1", "--output", result)
            found.append(result.read_bytes())
            for ranks in (0, devices):
                run_artifact(artifact, *flags, "--threads", "1", "--compare", result, "--rtol", "0", "--atol", "0", ranks=ranks)
        if found[0] != found[1]:
            raise Failure(f"{devices} devices: combined sums have other bits")
    print("combined sums have the same bits")


def check_transformers(work):
    """Decoders and encoders that --tensor-parallel alone cuts: two sums a layer, as when somebody who knows them cuts them, and what makes the output whole."""
    try:
        import onnx
        from language_models import Bert, Gpt2
    except ImportError as missing:
        print(f"transformers are left out: {missing}")
        return
    layers = 2
    for kind in (Gpt2, Bert):
        model = work / "t.onnx"
        onnx.save(kind(layers, 768, 128, 3000, seed=1).model, model)
        for devices in (2, 3):
            kinds = [c["kind"] for c in collectives(model, work / "t.partita", "--dim", "batch=1", "--tensor-parallel", devices)]
            if kinds.count("all_reduce") != 2 * layers or len(kinds) > 2 * layers + 1:
                raise Failure(f"{kind.__name__} over {devices} devices: {kinds}")
    print("transformers are cut with two sums a layer")


def check():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_suggestions(work)
        check_combined(work)
        check_transformers(work)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
