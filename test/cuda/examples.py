"""Small models for GPUs: the examples of ops in test/unit/nn/examples, and those of test/cuda/shapes. Standard library only."""

import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "unit" / "nn" / "examples"
SHAPES = pathlib.Path(__file__).resolve().parent / "shapes"


def examples(folder=FOLDER):
    """The examples: (file, name, op, text of a module that computes it)."""
    for file in sorted(folder.glob("*.mlir")):
        before, *functions = re.split(r"^(?=func\.func )", file.read_text(), flags=re.M)
        weights = "".join(re.findall(r"^nn\.weight .*\n", before + "".join(functions), re.M))
        for text in functions:
            text = re.sub(r"^nn\.weight .*\n", "", text, flags=re.M)
            name = re.match(r"func\.func @(\w+)", text)[1]
            text = re.sub(r"^func\.func @\w+", "func.func @main", text)
            text = re.sub(r" attributes \{.*?\} \{$", " {", text, count=1, flags=re.M | re.S)
            # The op that makes the result.
            result = re.search(r"return (%\w+)", text)[1]
            op = re.search(re.escape(result) + r" = nn\.(\w+)", text)[1]
            yield file.stem, name, op, weights + text
