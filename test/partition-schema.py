#!/usr/bin/env python3
"""docs/partition.schema.json and docs/partition-file.md have the keys and the schedules that partita-compile knows, which it lists where it finds another.

    partition-schema.py PARTITA_COMPILE
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"


def known(compiler, text):
    """The list in brackets of the error about a partition file."""
    with tempfile.TemporaryDirectory() as folder:
        split = pathlib.Path(folder) / "split.yaml"
        split.write_text(text)
        said = subprocess.run([compiler, MODEL, "--dim", "batch=1", "--partition", split, "-o", f"{folder}/x.partita"], capture_output=True, text=True).stderr
    found = re.search(r"unknown (?:key|schedule|auto_stage|strategy) '\w+' \(([^)]*)\)", said)
    if not found:
        sys.exit(f"no list in: {said}")
    return found[1].split(", ")


def main():
    compiler = sys.argv[1]
    properties = json.loads((REPOSITORY / "docs" / "partition.schema.json").read_text())["properties"]
    page = (REPOSITORY / "docs" / "partition-file.md").read_text()
    wrong = []
    keys = known(compiler, "nonsense: 1")
    if set(keys) != set(properties):
        wrong.append(f"the schema has {sorted(properties)}, the compiler {sorted(keys)}")
    wrong += [f"the page has no row for {key}" for key in keys if f"| `{key}` |" not in page]
    for key in ("schedule", "auto_stage", "strategy"):
        if (names := known(compiler, f"{key}: nonsense")) != properties[key]["enum"]:
            wrong.append(f"{key}: the schema has {properties[key]['enum']}, the compiler {names}")
        wrong += [f"the page does not name {name}" for name in known(compiler, f"{key}: nonsense") if f"`{name}`" not in page]
    for text in wrong:
        print(text)
    print(f"{len(keys)} keys" if not wrong else f"{len(wrong)} differences")
    sys.exit(1 if wrong else 0)


main()
