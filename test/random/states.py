#!/usr/bin/env python3
"""Random models, some of whose tensors go on from what they were a step before: compiled with states (partita-compile --state), in ways that a seed draws, and
without, where this program hands the states around. Three steps, twice, with states made 0 between: outputs must be the same but for rounding. Where a step
can have several micro-batches, each goes on from its own states.

    states.py                         the bounded run of the test command
    states.py --models 500 --first S  more

On the kind of devices that PARTITA_TEST_TARGET says. A model that without states cannot be compiled, or ends with an error, says nothing. Exit status 1 if something differs, 77 if NumPy or ONNX is not installed.
"""

import argparse
import itertools
import os
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path += [str(HERE.parent / "worker"), str(REPOSITORY / "runtime" / "python")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

from worker import BIN, Worker, scratch_root  # noqa: E402

os.environ.setdefault("PARTITA_LIBRARY", str(BIN.parent / "lib" / "libpartita.so"))

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (tools/setup.sh installs it)")
    sys.exit(77)

import partita  # noqa: E402
from generate import generate  # noqa: E402
from run import cpu_level  # noqa: E402

STEPS = 3
TARGET = ("--target", os.environ["PARTITA_TEST_TARGET"]) if "PARTITA_TEST_TARGET" in os.environ else ()
WAYS = ([], ["--devices", "2"], ["--devices", "3"], ["--tensor-parallel", "2"], ["--devices", "4", "--tensor-parallel", "2"], ["--reference"],
        ["--devices", "2", "--stages", "4", "--schedule", "looped"], ["--no-library-calls"],
        ["--micro-batches", "3"], ["--devices", "2", "--micro-batches", "2"], ["--data-parallel", "2"])
# How many micro-batches a step has, by what ends a way.
MOST = 2  # sequences of which steps are (--sequences), besides
SEQUENCES = {("--micro-batches", "3"): 3, ("--micro-batches", "2"): 2, ("--data-parallel", "2"): 2}


def with_states(model, rng):
    """The model, some of whose tensors have a quarter of a state added; and pairs of names: the input that is the state, and the output that is its next value.
    That is the tensor, or what it was before the addition, or one of another state, or the value of another state; or the state with entries of a tensor behind it,
    of which the state keeps the end."""
    proto = model.proto()
    suitable = [v for node in model.nodes for v in node.outputs if v.dtype == "f32" and getattr(v, "tensor", True) and v.size and node.op not in ("If", "Loop", "Scan")]
    chosen = rng.sample(suitable, min(len(suitable), rng.choice((1, 1, 2, 3))))
    names, nodes = {v.name for v in chosen}, []
    for node in proto.graph.node:
        made = [name for name in node.output if name in names]
        for place, name in enumerate(node.output):
            if name in names:
                node.output[place] = name + "_before"
        nodes.append(node)
        for name in made:
            nodes.append(helper.make_node("Mul", [name + "_past", "quarter"], [name + "_part"], name=name + "_part"))
            nodes.append(helper.make_node("Add", [name + "_before", name + "_part"], [name], name=name + "_sum"))
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    proto.graph.initializer.append(numpy_helper.from_array(np.float32(0.25), "quarter"))
    pairs, ports = [], lambda name, value: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape)
    for value in chosen:
        source = rng.choice([other for other in chosen if other.shape == value.shape])
        kinds = ["", "_before"] + (["_past"] if source is not value else []) + (["grown"] if value.shape else [])
        kind = rng.choice(kinds)
        proto.graph.input.append(ports(value.name + "_past", value))
        if kind == "grown":  # the past, and what follows it: entries of the tensor
            axis = rng.randrange(len(value.shape))
            count = rng.randint(1, value.shape[axis])
            for what, number in (("starts", 0), ("ends", count), ("axes", axis)):
                proto.graph.initializer.append(numpy_helper.from_array(np.array([number], np.int64), f"{value.name}_{what}"))
            words = [source.name + rng.choice(["", "_before"]), *(f"{value.name}_{what}" for what in ("starts", "ends", "axes"))]
            proto.graph.node.append(helper.make_node("Slice", words, [value.name + "_words"], name=value.name + "_words"))
            proto.graph.node.append(helper.make_node("Concat", [value.name + "_past", value.name + "_words"], [value.name + "_next"], name=value.name + "_next", axis=axis))
            shape = [size + count if d == axis else size for d, size in enumerate(value.shape)]
            proto.graph.output.append(helper.make_tensor_value_info(value.name + "_next", onnx.TensorProto.FLOAT, shape))
            if len(shape) >= 2:
                multiply(proto.graph, value.name + "_next", shape, rng)
        else:
            proto.graph.node.append(helper.make_node("Identity", [source.name + kind], [value.name + "_next"], name=value.name + "_next"))
            proto.graph.output.append(ports(value.name + "_next", value))
        pairs.append((value.name + "_past", value.name + "_next"))
    return proto, pairs, {value.name + "_past": np.zeros(value.shape, np.float32) for value in chosen}


def multiply(graph, name, shape, rng):
    """Adds an output: a product with the tensor, or with its transpose, as attention has."""
    matrix, size = name, list(shape[-2:])
    if rng.random() < 0.5:
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        graph.node.append(helper.make_node("Transpose", [name], [name + "_turned"], name=name + "_turned", perm=order))
        matrix, size = name + "_turned", size[::-1]
    rows, is_left = rng.randint(1, 3), rng.random() < 0.5
    other = np.random.default_rng(rng.randrange(2**32)).standard_normal([rows, size[0]] if is_left else [size[1], rows]).astype(np.float32)
    graph.initializer.append(numpy_helper.from_array(other, name + "_other"))
    words = [name + "_other", matrix] if is_left else [matrix, name + "_other"]
    graph.node.append(helper.make_node("MatMul", words, [name + "_product"], name=name + "_product"))
    result = [*shape[:-2], *([rows, size[1]] if is_left else [size[0], rows])]
    graph.output.append(helper.make_tensor_value_info(name + "_product", onnx.TensorProto.FLOAT, result))


class Compiler:
    """Compiles the models of a folder."""

    def __init__(self, worker, work):
        self.worker, self.work, self.compared = worker, work, 0

    def compile(self, name, *flags):
        given = ("--quiet", "--no-optimize", "--cpu-level", cpu_level(), *TARGET, *flags)
        return self.worker.run("partita-compile", str(self.work / "model.onnx"), "-o", str(self.work / name), *given)


class Checker(Compiler):
    def check(self, seed):
        """What differs, in words; "" if nothing does."""
        rng, model = random.Random(seed), generate(seed)
        # Where a small change may change much, roundings do.
        if any(value.data.dtype.kind == "V" for value in model.inputs) or any(node.sharp for node in model.nodes):
            return ""
        proto, pairs, zeros = with_states(model, rng)
        if not pairs:
            return ""
        onnx.save(proto, self.work / "model.onnx")
        # Of several sequences, by step. Integers and flags stay: they may be indices.
        feeds = [[{v.name: (v.data * np.float32(1 - 0.1 * t - (0.2 * number if v.shape else 0))).astype(np.float32) if v.dtype == "f32" else v.data for v in model.inputs}
                  for t in range(STEPS)] for number in range(max(SEQUENCES.values()) * MOST)]
        if self.compile("without.partita").status:
            return ""
        expected, after = [[] for _ in feeds], [[] for _ in feeds]  # outputs, and states, behind each step
        try:
            with partita.Model(self.work / "without.partita", threads=1, pin=False, strict_nan=True) as whole:
                for sequence, results, states in zip(feeds, expected, after):
                    values = zeros
                    for feed in sequence:
                        results.append(whole.run({**feed, **values}))
                        values = {past: results[-1][following][tuple(slice(-size, None) for size in zeros[past].shape)] for past, following in pairs}
                        states.append(values)
        except partita.Error:
            return ""
        for way in rng.sample(WAYS, 3):
            several = rng.choice((1, 1, MOST))
            done = self.compile("with.partita", *way, *(("--sequences", str(several)) if several > 1 else ()), *(word for pair in pairs for word in ("--state", "=".join(pair))))
            if done.status:
                if "every output of the model would be a state" in done.text or "its states go from step to step, and" in done.text:
                    continue
                return f"{way}: {done.text.strip()}"
            count = SEQUENCES.get(tuple(way[-2:]), 1)
            with partita.Model(self.work / "with.partita", threads=1, pin=False) as model_with:
                for turn, step in itertools.product(range(2), range(STEPS)):
                    if text := self.compare_step(model_with, feeds, expected, after, pairs, count, turn, step, rng):
                        return f"{way}, {several} sequences, turn {turn}, step {step}, {text}"
            self.compared += 1
        return ""

    def compare_step(self, model, feeds, expected, after, pairs, count, turn, step, rng):
        """Takes a step of each sequence, in an order that is drawn; each has `count` micro-batches. What differs, in words."""
        order = list(enumerate(model.sequences))
        rng.shuffle(order)
        tickets = []
        for which, sequence in order:
            own = [feeds[which * count + number][step] for number in range(count)]
            feed = {name: np.concatenate([each[name] for each in own]) if value.ndim else value for name, value in own[0].items()}
            tickets.append(sequence.submit(feed))
        for (which, sequence), ticket in zip(order, tickets):
            split = lambda value: np.split(value, count) if count > 1 else [value]
            for name, mine in ticket.wait().items():
                for number, part in enumerate(split(mine), which * count):
                    if text := self.difference(part, expected[number][step][name]):
                        return f"micro-batch {number}: {name} {text}"
            kept = {name: sequence.state(name) for name, _ in pairs}
            for name, value in kept.items():
                for number, part in enumerate(split(value), which * count):
                    if text := self.difference(part, after[number][step][name].reshape(part.shape)):
                        return f"micro-batch {number}: the state {name} {text}"
                if turn:  # go on from what was read
                    sequence.set_state(name, value)
            if step == STEPS - 1:
                sequence.reset()
                if any(sequence.state(name).any() for name in kept):
                    return f"sequence {which}: a state is not 0"
        return ""

    @staticmethod
    def difference(mine, wanted):
        if mine.dtype.kind == "V" or not mine.size:
            return ""
        if mine.dtype.kind != "f":  # a rounding may turn a few of them
            return "" if (mine == wanted).mean() > 0.9 else "differs"
        mine, wanted = mine.astype(np.float64), wanted.astype(np.float64)
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
        return "" if np.allclose(mine, wanted, rtol=2e-2, atol=2e-3 * largest, equal_nan=True) else f"differs by {np.nanmax(np.abs(mine - wanted)):.3g}"


    def summary(self, models):
        return f"{self.compared} artifacts with states, of {models} models, give what others give without"


def check_models(description, checker_of):
    """Checks the models that the command line says. The exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    with Worker() as worker, tempfile.TemporaryDirectory(dir=scratch_root()) as folder:
        checker = checker_of(worker, pathlib.Path(folder))
        for seed in range(options.first, options.first + options.models):
            if text := checker.check(seed):
                wrong += 1
                print(f"seed {seed}: {text}", flush=True)
    print(f"{checker.summary(options.models)}; {wrong} differ")
    return 1 if wrong or not checker.compared else 0


if __name__ == "__main__":
    sys.exit(check_models(__doc__, Checker))
