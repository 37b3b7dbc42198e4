#!/usr/bin/env python3
"""docs/train.schema.json and docs/training-file.md have the keys, the kinds and the settings that partita-compile --train knows, and the schema takes the files
that it takes. Files are written as JSON, which is YAML.

    train-schema.py PARTITA_COMPILE
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"
READER = REPOSITORY / "compiler" / "train" / "TrainFile.cpp"
SCHEMA = json.loads((REPOSITORY / "docs" / "train.schema.json").read_text())

LOSS = {"kind": "cross_entropy", "output": "probabilities"}
COSINE = {"kind": "cosine", "steps": 100, "warmup": 10, "final": 3e-5}

# What is put beside a loss. All of the first are right, and all of the second are wrong.
RIGHT = (
    {"reduction": "sum"}, {"freeze": "*bias"}, {"train_only": ["*weight", "*bias"]}, {"clip_norm": 0}, {"clip_norm": 1.5}, {"micro_batches": 3},
    {"recompute": "none"}, {"recompute": "full", "recompute_nodes": "*"}, {"recompute_nodes": []}, {"optimizer_state": "host"}, {"on_nonfinite": "skip"}, {"mixed_precision": "bf16"},
    {"loss": "cross_entropy:probabilities"}, {"loss": {**LOSS, "labels": "label", "ignore_index": -1, "label_smoothing": 0.1, "reduction": "sum", "axis": 1}},
    {"loss": {"kind": "huber", "output": "probabilities", "target": "values", "delta": 2}},
    {"optimizer": "sgd,momentum=0.9"}, {"optimizer": {"kind": "sgd", "momentum": 0.9, "nesterov": True}}, {"optimizer": {"kind": "sgd", "dampening": 0.1, "momentum": 0.5}},
    {"optimizer": {"kind": "adam", "betas": [0.9, 0.95], "eps": 1e-6}}, {"optimizer": {"kind": "adamw", "learning_rate": 0.01, "weight_decay": 0}},
    {"optimizer": {"kind": "adagrad", "learning_rate_decay": 0.1, "initial_accumulator": 0.1}},
    {"groups": []}, {"groups": [{"parameters": "*bias", "weight_decay": 0}, {"parameters": ["*"], "learning_rate": 0.1, "betas": [0.5, 0.9]}]},
    {"schedule": "constant"}, {"schedule": "linear,steps=10"}, {"schedule": COSINE}, {"schedule": {"kind": "step", "every": 10, "factor": 0.5}},
    {"schedule": {"kind": "wsd", "steps": 100, "decay": 20}}, {"scale": {}}, {"scale": {"image": {"divide": 255, "mean": -0.5, "std": 0.3}}},
    {"eval_mode": []}, {"init": {}}, {"init": {"*weight": "default", "*bias": {"kind": "normal", "std": 0.02}}}, {"init": {"*": "uniform,low=-1"}},
    {"init": {"*": {"kind": "uniform", "low": -1, "high": 0}}}, {"init": {"*": {"kind": "constant", "value": 1}}}, {"init": {"*": {"kind": "normal", "mean": -1}}},
)
WRONG = (
    {"nonsense": 1}, {"reduction": "median"}, {"freeze": {"a": 1}}, {"clip_norm": -1}, {"clip_norm": "much"}, {"micro_batches": 0}, {"micro_batches": 1.5},
    {"recompute": "most"}, {"recompute": ["full"]}, {"optimizer_state": "disk"}, {"on_nonfinite": "ignore"}, {"mixed_precision": "f16"}, {"recompute_nodes": {"a": 1}},
    {"loss": {"kind": "cross_entropy"}}, {"loss": {"output": "probabilities"}}, {"loss": {**LOSS, "kind": "nonsense"}}, {"loss": {**LOSS, "nonsense": 1}}, {"loss": [1]},
    {"loss": {**LOSS, "label_smoothing": 2}}, {"loss": {"kind": "huber", "output": "probabilities", "delta": 0}},
    {"optimizer": {"learning_rate": 1}}, {"optimizer": {"kind": "nonsense"}}, {"optimizer": {"kind": "adamw", "nonsense": 1}}, {"optimizer": {"kind": "adam", "betas": [0.9, 1]}},
    {"optimizer": {"kind": "adam", "betas": [0.9]}}, {"optimizer": {"kind": "adam", "learning_rate": -1}}, {"optimizer": {"kind": "sgd", "momentum": 0.9, "nesterov": "maybe"}},
    {"groups": {}}, {"groups": [{"weight_decay": 0}]}, {"groups": [{"parameters": "*", "nonsense": 0}]},
    {"schedule": {"kind": "nonsense"}}, {"schedule": {**COSINE, "warmup": -1}}, {"schedule": {**COSINE, "nonsense": 1}}, {"schedule": {**COSINE, "final": "low"}},
    {"scale": 3}, {"scale": {"image": {"divide": 0}}}, {"scale": {"image": {"std": 0}}}, {"scale": {"image": {"nonsense": 1}}}, {"scale": {"image": {"mean": "low"}}},
    {"eval_mode": {"a": 1}}, {"init": "default"}, {"init": {"*": 3}}, {"init": {"*": {"std": 1}}}, {"init": {"*": {"kind": "nonsense"}}}, {"init": {"*": {"kind": "normal", "std": -1}}},
    {"init": {"*": {"kind": "normal", "nonsense": 1}}}, {"init": {"*": {"kind": "constant", "value": "much"}}},
)

TYPES = {"string": str, "object": dict, "array": list, "boolean": bool, "integer": int, "number": (int, float)}


def properties_of(schema):
    """Those of what it refers to as well."""
    found = dict(schema.get("properties", {}))
    if "$ref" in schema:
        found.update(properties_of(resolve(schema["$ref"])))
    return found


def resolve(reference):
    return SCHEMA["$defs"][reference.removeprefix("#/$defs/")]


def fits(value, schema):
    """Whether a schema allows a value: the part of JSON Schema that ours uses."""
    if isinstance(value, bool) and schema.get("type") in ("integer", "number"):
        return False
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        return False
    if "$ref" in schema and not fits(value, resolve(schema["$ref"])):
        return False
    if "anyOf" in schema and not any(fits(value, each) for each in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, dict):
        own, others = properties_of(schema), schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
        if any(key not in value for key in schema.get("required", ())) or len(value) < schema.get("minProperties", 0):
            return False
        for key, entry in value.items():
            if key in own and not fits(entry, own[key]):
                return False
            if key not in own and (others is False or (isinstance(others, dict) and not fits(entry, others))):
                return False
    if isinstance(value, list):
        return schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)) and all(fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, (int, float)):
        return (value >= schema.get("minimum", value) and value <= schema.get("maximum", value)
                and not ("exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"])
                and not ("exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]))
    return True


def said_of(compiler, text):
    """The error about a file; empty if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "train.yaml"
        file.write_text(text)
        done = subprocess.run([compiler, MODEL, "--dim", "batch=1", "--train", file, "--list-parameters"], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def listed(compiler, document, pattern):
    """The names of a list in the error about a file."""
    said = said_of(compiler, json.dumps(document))
    found = re.search(pattern, said)
    if not found:
        sys.exit(f"no list in: {said}")
    return re.findall(r"\w+", found[1])


def check_names(compiler, page):
    """What the compiler lists, and what its reader asks for, is in the schema and on the page."""
    parts = {key: next((each for each in entry.get("anyOf", ()) if each.get("type") == "object"), entry) for key, entry in SCHEMA["properties"].items()}
    reader = READER.read_text()
    body = reader[reader.index("bool readKey(") : reader.index("std::string readChoice(")]
    settings = set()
    for kind in listed(compiler, {"optimizer": "nonsense"}, r"there are ([\w, ]+)"):
        settings |= set(listed(compiler, {"optimizer": f"{kind},nonsense=1"}, r"its settings are ([\w, ]+)"))
    pairs = {
        "keys": (re.findall(r'key == "(\w+)"', body), SCHEMA["properties"]),
        "losses": (listed(compiler, {"loss": "nonsense:y"}, r"one of ([\w, ]+)"), parts["loss"]["properties"]["kind"]["enum"]),
        "optimizers": (listed(compiler, {"optimizer": "nonsense"}, r"there are ([\w, ]+)"), parts["optimizer"]["properties"]["kind"]["enum"]),
        "schedules": (listed(compiler, {"schedule": "nonsense"}, r"there are ([\w, ]+)"), parts["schedule"]["properties"]["kind"]["enum"]),
        "initial values": (listed(compiler, {"init": {"*": "nonsense"}}, r"there are ([\w, ]+)"), SCHEMA["properties"]["init"]["additionalProperties"]["anyOf"][1]["properties"]["kind"]["enum"]),
        "settings": (settings, SCHEMA["$defs"]["settings"]["properties"]),
    }
    for what, (known, shown) in pairs.items():
        if set(known) != set(shown):
            yield f"{what}: the schema has {sorted(shown)}, the compiler {sorted(known)}"
        if what in ("keys", "settings"):
            yield from (f"the page has no row for {key}" for key in sorted(known) if f"| `{key}` |" not in page)
        else:
            yield from (f"the page does not name {name}" for name in known if f"`{name}`" not in page)


def check_documents(compiler):
    for documents, is_right in ((RIGHT, True), (WRONG, False)):
        for document in documents:
            document = {"loss": LOSS, **document}
            said = said_of(compiler, json.dumps(document))
            if fits(document, SCHEMA) != is_right:
                yield f"the schema takes {json.dumps(document)}, which is wrong" if not is_right else f"the schema does not take {json.dumps(document)}"
            if bool(said) == is_right:
                yield f"the compiler says of {json.dumps(document)}: {said or 'nothing'}"


def check_examples(compiler, page):
    """The files that the page shows, and those of the examples; about the output of the model at hand."""
    shown = re.findall(r"(?m)(?:^    (?! *partita-|model).*\n)+", page)
    shown = [re.sub("(?m)^    ", "", text) for text in shown if text.startswith("    loss:")]
    if len(shown) < 2:
        yield "the page shows no files"
    for text in [*shown, *(path.read_text() for path in sorted((REPOSITORY / "examples").glob("*/train.yaml")))]:
        if said := said_of(compiler, re.sub(r"output: \w+", "output: probabilities", text)):
            yield f"the compiler says of\n{text}{said}"


def main():
    compiler, page = sys.argv[1], (REPOSITORY / "docs" / "training-file.md").read_text()
    wrong = [*check_names(compiler, page), *check_documents(compiler), *check_examples(compiler, page)]
    for text in wrong:
        print(text)
    print(f"{len(RIGHT) + len(WRONG)} files" if not wrong else f"{len(wrong)} differences")
    sys.exit(1 if wrong else 0)


main()
