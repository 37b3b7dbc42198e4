#!/usr/bin/env python3
"""States that steps leave for others (partita-compile --state). Small models in whose states something could be read too late or written too early: states that
change places, that several values or outputs share, that are read behind what replaces them, caches written in place. On one device, with their nodes on two
stages in many ways, on one device and two, with several micro-batches and on replicas; the outputs of the steps are those of ONNX's reference evaluator, which gets the states as inputs. A language model
whose caches stay on the devices gives what ONNX Runtime gives, word by word: with stages, tensors that are cut, as --reference and in processes; and by Python's
package, with a plan for the prompt and one for words, which share the caches. A filter for sound, frame by frame, beside ONNX Runtime. On the kind of devices that PARTITA_TEST_TARGET says."""

import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnx.reference
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing} (tools/setup.sh installs it)")
    sys.exit(77)

from decoder_model import write_decoder
from harness import BIN, TARGET, Failure, compile_model, main, run, run_artifact, some

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
STEPS = 5
# Inputs, outputs, body; states as INPUT=OUTPUT.
FORMS = {
    "argument": ("float[1,4] x, float[1,4] a", "float[1,4] y, float[1,4] b", "y = Add(a, x) b = Identity(x)", "a=b"),
    "constant": ("float[1,4] x, float[1,4] a", "float[1,4] y, float[1,4] b", "y = Add(a, x) b = Identity(c)", "a=b"),
    "same": ("float[1,4] x, float[1,4] a", "float[1,4] y, float[1,4] b", "y = Add(a, x) b = Identity(a)", "a=b"),
    "sum": ("float[1,4] x, float[1,4] a", "float[1,4] y, float[1,4] b", "s = Mul(a, c) b = Add(s, x) y = Add(b, a)", "a=b"),
    "two of one": ("float[1,4] x, float[1,4] a1, float[1,4] a2", "float[1,4] y, float[1,4] b1, float[1,4] b2",
                   "t = Add(a1, x) y = Mul(t, a2) b1 = Identity(t) b2 = Identity(t)", "a*=b*"),
    "exchanged": ("float[1,4] x, float[1,4] a1, float[1,4] a2, float[1,4] a3", "float[1,4] y, float[1,4] b1, float[1,4] b2, float[1,4] b3",
                  "y = Add(a1, a2) b1 = Identity(a2) b2 = Identity(a3) b3 = Add(x, a1)", "a*=b*"),
    "an output": ("float[1,4] x, float[1,4] a", "float[1,4] y, float[1,4] z, float[1,4] b", "b = Add(a, x) y = Identity(b) z = Identity(a)", "a=b"),
    "reshaped": ("float[1,4] x, float[1,4] a1, float[1,4] a2", "float[1,4] y, float[1,4] b1, float[1,4] b2",
                 "u = Reshape(a1, tall) v = Reshape(u, flat) b2 = Add(v, x) y = Add(a2, a1) b1 = Mul(x, a2)", "a1=b1 a2=b2"),
    "grown": ("float[1,4] x, float[1,3,4] a", "float[1,4] y, float[1,4,4] b", "u = Unsqueeze(x, one) b = Concat<axis = 1>(a, u) y = ReduceMax<keepdims = 0>(b, one)", "a=b"),
    "grown by two": ("float[1,4] x, float[1,3,4] a", "float[1,4] y, float[1,5,4] b",
                     "u = Unsqueeze(x, one) v = Exp(u) b = Concat<axis = 1>(a, u, v) s = ReduceSum<keepdims = 0>(a, one) y = Sub(s, x)", "a=b"),
    "grown by more": ("float[1,4] x, float[1,2] a", "float[1,4] y, float[1,6] b", "b = Concat<axis = 1>(a, x) m = ReduceSum(a, one) y = Add(x, m)", "a=b"),
    "counter": ("float[1,4] x, int64[1] n", "float[1,4] y, int64[1] m", "m = Add(n, one) f = Cast<to = 1>(m) y = Mul(f, x)", "n=m"),
    "read late": ("float[1,4] x, float[1,4] a", "float[1,4] y, float[1,4] b", "b = Tanh(x) e = Exp(b) p = Mul(e, a) s = Add(p, b) y = Sub(s, a)", "a=b"),
    "known at load": ("float[1,4] x, float[1,4] a", "float[1,4] y, float[1,4] b", "s = Add(a, x) y = Mul(s, three) b = Exp(c)", "a=b"),
    "an input behind": ("float[1,4] x, float[1,4] a", "float[1,4] y, float[1,4] b", "s = Add(a, x) y = Mul(s, three) b = Identity(x)", "a=b"),
    "cache": ("float[1,4] x, float[1,6,4] a, int64[1] n", "float[1,6,4] y, float[1,6,4] b, int64[1] m",
              "u = Unsqueeze(x, one) b = TensorScatter<axis = 1>(a, u, n) y = Mul(b, three) m = Add(n, one)", "a=b n=m"),
    "cache read late": ("float[1,4] x, float[1,6,4] a, int64[1] n", "float[1,6,4] y, float[1,6,4] b, int64[1] m",
                        "u = Unsqueeze(x, one) b = TensorScatter<axis = 1>(a, u, n) y = Sub(b, a) m = Add(n, one)", "a=b n=m"),
    "caches crossed": ("float[1,4] x, float[1,6,4] a1, float[1,6,4] a2, int64[1] n", "float[1,6,4] y, float[1,6,4] b1, float[1,6,4] b2, int64[1] m",
                       """u = Unsqueeze(x, one) v = Neg(u) b1 = TensorScatter<axis = 1, mode = "circular">(a2, u, n)
                       b2 = TensorScatter<axis = 1, mode = "circular">(a1, v, n) y = Add(b1, a1) m = Add(n, one)""", "a*=b* n=m"),
}


def write_form(path, inputs, outputs, body):
    constants = "<float[1,4] c = {0.5, 2, -1, 3}, float three = {3}, int64[2] tall = {4, 1}, int64[2] flat = {1, 4}, int64[1] one = {1}>"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 24]> g ({inputs}) => ({outputs}) {constants} {{ {body} }}')
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, path)
    return model


def expected_of(model, states, x, sequences):
    """The outputs of all rows. Each step has a row of each sequence, and these have states of their own."""
    outputs = [sequence_of(model, states, x[number::sequences]) for number in range(sequences)]
    return [np.stack(parts, axis=1).reshape(len(x), *parts[0].shape[1:]) for parts in zip(*outputs)]


def sequence_of(model, states, x):
    """The outputs of a step for each row, one after another."""
    evaluator = onnx.reference.ReferenceEvaluator(model)
    values = {}
    for port in model.graph.input:
        if port.name != "x":
            shape = [dimension.dim_value for dimension in port.type.tensor_type.shape.dim]
            values[port.name] = np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type))
    names = [port.name for port in model.graph.output]
    steps = []
    for row in x:
        results = dict(zip(names, evaluator.run(None, {"x": row[None], **values})))
        # Of an output that is longer, the next step gets the end.
        values = {past: results[present][tuple(slice(-size or None, None) for size in values[past].shape)] for past, present in states}
        steps.append([results[name] for name in names if name not in dict(map(reversed, states))])
    return [np.concatenate(parts) for parts in zip(*steps)]


def pairs_of(model, flags):
    """The states that flags stand for: pairs of names."""
    pairs = []
    for flag in flags.split():
        past, present = flag.split("=")
        if "*" not in past:
            pairs.append((past, present))
            continue
        pairs += [(port.name, present.replace("*", port.name[len(past) - 1 :])) for port in model.graph.input if port.name.startswith(past[:-1])]
    return pairs


def check_form(name, number, work):
    inputs, outputs, body, flags = FORMS[name]
    model = write_form(work / "form.onnx", inputs, outputs, body)
    expected = {}  # by the number of sequences
    states = [word for flag in flags.split() for word in ("--state", flag)]
    plans = [[], ["--devices", "2"], ["--reference"], ["--micro-batches", "3"], ["--devices", "2", "--micro-batches", "4"],
             ["--data-parallel", "2"], ["--data-parallel", "2", "--micro-batches", "3"]]
    if TARGET:  # the CPU has all
        plans = [[], *some(plans[1:], 2, number)]
    nodes = [node.name for node in model.graph.node]
    for way, stages in enumerate(some(itertools.product("AB", repeat=len(nodes)), max(1, 2 ** len(nodes) // (4 if TARGET else 8)), number)):
        blocks = {block: [f'"{node}"' for node, stage in zip(nodes, stages) if stage == block] for block in "AB"}
        if not all(blocks.values()):
            continue
        path = work / f"{way}.yaml"
        path.write_text(f"stages: [[A], [B]]\nblocks: {{A: [{', '.join(blocks['A'])}], B: [{', '.join(blocks['B'])}]}}\n")
        plans += [["--partition", path, "--devices", "1"], ["--partition", path, "--devices", "2", "--micro-batches", str(1 + way % 3)]]
    compared = 0
    for plan in plans:
        status, text = compile_model(work / "form.onnx", work / "form.partita", "--quiet", *states, *plan, expect=None)
        if status:
            # Stages may depend on each other in a cycle, by a state, too. What the compiler decides itself never does.
            if "--partition" not in plan or ("cycle" not in text and "depend" not in text):
                raise Failure(f"{name} {plan}: {text}")
            continue
        numbers = dict(zip(plan[::2], plan[1::2]))
        sequences = int(numbers.get("--data-parallel", 1)) * int(numbers.get("--micro-batches", 1))
        given = work / f"x{sequences}.npy"
        if sequences not in expected:
            x = np.random.default_rng(number).standard_normal((STEPS * sequences, 4)).astype(np.float32)
            np.save(given, x)
            expected[sequences] = expected_of(model, pairs_of(model, flags), x, sequences)
        run_artifact(work / "form.partita", "--threads", "1", "--no-pin", "--input", f"x={given}", "--output", work / "out.npz")
        for (output, mine), wanted in zip(np.load(work / "out.npz").items(), expected[sequences], strict=True):
            if mine.shape != wanted.shape or not np.allclose(mine, wanted, rtol=1e-5, atol=1e-5):
                raise Failure(f"{name} {plan}: {output} is\n{mine}\nand should be\n{wanted}")
        compared += 1
    return compared


class Decoder:
    """The language model, and what ONNX Runtime gives of a text of two samples: all words of the prompt at once, then one after another."""

    SAMPLES, ROOM, PROMPT, WORDS = 2, 8, 4, 7
    STATE = ("--state", "past_key_values.*=present.*")

    def __init__(self, path, **sizes):
        self.path = path
        self.names, (kv_heads, head) = write_decoder(path, **sizes)
        self.ids = np.random.default_rng(8).integers(0, 50, (self.SAMPLES, self.WORDS))
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in session.get_outputs()]
        caches = {name: np.zeros((self.SAMPLES, kv_heads, 0, head), np.float32) for each in self.names for name in each[:2]}
        self.steps = []  # by the number of words: logits, and the caches then
        for end in range(1, self.WORDS + 1):
            mask = np.ones((self.SAMPLES, end), np.int64)
            results = dict(zip(self.outputs, session.run(None, {"input_ids": self.ids[:, end - 1 : end], "attention_mask": mask, **caches})))
            caches = {past: results[present] for each in self.names for past, present in zip(each[:2], each[2:])}
            self.steps.append((results["logits"], caches))

    def compile(self, artifact, lengths, *plan):
        sizes = {"batch_size": self.SAMPLES, "past_sequence_length": self.ROOM, "total_sequence_length": self.ROOM, "sequence_length": lengths}
        compile_model(self.path, artifact, "--quiet", *(flag for name, size in sizes.items() for flag in ("--dim", f"{name}={size}")), *self.STATE, *plan)

    def mask(self, end):
        return (np.arange(self.ROOM) < end).astype(np.int64)[None].repeat(self.SAMPLES, 0)

    def compare(self, what, mine, wanted):
        difference = np.abs(mine - wanted).max()
        if not difference <= 1e-4 * np.abs(wanted).max():
            raise Failure(f"decoder {what}: the logits differ by {difference:.3g}")


def in_turns(array, plan):
    """The samples of all micro-batches of a step: every other one has them in reverse order."""
    numbers = dict(zip(plan[::2], plan[1::2]))
    count = int(numbers.get("--data-parallel", 1)) * int(numbers.get("--micro-batches", 1))
    return np.concatenate([array[:: -1 if number % 2 else 1] for number in range(count)])


def check_decoder(work):
    """A run computes a step for each two samples, in their order, or for each micro-batch of two."""
    decoder = Decoder(work / "decoder.onnx")
    words = range(1, decoder.WORDS + 1)
    two, turns = ["--devices", "2"], ["--devices", "2", "--micro-batches", "3"]
    plans = [[], two, turns, [*two, "--stages", "4", "--schedule", "looped"], [*turns, "--stages", "4", "--schedule", "looped"],
             ["--tensor-parallel", "2"], ["--devices", "4", "--tensor-parallel", "2"], ["--tensor-parallel", "2", "--micro-batches", "2"],
             ["--data-parallel", "2"], ["--data-parallel", "2", *turns], ["--reference"]]
    for plan in plans:
        decoder.compile(work / "decoder.partita", 1, *plan)
        ids, masks = ([in_turns(each(end), plan) for end in words] for each in (lambda end: decoder.ids[:, end - 1 : end], decoder.mask))
        np.savez(work / "in.npz", input_ids=np.concatenate(ids), attention_mask=np.concatenate(masks))
        wanted = np.concatenate([in_turns(logits, plan) for logits, _ in decoder.steps])
        for ranks in (0, 2) if plan in (two, turns, ["--data-parallel", "2"]) and not TARGET else (0,):
            run_artifact(work / "decoder.partita", "--threads", "1", "--no-pin", "--input", work / "in.npz", "--output", work / "out.npz", ranks=ranks)
            decoder.compare(f"{plan}, {ranks} processes", np.load(work / "out.npz")["logits"], wanted)
    return len(plans)


BY_PYTHON = """
import sys
import numpy as np
import partita
given = np.load(sys.argv[2])
out = {}
with partita.Model(sys.argv[1], threads=1, pin=False) as model:
    for turn in range(2):
        begin = 0
        for end in range(int(given["prompt"]), given["ids"].shape[1] + 1):
            out[f"{turn}.{end}"] = model.run(input_ids=given["ids"][:, begin:end], attention_mask=given[f"mask{end}"])["logits"]
            begin = end
            if end == given["ids"].shape[1] - 1:
                kept = {name: model.state(name) for name in model.states}
        out.update({f"{turn}.{name}": model.state(name) for name in model.states})
        model.reset()
        assert not any(model.state(name).any() for name in model.states)
    # The last word once more, from where the states were before it.
    for name, value in kept.items():
        model.set_state(name, value)
    out["again"] = model.run(input_ids=given["ids"][:, -1:], attention_mask=given[f"mask{end}"])["logits"]
    try:
        model.set_state("nothing", value)
    except partita.Error as error:
        assert "has no state 'nothing'" in str(error)
np.savez(sys.argv[3], **out)
"""


def run_python(script, what, *words):
    """Runs a program that uses the package."""
    environment = {**os.environ, "PARTITA_LIBRARY": str(BIN.parent / "lib" / "libpartita.so"), "PYTHONPATH": str(REPOSITORY / "runtime" / "python")}
    command = [sys.executable, "-c", script, *map(str, words)]
    done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200)
    if done.returncode:
        raise Failure(f"{what}: {done.stdout}")


def check_python(work):
    """Plans for the prompt and for words share the caches, which can be read, replaced and made 0."""
    decoder = Decoder(work / "decoder.onnx")
    ends = range(decoder.PROMPT, decoder.WORDS + 1)
    plans = ([], ["--devices", "2"], ["--tensor-parallel", "2"], ["--devices", "2", "--micro-batches", "2"], ["--data-parallel", "2", "--micro-batches", "2"])
    for plan in plans:
        decoder.compile(work / "decoder.partita", f"1,{decoder.PROMPT}", *plan)
        masks = {f"mask{end}": in_turns(decoder.mask(end), plan) for end in ends}
        np.savez(work / "in.npz", ids=in_turns(decoder.ids, plan), prompt=decoder.PROMPT, **masks)
        run_python(BY_PYTHON, f"by Python, {plan}", work / "decoder.partita", work / "in.npz", work / "out.npz")
        mine = np.load(work / "out.npz")
        for turn, end in itertools.product(range(2), ends):
            decoder.compare(f"by Python, {plan}, {end} words", mine[f"{turn}.{end}"][:, -1:], in_turns(decoder.steps[end - 1][0], plan))
        decoder.compare(f"by Python, {plan}, again", mine["again"], in_turns(decoder.steps[-1][0], plan))
        for name, cache in decoder.steps[-1][1].items():
            state = mine[f"1.{name}"]
            if not np.allclose(state[:, :, : decoder.WORDS], in_turns(cache, plan), atol=1e-4) or state[:, :, decoder.WORDS :].any():
                raise Failure(f"by Python, {plan}: the state '{name}' is not ONNX Runtime's cache")


class Growing:
    """The same model with caches that are longer behind it, as Optimum exports them: the mask has a flag for each word that was and each that is new."""

    SAMPLES, PAST, PROMPT, WORDS = 2, 7, 3, 12
    STATE = ("--state", "past_key_values.*=present.*")

    def __init__(self, path, **sizes):
        names, (kv_heads, head) = write_decoder(path, growing=True, **sizes)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        ids = np.random.default_rng(9).integers(1, 50, (self.SAMPLES, self.WORDS))
        caches = {name: np.zeros((self.SAMPLES, kv_heads, 0, head), np.float32) for layer in names for name in layer[:2]}
        self.steps = []  # what a step is given, with room for all in the mask, and what ONNX Runtime gives
        for begin, end in itertools.pairwise((0, *range(self.PROMPT, self.WORDS + 1))):
            have = next(iter(caches.values())).shape[2]
            mask = np.ones((self.SAMPLES, have + end - begin), np.int64)
            given = {"input_ids": ids[:, begin:end], "position_ids": np.tile(np.arange(begin, end), (self.SAMPLES, 1))}
            results = dict(zip([port.name for port in session.get_outputs()], session.run(None, {**given, "attention_mask": mask, **caches})))
            caches = {name: results[name.replace("past_key_values", "present")][:, :, -self.PAST :] for name in caches}
            unused = np.zeros((self.SAMPLES, self.PAST - have), np.int64)
            self.steps.append(({**given, "attention_mask": np.concatenate([unused, mask], axis=1)}, results["logits"]))
        self.caches = caches

    def compile(self, model, artifact, *flags, past=PAST, words=f"1,{PROMPT}"):
        sizes = {"batch_size": self.SAMPLES, "past_sequence_length": past, "sequence_length": words}
        compile_model(model, artifact, "--quiet", *(word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")), *self.STATE, *flags)

    def inputs(self, plan):
        return {f"{t}.{name}": in_turns(value, plan) for t, (given, _) in enumerate(self.steps) for name, value in given.items()}


GROWING_BY_PYTHON = """
import sys
import numpy as np
import partita
given = np.load(sys.argv[2])
step = lambda t: {name: given[f"{t}.{name}"] for name in ("input_ids", "position_ids", "attention_mask")}
with partita.Model(sys.argv[1], threads=1, pin=False) as model:
    assert [port.text() for port in model.inputs] == ["N, sequence_length", "N, sequence_length + 7", "N, sequence_length"]
    out = {f"logits {t}": model.run(step(t))["logits"] for t in range(len(given) // 3)}
    try:
        model.run({**step(1), "attention_mask": step(1)["attention_mask"][:, 1:]})
        raise AssertionError("a mask that is too short was taken")
    except partita.Error as error:
        assert "but int64 [N, sequence_length + 7], with 1 sequence_length is needed" in str(error), str(error)
    out.update({name: model.state(name) for name in model.states})
np.savez(sys.argv[3], **out)
"""
GROWING_PLANS = ([], ["--devices", "2"], ["--tensor-parallel", "2"], ["--devices", "2", "--micro-batches", "2"])


def check_growing(work):
    """A state keeps the end of an output that is longer. The mask's length follows from those of the words and of the cache, in each plan."""
    growing = Growing(work / "growing.onnx")
    for plan in some(GROWING_PLANS, 2) if TARGET else GROWING_PLANS:
        growing.compile(work / "growing.onnx", work / "growing.partita", *plan)
        np.savez(work / "in.npz", **growing.inputs(plan))
        run_python(GROWING_BY_PYTHON, f"growing, {plan}", work / "growing.partita", work / "in.npz", work / "out.npz")
        mine = np.load(work / "out.npz")
        for name, value in {**{f"logits {t}": logits for t, (_, logits) in enumerate(growing.steps)}, **growing.caches}.items():
            wanted = in_turns(value, plan)
            if mine[name].shape != wanted.shape or not np.abs(mine[name] - wanted).max() <= 1e-4 * np.abs(wanted).max():
                raise Failure(f"growing, {plan}: {name} is\n{mine[name]}\nand should be\n{wanted}")
    # A state may have no entries.
    growing.compile(work / "growing.onnx", work / "growing.partita", past=0, words=growing.PROMPT)
    given, logits = growing.steps[0]
    for name, value in given.items():
        np.save(work / f"{name}.npy", value[:, -growing.PROMPT :])
    inputs = (word for name in given for word in ("--input", f"{name}={work / name}.npy"))
    run_artifact(work / "growing.partita", *inputs, "--output", work / "out.npz")
    if not np.abs(np.load(work / "out.npz")["logits"] - logits).max() <= 1e-4 * np.abs(logits).max():
        raise Failure("growing: without a past, the prompt has other results")
    sizes = ("--dim", "batch_size=2", "--dim", "past_sequence_length=7")
    text = run([BIN / "partita-compile", work / "growing.onnx", "-o", work / "e.partita", *sizes], expect=1)
    if "\n  dimension 'sequence_length': give it with --dim sequence_length=SIZE" not in text or "past_sequence_length + " in text:
        raise Failure(f"an open dimension of a sum says\n{text}")
    return len(GROWING_PLANS)


SEQUENCES_BY_PYTHON = """
import sys, threading
import numpy as np
import partita
given = np.load(sys.argv[2])
with partita.Model(sys.argv[1], threads=1, pin=False) as model:
    def listen(sequence, number, outputs):
        sequence.reset()
        for t in range(len(given) // 3):
            step = {name: given[f"{t}.{name}"] for name in ("input_ids", "position_ids", "attention_mask")}
            step["input_ids"] = step["input_ids"] * (number + 1) % 50
            outputs.append(sequence.run(step)["logits"])
    alone = [[] for _ in model.sequences]
    for number, outputs in enumerate(alone):
        listen(model.sequences[0], number, outputs)
    for turn in range(4):
        together = [[] for _ in model.sequences]
        threads = [threading.Thread(target=listen, args=(model.sequences[number - turn], number, outputs)) for number, outputs in enumerate(together)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(len(mine) == len(wanted) and all(map(np.array_equal, mine, wanted)) for mine, wanted in zip(together, alone)), turn
"""


def check_sequences(work):
    """Clients whose calls come as they like, with prompts and words: each gets the bits that it gets alone."""
    growing = Growing(work / "growing.onnx")
    for plan in some(GROWING_PLANS, 2, 1) if TARGET else GROWING_PLANS:  # those that check_growing leaves out
        growing.compile(work / "growing.onnx", work / "growing.partita", "--sequences", "3", *plan)
        np.savez(work / "in.npz", **growing.inputs(plan))
        run_python(SEQUENCES_BY_PYTHON, f"sequences, {plan}", work / "growing.partita", work / "in.npz")
    return len(GROWING_PLANS)


TOGETHER_BY_PYTHON = """
import sys
import numpy as np
import partita
given = np.load(sys.argv[2])
steps = max(int(name.split(".")[0]) for name in given) + 1
def step(t, number):
    found = {name.split(".")[1]: given[name] for name in given if name.startswith(f"{t}.")}
    return {**found, "input_ids": found["input_ids"] * (number + 1) % 50}
out = {}
def take_turns(model, turn):
    # Each begins some steps after the one before it, and once more where it ends.
    numbers = np.random.default_rng(turn).permutation(len(model.sequences))
    for now in range(2 * steps):
        under_way = []
        for place, number in enumerate(numbers):
            if (at := now - turn * place) >= 0:
                if at % steps == 0:
                    model.sequences[number].reset()
                under_way.append((number, at % steps, model.sequences[number].submit(step(at % steps, number))))
        for number, t, asked in under_way:
            mine, wanted = asked.wait()["logits"], out[f"{number}.{t}"]
            assert np.abs(mine - wanted).max() <= 1e-4 * np.abs(wanted).max(), (turn, number, t, mine, wanted)
with partita.Model(sys.argv[1], threads=1, pin=False) as model:
    for number, sequence in enumerate(model.sequences):
        sequence.reset()
        for t in range(steps):
            out[f"{number}.{t}"] = sequence.run(step(t, number))["logits"]
    for turn in range(4):
        take_turns(model, turn)
# All that wait share a step, if they are as many as one can be of.
with partita.Model(sys.argv[1], threads=1, pin=False, batch_delay=20) as model:
    take_turns(model, 0)
    profile, count = model.profile(), 2 * steps * len(model.sequences)
    assert (profile.samples, profile.steps) == (count * len(out["0.0"]), count / int(sys.argv[4])), profile
np.savez(sys.argv[3], **out)
"""


def check_together(work):
    """Steps of several sequences: clients that wait at the same time share them, from wherever each of them is. A larger batch is for as many."""
    compared = 0
    for plan in ([],) if TARGET else ([], ["--devices", "2"], ["--tensor-parallel", "2"]):
        # Of so large weights it is worth while to cut some.
        large = {"layers": 1, "hidden": 1024, "heads": 16, "kv_heads": 8, "head": 64, "inner": 4096} if "--tensor-parallel" in plan else {}
        decoder, growing = Decoder(work / "decoder.onnx", **large), Growing(work / "growing.onnx", **large)
        ends = [decoder.PROMPT, *range(decoder.PROMPT + 1, decoder.WORDS + 1)]
        inputs = {f"{t}.attention_mask": decoder.mask(end) for t, end in enumerate(ends)}
        inputs |= {f"{t}.input_ids": decoder.ids[:, 0 if t == 0 else end - 1 : end] for t, end in enumerate(ends)}
        for name, model, given, sizes, count, shared in (("decoder", decoder, inputs, (2, 6), 3, 3), ("growing", growing, growing.inputs([]), (2, 4, 8), 8, 4)):
            artifact = work / f"{name}.partita"
            lengths = f"1,{model.PROMPT}"
            batches = ("--dim", f"batch_size={','.join(map(str, sizes))}", "--sequences", str(count))
            model.compile(work / "growing.onnx", artifact, *batches, *plan, words=lengths) if name == "growing" else model.compile(artifact, lengths, *batches, *plan)
            if large and "all_reduce" not in run([BIN / "partita-run", artifact, "--plan"]):
                raise Failure(f"together, {name}, {plan}: nothing is cut")
            np.savez(work / "in.npz", **given)
            run_python(TOGETHER_BY_PYTHON, f"together, {name}, {plan}", artifact, work / "in.npz", work / "out.npz", shared)
            mine = np.load(work / "out.npz")
            wanted = [decoder.steps[end - 1][0] for end in ends] if name == "decoder" else [logits for _, logits in growing.steps]
            for t, logits in enumerate(wanted):
                decoder.compare(f"{name} together, {plan}, step {t}", mine[f"0.{t}"][:, -1:], logits[:, -1:])
            compared += 1
    return compared


INDICES_BY_PYTHON = """
import sys
import numpy as np
import partita
def take(sequences, rows, wrong=()):
    tickets = [sequence.submit(ids=np.array([row])) for sequence, row in zip(sequences, rows)]
    for number, ticket in enumerate(tickets):
        try:
            ticket.wait()
            assert number not in wrong, number
        except partita.InputError as error:
            assert number in wrong and wrong[number] in str(error), (number, str(error))
with partita.Model(sys.argv[1], threads=1, pin=False, batch_delay=20) as model:
    rows = [[1, 2, 3], [4, 77, 5], [0, 0, 1], [-8, 7, 7]]
    take(model.sequences, rows, {1: "Gather 'g': 77 at [0, 1] of its indices 'ids' is out of range: -8 to 7 are allowed"})
    rows[1] = [1, 1, 1]
    model.sequences[1].reset()
    take(model.sequences, rows)
    assert model.profile().steps == 2, model.profile()
with partita.Model(sys.argv[1], threads=1, pin=False, batch_delay=0.05) as model:
    # The first one has had too many steps, and the others do not suffer from it.
    for step in range(12):
        take(model.sequences[:1], [[1, 1, 1]], {0: "Gather 'h': 8 at"} if step == 8 else {0: "Gather 'h': "} if step > 8 else ())
    for step in range(4):
        take(model.sequences[1:], [[1, 1, 1]] * 3)
"""


def check_indices(work):
    """A wrong index is an error of the sequence that has it. What is computed of one that a step is not of is nobody's error."""
    write_form(work / "indices.onnxtxt", "int64[N,3] ids, int64[N,16] a", "float[N,3] y, int64[N,16] b",
               """table = Constant<value_floats = [0., 1., 2., 3., 4., 5., 6., 7.]>() unit = Constant<value_ints = [1]>() zero = Constant<value_ints = [0]>() ten = Constant<value_ints = [1]>()
               g = Gather(table, ids) first = Slice(a, zero, ten, unit) h = Gather(table, first) y = Add(g, h) b = Add(a, unit)""")
    compile_model(work / "indices.onnxtxt", work / "indices.partita", "--quiet", "--dim", "N=1,4", "--state", "a=b", "--sequences", "4")
    run_python(INDICES_BY_PYTHON, "indices", work / "indices.partita")
    return 1


def check_stream(work):
    """A filter for sound, frame by frame."""
    data = pathlib.Path(os.environ.get("PARTITA_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    model = next((data / "models" / "rnn" / "gtcrn-stream-simple").glob("*.onnx"), None)
    if TARGET:  # it takes half a minute on test/gpu-emulator
        return 0
    if not model:
        print("the filter for sound: skipped, there are no test data")
        return 0
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    sound, *inputs = session.get_inputs()
    caches = {port.name: np.zeros(port.shape, np.float32) for port in inputs}
    frames = np.random.default_rng(0).standard_normal((STEPS, *sound.shape[1:])).astype(np.float32)
    np.save(work / "frames.npy", frames)
    wanted = []
    for frame in frames:
        result, *values = session.run(None, {sound.name: frame[None], **caches})
        caches = dict(zip(caches, values))
        wanted.append(result)
    for plan in ([], ["--devices", "2"]):
        compile_model(model, work / "stream.partita", "--quiet", "--state", "*_cache=*_cache_out", *plan)
        run_artifact(work / "stream.partita", "--threads", "1", "--no-pin", "--input", f"{sound.name}={work / 'frames.npy'}", "--output", work / "out.npz")
        (mine,) = np.load(work / "out.npz").values()
        difference = np.abs(mine - np.concatenate(wanted)).max()
        if not difference <= 1e-4 * np.abs(wanted).max():
            raise Failure(f"the filter for sound, {plan}: the frames differ by {difference:.3g}")
    return 2


def check_errors(work):
    Decoder(work / "decoder.onnx")
    sizes = [flag for name in ("batch_size", "sequence_length", "past_sequence_length", "total_sequence_length") for flag in ("--dim", f"{name}=4")]
    for flags, said in (
        ("--state x=present.0.key", "--state x=present.0.key: the model has no input 'x'; its inputs are 'input_ids', "),
        ("--state past_key_values.0.key=y", "the model has no output 'y' for the input 'past_key_values.0.key'; its outputs are 'logits', "),
        ("--state past_key_values.*=y", "write it as INPUT=OUTPUT; both may have one *, for the same text"),
        ("--state input_ids=logits", "the input 'input_ids' is 4x4xi64, and the output 'logits' 4x4x50xf32: a state has one type and shape, or keeps the end of an output that is longer in one dimension"),
        ("--state past_key_values.*=present.* --state past_key_values.0.key=present.1.key", "another --state names 'past_key_values.0.key' or 'present.1.key'"),
        ("--state past_key_values.*=present.* --replicas 2", "replicas that share a batch (--replicas) keep no states"),
        ("--state past_key_values.*=present.* --dim sequence_length=2 --dim batch_size=4,8", "plans share the states; only with --sequences N may dimension 0 of all of them be a multiple, of several sequences"),
        ("--state past_key_values.*=present.* --dim sequence_length=2 --dim past_sequence_length=4,5 --sequences 4", "the state \"past_key_values.0.key\" would be 'tensor<4x2x4x16xf32>' for some sizes of --dim, and 'tensor<4x2x5x16xf32>' for others"),
        ("--state past_key_values.*=present.* --dim sequence_length=2 --dim batch_size=4,8 --sequences 3", "a step cannot be of 2 sequences: it takes those of a group, and --sequences 3 is no multiple of 2"),
        ("--state past_key_values.*=present.* --dim sequence_length=2 --dim batch_size=1,65 --sequences 130", "a step cannot be of 65 sequences: the most are 64"),
        ("--state past_key_values.*=present.* --dim sequence_length=2 --dim batch_size=4,8 --sequences 4 --micro-batches 2", "a step cannot be of 2 sequences, and of several micro-batches"),
        ("--state past_key_values.*=present.* --dim sequence_length=2 --dim batch_size=4,8 --sequences 4 --data-parallel 2", "a step cannot be of 2 sequences, and of several micro-batches"),
        ("--state past_key_values.*=present.* --loss sum:logits --gradients", "states are kept at inference; a training has its own"),
    ):
        text = run([BIN / "partita-compile", work / "decoder.onnx", "-o", work / "e.partita", *sizes, *flags.split()], expect=1)
        if said not in text:
            raise Failure(f"{flags} says\n{text}")
    # A mask that is repeated for each sample, as PyTorch exports it, knows of none. How it is folded depends on its size.
    for words in (1, 16):
        write_form(work / "mask.onnxtxt", f"float[N,2,{words},512] x, float[N,16] a", f"float[N,2,{words},512] y, float[N,16] b",
                   f"""zero = Constant<value_int = 0>() step = Constant<value_int = 1>() rows = Constant<value_int = {words}>() columns = Constant<value_int = 512>()
                   i = Range(zero, rows, step) k = Range(zero, columns, step) tall1 = Unsqueeze(i, one) early = LessOrEqual(k, tall1) outer = Constant<value_ints = [0, 1]>()
                   mask = Unsqueeze(early, outer) s = Shape(x) first = Constant<value_ints = [0]>() n = Gather(s, first) rest = Constant<value_ints = [1, {words}, 512]>()
                   shape = Concat<axis = 0>(n, rest) wide = Expand(mask, shape) y = Where(wide, x, three) b = Add(a, three)""")
        compile_model(work / "mask.onnxtxt", work / "e.partita", "--quiet", "--dim", "N=1,4", "--state", "a=b", "--sequences", "4")
    # Sequences must not know of each other.
    for inputs, body, said in (
        ("float[N,16] x, float[N,16] a", "s = Add(a, x) m = ReduceMean<keepdims = 1>(s, zero) b = Sub(s, m) y = Identity(b)", "combines the entries of dimension 0 of 'x'"),
        ("float[N,16] x, float[N,16] a", "s = Shape(x) n = Gather(s, zero) f = Cast<to = 1>(n) b = Div(a, f) y = Add(b, x)", "computes with the number of entries of dimension 0 of 'x'"),
        ("float[N,16] x, float[N,16] a", "s = Shape(x) n = Gather(s, zero) o = Constant<value_ints = [1]>() m = Greater(n, o) f = Cast<to = 1>(m) b = Add(a, x) y = Add(b, f)", "computes with the number of entries of dimension 0 of 'x'"),
        ("float[N,16] x, float[N,16] a", "b = Add(a, x) r = Constant<value_ints = [-1, 8]>() y = Reshape(b, r)", "dimension 0 of the output 'y' has another size"),
        ("float[N,16] x, float[N,16] a", "b = Add(a, x) t = Transpose(b) r = ArgMax<axis = 0, keepdims = 0>(t) w = Constant<value_floats = [0., 1.]>() i = Reshape(r, flat1) g = Gather(w, i) s = ReduceSum<keepdims = 0>(g, zero) y = Add(b, s)", "combines the entries of dimension 0 of 'x'"),
        ("float[N,16] x, float[M,16] a", "w = ReduceSum<keepdims = 1>(a, zero) y = Add(w, x) b = Identity(a)", "dimension 0 of the inputs is not the same in all of them"),
    ):
        outputs = "float[N,16] y, float[M,16] b" if "[M" in inputs else "float y, float[N,16] b" if "Reshape(b" in body else "float[N,16] y, float[N,16] b"
        write_form(work / "mixing.onnxtxt", inputs, outputs, "zero = Constant<value_ints = [0]>() flat1 = Constant<value_ints = [-1]>() " + body)
        dims = ("--dim", "N=1,4", *(("--dim", "M=1,4") if "[M" in inputs else ()))
        text = run([BIN / "partita-compile", work / "mixing.onnxtxt", "-o", work / "e.partita", *dims, "--state", "a=b", "--sequences", "4"], expect=1)
        if "a step cannot be of 4 sequences: " not in text or said not in text:
            raise Failure(f"{body} says\n{text}")


def test():
    chosen = set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        compared = sum(check_form(name, number, work) for number, name in enumerate(FORMS) if not chosen or name in chosen)
        for name, part in (("decoder", check_decoder), ("python", check_python), ("growing", check_growing), ("sequences", check_sequences), ("together", check_together), ("indices", check_indices), ("stream", check_stream), ("errors", check_errors)):
            if not chosen or name in chosen:
                compared += part(work) or 0
    if not compared:
        raise Failure(f"there is no part of the names {', '.join(sorted(chosen))}")
    print(f"{compared} plans with states give what their models give without")


if __name__ == "__main__":
    main(test, use_workers=True, optimize=4)
