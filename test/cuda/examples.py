"""Small models for GPUs: the examples of ops in test/unit/nn/examples, and those of test/cuda/shapes. Standard library only."""

import itertools
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "unit" / "nn" / "examples"
SHAPES = pathlib.Path(__file__).resolve().parent / "shapes"
# Shapes in the place of those of the examples, by file. Pointwise ops: as many elements as threads take in vectors of 16 bytes, and a number that no vector
# divides. Others: rows for a warp, and for a block.
LARGE = (("pointwise", "2x6x", "512x512x"), ("pointwise", "2x6x", "513x517x"), ("reduction", "4x6x2x", "4x1500x2x"), ("reduction", "4x5x6x", "3x67x701x"),
         ("reduction", "4x5x6x", "3x5x3001x"), ("reduction", "4x6xi32", "64x513xi32"), ("ordered", "6x10x", "6x601x"), ("ordered", "4x5x6x", "4x131x6x"))


def of_type(text, old, new):
    """A module with other element types."""
    return re.sub(rf"\b{old}\b|(?<=x){old}\b", new, text)


def large():
    """Examples of large tensors: (name, op, text)."""
    for (file, name, op, text), (where, old, new) in itertools.product(examples(), LARGE):
        if file == where and old in text:
            yield f"{name}-{new}", op, text.replace(old, new)


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
