#!/usr/bin/env python3
"""Random models with states, of several sequences that share steps (partita-compile --sequences, with several sizes of the batch): sums, caches that are written
in place, and caches that grow, which products read. Compiled in ways that a seed draws. Sequences begin, go on, rest, are read and replaced as the seed says; each
must get what the model gives it without states, alone, where this program hands the states around.

    sequences.py                         the bounded run of the test command
    sequences.py --models 500 --first S  more

On the kind of devices that PARTITA_TEST_TARGET says. Exit status 1 if something differs, 77 if NumPy or ONNX is not installed.
"""

import random
import sys

from states import Compiler, check_models, helper, np, numpy_helper, onnx, partita

WIDTH, STEPS = 16, 8
WAYS = ([], [], ["--devices", "2"], ["--devices", "3"], ["--tensor-parallel", "2"], ["--devices", "4", "--tensor-parallel", "2"], ["--reference"], ["--no-library-calls"])


class Model:
    """A model of one batch dimension N. Its values are [N, words, WIDTH]."""

    def __init__(self, rng):
        self.rng, self.noise = rng, np.random.default_rng(rng.randrange(2**32))
        self.nodes, self.weights, self.states = [], [], {}  # the input and its shape behind N, by its next value
        self.words, self.room = rng.randint(1, 3), rng.randint(3, 7)
        self.writes = False
        self.values = ["x"]
        for _ in range(rng.randint(1, 3)):
            for _ in range(rng.randint(0, 2)):
                self.compute()
            rng.choice((self.add, self.write, self.grow, self.grow))()
        for _ in range(rng.randint(0, 2)):
            self.compute()
        self.node("Identity", [self.values[-1]], name="y")

    def node(self, op, inputs, name=None, **attributes):
        name = name or f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def value(self):
        return self.rng.choice(self.values[-3:])

    def matrix(self, rows=WIDTH, columns=WIDTH):
        return self.constant((self.noise.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32))

    def compute(self):
        op = self.rng.choice(("Tanh", "Sigmoid", "Add", "Mul", "MatMul", "Softmax", "mean"))
        x = self.value()
        if op in ("Add", "Mul"):
            y = self.node(op, [x, self.value()])
        elif op == "MatMul":
            y = self.node(op, [x, self.matrix()])
        elif op == "mean":
            y = self.node("Sub", [x, self.node("ReduceMean", [x, self.constant(np.array([-1], np.int64))], keepdims=1)])
        else:
            y = self.node(op, [x])
        self.values.append(y)

    def state(self, shape):
        name = f"past{len(self.states)}"
        return name, lambda following: self.states.update({following: (name, shape)})

    def add(self):
        """A state of the size of a value, or of its first word."""
        x = self.node("Tanh", [self.value()])
        past, goes_on = self.state((self.words, WIDTH))
        y = self.node("Add", [x, self.node("Mul", [past, self.constant(np.float32(0.5))])])
        goes_on(self.node("Identity", [self.rng.choice((x, y))], name=past.replace("past", "next")))
        self.values.append(y)

    def read(self, cache, heads):
        """Attention of a value to a cache, whose transpose and which itself products read."""
        x = self.node("MatMul", [self.value(), self.matrix(WIDTH, heads * WIDTH)])
        x = self.node("Reshape", [x, self.constant(np.array([0, 0, heads, WIDTH], np.int64))])
        x = self.node("Transpose", [x], perm=[0, 2, 1, 3])
        scores = self.node("MatMul", [x, self.node("Transpose", [cache], perm=[0, 1, 3, 2])])
        shares = self.node("Softmax", [scores], axis=-1)
        rows = self.node("Transpose", [self.node("MatMul", [shares, cache])], perm=[0, 2, 1, 3])
        rows = self.node("Reshape", [rows, self.constant(np.array([0, 0, heads * WIDTH], np.int64))])
        self.values.append(self.node("MatMul", [rows, self.matrix(heads * WIDTH)]))

    def entries(self, heads, count):
        x = self.node("MatMul", [self.value(), self.matrix(WIDTH, heads * WIDTH)])
        x = self.node("Reshape", [x, self.constant(np.array([0, self.words, heads, WIDTH], np.int64))])
        x = self.node("Transpose", [x], perm=[0, 2, 1, 3])
        starts, ends, axes = (self.constant(np.array([number], np.int64)) for number in (0, count, 2))
        return self.node("Slice", [x, starts, ends, axes])

    def write(self):
        """A cache that is written where an input says."""
        self.writes, heads = True, self.rng.randint(1, 2)
        past, goes_on = self.state((heads, self.room, WIDTH))
        present = self.node("TensorScatter", [past, self.entries(heads, self.rng.randint(1, self.words)), "place"], name=past.replace("past", "next"), axis=2, mode="circular")
        goes_on(present)
        self.read(self.rng.choice((past, present, present)), heads)

    def grow(self):
        """A cache that is longer behind a step."""
        heads, count = self.rng.randint(1, 2), self.rng.randint(1, self.words)
        past, goes_on = self.state((heads, self.room, WIDTH))
        present = self.node("Concat", [past, self.entries(heads, count)], name=past.replace("past", "next"), axis=2)
        goes_on(present)
        self.read(present, heads)

    def save(self, path):
        port = lambda name, shape, kind=onnx.TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape and ["N", *shape])
        inputs = [port("x", (self.words, WIDTH))]
        inputs += [helper.make_tensor_value_info("place", onnx.TensorProto.INT64, ["N"])] if self.writes else []
        inputs += [port(*state) for state in self.states.values()]
        outputs = [port("y", (self.words, WIDTH)), *(port(name, None) for name in self.states)]
        graph = helper.make_graph(self.nodes, "sequences", inputs, outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10), path)


class Checker(Compiler):
    shared = 0  # steps that were not taken, as several sequences shared one

    def check(self, seed):
        """What differs, in words; "" if nothing does."""
        rng = random.Random(seed)
        model = Model(rng)
        model.save(self.work / "model.onnx")
        rows, size = rng.choice((1, 1, 2)), rng.choice((2, 3, 4))
        sizes = [rows, rows * size] + ([2 * rows * size] if rng.random() < 0.3 else [])
        count = sizes[-1] // rows * rng.choice((1, 1, 2))
        if text := self.compile("without.partita", "--dim", f"N={rows}").text:
            return f"without states: {text}"
        noise = np.random.default_rng(seed)
        feeds = [[{"x": noise.standard_normal((rows, model.words, WIDTH)).astype(np.float32)} for _ in range(STEPS)] for _ in range(count)]
        if model.writes:
            for sequence in feeds:
                for feed in sequence:
                    feed["place"] = noise.integers(0, 2 * model.room, rows)
        zeros = {name: np.zeros((rows, *shape), np.float32) for name, shape in model.states.values()}
        expected, after = [[] for _ in feeds], [[] for _ in feeds]
        with partita.Model(self.work / "without.partita", threads=1, pin=False) as whole:
            for sequence, results, states in zip(feeds, expected, after):
                values = zeros
                for feed in sequence:
                    found = whole.run({**feed, **values})
                    results.append(found["y"])
                    values = {past: found[following][tuple(slice(-size, None) for size in zeros[past].shape)] for following, (past, _) in model.states.items()}
                    states.append(values)
        pairs = (word for following, (past, _) in model.states.items() for word in ("--state", f"{past}={following}"))
        way = rng.choice(WAYS)
        done = self.compile("with.partita", *way, "--sequences", str(count), "--dim", f"N={','.join(map(str, sizes))}", *pairs)
        what = f"{way}, {count} sequences of {rows}, sizes {sizes}"
        if done.status:
            return f"{what}: {done.text.strip()}"
        try:
            with partita.Model(self.work / "with.partita", threads=1, pin=False, batch_delay=rng.choice((0, 0, 0.002))) as shared:
                if text := self.take_turns(shared, feeds, expected, after, rng):
                    return f"{what}: {text}"
                profile = shared.profile()
                self.shared += profile.samples // rows - profile.steps
        except partita.Error as error:
            return f"{what}: {error}"
        self.compared += 1
        return ""

    def take_turns(self, model, feeds, expected, after, rng):
        at = [0] * len(feeds)
        often = [rng.choice((0.3, 0.8, 1)) for _ in feeds]
        for now in range(3 * STEPS):
            under_way = []
            for number in rng.sample(range(len(feeds)), len(feeds)):
                sequence, step = model.sequences[number], at[number] % STEPS
                if rng.random() > often[number]:
                    continue
                if step == 0:
                    sequence.reset()
                under_way.append((number, step, sequence.submit(feeds[number][step])))
                at[number] += 1
            for number, step, ticket in under_way:
                if text := self.difference(ticket.wait()["y"], expected[number][step]):
                    return f"round {now}, sequence {number}, step {step}: y {text}"
            for number, step, _ in under_way:
                if rng.random() < 0.1:
                    for name, wanted in after[number][step].items():
                        kept = model.sequences[number].state(name)
                        if text := self.difference(kept, wanted):
                            return f"round {now}, sequence {number}, step {step}: the state {name} {text}"
                        model.sequences[number].set_state(name, kept)
        return ""

    @staticmethod
    def difference(mine, wanted):
        largest = np.abs(wanted).max(initial=1)
        return "" if np.allclose(mine, wanted, rtol=1e-3, atol=1e-4 * largest) else f"differs by {np.nanmax(np.abs(mine - wanted)):.3g}"


    def summary(self, models):
        return f"{self.compared} of {models} models give each sequence what it gets alone, with {self.shared} steps fewer than samples"


if __name__ == "__main__":
    sys.exit(check_models(__doc__, Checker))
