"""Weights of a model that are cut over devices, drawn by a seed, and the partition file that says so: the compiler finds no reason to cut small models.
Standard library only."""

import collections
import math
import re

from harness import Failure, compile_model
from vectors import dims_of, fields

LEAST_ELEMENTS = 8


def text_of_field(message, wanted):
    return next((value.decode() for number, value in fields(message) if number == wanted), "")


def weights_of(path):
    """Names and shapes of the initializers and constants that may be cut."""
    tensors, constants = {}, {}
    for number, graph in fields(path.read_bytes()):
        for kind, message in fields(graph) if number == 7 else ():
            if kind == 5:
                tensors[text_of_field(message, 8)] = dims_of(message)
            elif kind == 1 and text_of_field(message, 4) == "Constant":
                attributes = [value for field, value in fields(message) if field == 5]
                values = [value for each in attributes if text_of_field(each, 1) == "value" for field, value in fields(each) if field == 5]
                constants.update({text_of_field(message, 2): dims_of(value) for value in values})
    return {name: dims for name, dims in {**tensors, **constants}.items() if dims and math.prod(dims) >= LEAST_ELEMENTS}


def draw(weights, noise, devices):
    """Some weights, each with the dimension along which it is cut."""
    shards = {}
    for name, dims in weights.items():
        fitting = [d for d, size in enumerate(dims) if size >= devices]
        if devices > 1 and fitting and noise.random() < 0.4:
            shards[name] = noise.choice(fitting)
    return shards


def glob_of(name):
    return re.sub(r"([\[\]*?{}\\])", r"\\\1", name)


def quoted(name):
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def text_of(mesh, shards, weights, more="", batches=2):
    """A partition file. `more`: lines that it begins with."""
    text = f"{more}mesh: {{{', '.join(f'{axis}: {size}' for axis, size in mesh.items())}}}\nmicro_batches: {batches}\n"
    if shards:
        text += "shard:\n"
    for name, dim in shards.items():
        entry = ["null"] * len(weights[name])
        entry[dim] = "tensor"
        text += f"  {quoted(glob_of(name))}: [{', '.join(entry)}]\n"
    return text


FOLDED = collections.defaultdict(set)  # by model and flags: names that the compiler did not know


def compile_sharded(model, artifact, flags, split, mesh, shards, weights, more=""):
    """Compiles with a partition file that is written to `split`. Weights that have folded away cannot be named: they are left out. A model that combines
    samples has one micro-batch, and none to deal out: `mesh` loses its replicas then."""
    batches, folded = 2, FOLDED[model, tuple(flags)]
    for name in folded & shards.keys():
        del shards[name]
    while True:
        split.write_text(text_of(mesh, shards, weights, more, batches))
        status, text = compile_model(model, artifact, "--partition", split, *flags, "--quiet", expect=None)
        if status == 0:
            return shards
        if batches > 1 and "the model is computed whole" in text:
            batches = 1
            continue
        if mesh.get("data", 1) > 1 and "and there is one alone" in text:
            mesh["data"] = 1
            continue
        gone = re.search(r"no weight and no input matches '(.*?)'(?:;|\n|$)", text)
        name = gone and next((n for n in shards if glob_of(n) == gone[1]), None)
        if not name:
            raise Failure(f"{model}: {mesh} {shards}\n{text}")
        folded.add(name)
        del shards[name]
