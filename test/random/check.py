"""One model computed in every way, and what differs."""

import collections
import os
import random
import re
import zlib

import numpy as np

from compare import difference, loosened, roundings
from graph import TYPES, Model
from peer import Peer, Refusal, moved, unmoved

NO_GPU_CODE = re.compile(r"has no kernel for CUDA devices|has no code for CUDA devices")
NPZ_TYPES = {"V2": TYPES["bf16"][0]}


class Difference:
    """`kind`: crash, refusal, devices, sharded, gpu, reference, onnxruntime; `where`: the output or the step; `text`: for people."""

    def __init__(self, kind, where, text):
        self.kind, self.where, self.text = kind, where, text

    def __str__(self):
        return f"{self.kind}: {self.where}: {self.text}"


class Stop(Exception):
    def __init__(self, difference):
        self.difference = difference


def first_error(text):
    lines = [line for line in text.splitlines() if "error:" in line] or text.splitlines() or ["no message"]
    return lines[0]


def doubt_zeros(model, tensors, feeds):
    """Marks what ONNX Runtime computes from a quantisation of nothing but zeros: its scale is 1 there, ONNX's 0."""
    doubted = set()
    for node in model.nodes:
        names = [v.name for v in node.inputs if v is not None]
        array = tensors.get(names[0], feeds.get(names[0])) if node.op == "DynamicQuantizeLinear" else None
        if (array is not None and not np.any(array)) or doubted.intersection(names):
            for value in node.outputs:
                value.doubt = value.doubt or "DynamicQuantizeLinear of zeros: its scale is 1, and ONNX's 0"
                doubted.add(value.name)


def terms_of(value, depth=3):
    """About the largest number that was added or subtracted on the way to a value."""
    inputs = [v for v in value.node.inputs if v is not None and v.is_float] if value.node and depth else []
    return max([value.mag, *(terms_of(v, depth - 1) for v in inputs)])


class Moves:
    """Results of which all numbers are some roundings away from where they were. In a few of them roundings may cancel, so there are `most` where `few` do not
    explain a difference."""

    def __init__(self, make, few, most):
        self.make, self.most = make, most
        self.all = [make() for _ in range(few)]

    def explain(self, name, judge):
        """What `judge` says of the moved tensors of this name."""
        text = judge([m[name] for m in self.all if name in m])
        if text and len(self.all) < self.most:
            self.all += [self.make() for _ in range(self.most - len(self.all))]
            text = judge([m[name] for m in self.all if name in m])
        return text


def load(path, outputs):
    found = {}
    with np.load(path) as archive:
        for value in outputs:
            array = archive[value.name]
            if array.dtype.kind == "V":
                array = array.view(TYPES[value.dtype][0])
            found[value.name] = array
    return found


class Checker:
    def __init__(self, worker, level, devices=(2, 3), values="finite"):
        self.worker, self.level, self.devices = worker, level, devices
        self.cut = True  # whether tensors are cut as well
        self.gpus = False  # whether kernels for GPUs are run: the worker has a driver for them
        self.calls = True  # whether those have library calls
        self.can_be_strict = "--strict-nan" in worker.run("partita-run", "--help").output
        self.expect(values)
        self.model = None  # what was compared last
        self.optimize = False  # whether LLVM improves the kernels, which takes most of the time
        self.counts = collections.Counter()
        self.times = collections.Counter()

    def expect(self, values):
        """Models of finite values, or of special ones: by default a library call with a fused function may make a number of a NaN."""
        self.values = values
        self.strict = values == "special" and self.can_be_strict
        self.lax = values == "special" and not self.can_be_strict

    # -- Partita ------------------------------------------------------------------------------------------------------------------------------------

    def command(self, what, *words):
        done = self.worker.run(*words)
        self.times[what] += done.ms
        if done.died or done.late or done.status not in (0, 1):
            raise Stop(Difference("crash", what, f"{done.reason()}: {done.errors.strip()[-300:]}"))
        if "cannot compile kernels" in done.errors:
            raise Stop(Difference("crash", what, first_error(done.errors)))
        if done.status:
            raise Stop(Difference("refusal", what, first_error(done.errors)))
        return done

    def artifact(self, name):
        return self.worker.folder / f"{name}.partita"

    def compile(self, name, *flags):
        model = self.worker.folder / "m.onnx"
        if not self.optimize:
            flags = "--no-optimize", *flags
        self.command(f"compile {name}", "partita-compile", model, "-o", self.artifact(name), "--cpu-level", self.level, "--quiet", *flags)

    def run(self, name, feed="in.npz"):
        out = self.worker.folder / "out.npz"
        out.unlink(missing_ok=True)
        strict = ["--strict-nan"] if self.strict else []
        self.command(f"run {name}", "partita-run", self.artifact(name), "--threads", "1", "--no-pin", "--input", self.worker.folder / feed,
                     "--output", out, *strict)
        return out

    def feed(self, model, name, feeds):
        np.savez(self.worker.folder / name, **{v.name: feeds[v.name] for v in model.inputs})

    # -- the check ----------------------------------------------------------------------------------------------------------------------------------

    def witness(self, model):
        """ONNX Runtime's tensors, and how they move; None, with the reason counted, if it refuses."""
        try:
            peer = Peer(model)
            feeds = {v.name: v.data for v in model.leaves if not hasattr(v, "fixed")}
            tensors = peer.run(feeds)
        except Refusal as refusal:
            self.counts["onnxruntime: " + str(refusal)] += 1
            return None, None, None
        return peer, feeds, tensors

    def finite(self, model, tensors):
        """What of a model is computed without a NaN or an infinity."""
        bad = {n for n, t in tensors.items() if not isinstance(t, list) and t.dtype.kind == "f" and not np.isfinite(t).all()}
        if not bad:
            return model
        nodes, lost = [], set()
        for node in model.nodes:
            names = {v.name for v in node.inputs if v is not None} | set(getattr(node, "captured", ()))
            if names & lost or any(v.name in bad for v in node.outputs):
                lost |= {v.name for v in node.outputs}
            else:
                nodes.append(node)
        used = {v.name for n in nodes for v in n.inputs if v is not None} | {n for node in nodes for n in getattr(node, "captured", ())}
        outputs = [v for n in nodes for v in n.outputs if v.name not in used and getattr(v, "tensor", True)]
        rest = Model(nodes, model.leaves, outputs, model.opset, model.ir_version)
        return rest if rest.outputs and rest.inputs else None

    def check(self, model):
        """Differences, the first of each kind; none if all agree. Counts what was compared."""
        peer, feeds, tensors = self.witness(model)
        if tensors is not None and self.values == "finite":
            whole, model = model, self.finite(model, tensors)
            if model is None:
                self.counts["not finite"] += 1
                return []
            if model is not whole:
                self.counts["cut where it is not finite"] += 1
        if tensors is not None:
            doubt_zeros(model, tensors, feeds)
        self.model = model
        (self.worker.folder / "m.onnx").write_bytes(model.proto().SerializeToString())
        self.feed(model, "in.npz", {v.name: v.data for v in model.inputs})
        self.counts["models"] += 1
        try:
            return self.compare(model, peer, feeds, tensors)
        except Stop as stop:
            if stop.difference.kind == "refusal":
                text = re.sub(r"node '[^']*': |'[^']*'|\d+", "", stop.difference.text)
                # It may be no valid model; but not if another runs it.
                who = "partita alone: " if tensors is not None else "partita: "
                self.counts[who + re.sub(r"^partita-(compile|run): error: ", "", text)[:140]] += 1
                return [] if stop.difference.where == "compile usual" and not self.compiles("--reference") else [stop.difference]
            return [stop.difference]

    def compiles(self, *flags):
        """Whether the model at hand does: then it is valid, whatever other flags make of it."""
        try:
            self.compile("again", *flags)
            return True
        except Stop:
            return False

    def moved_reference(self, model, still, noise):
        """The outputs by --reference when all leaves, constants too, are some roundings away from where they are."""
        leaves = moved(model.leaves, still, noise)
        for value in model.leaves:
            value.data, leaves[value.name] = leaves[value.name], value.data
        try:
            (self.worker.folder / "m.onnx").write_bytes(model.proto().SerializeToString())
            self.feed(model, "moved.npz", {v.name: v.data for v in model.inputs})
            self.compile("moved", "--reference")
            return load(self.run("moved", "moved.npz"), model.outputs)
        except Stop:
            return {}  # how many elements there are depends on the values
        finally:
            for value in model.leaves:
                value.data = leaves[value.name]
            (self.worker.folder / "m.onnx").write_bytes(model.proto().SerializeToString())

    def moves(self, model, peer, feeds, tensors):
        still, noise = unmoved(model), np.random.default_rng(1)
        if tensors is None:
            return Moves(lambda: self.moved_reference(model, still, noise), 1, 1)
        leaves = [v for v in model.leaves if v.name in feeds]
        return Moves(lambda: peer.run({**feeds, **moved(leaves, still, noise)}, noise, tensors), 2, 8)

    def compare(self, model, peer, feeds, tensors):
        found = []
        self.compile("usual")
        out = self.run("usual")
        bits = out.read_bytes()
        usual = load(out, model.outputs)
        self.compile("reference", "--reference")
        reference = load(self.run("reference"), model.outputs)
        moves, judges = self.moves(model, peer, feeds, tensors), {}
        eps, loose = roundings(model), loosened(model)
        factor = 1.0 if tensors is not None else 4.0
        for value in model.outputs:
            how = dict(eps=eps[value.name], loose=value.name in loose, factor=factor, terms=0.0 if tensors is not None else terms_of(value))
            name = value.name

            def judge(actual, value=value, how=how, name=name):
                shift = tensors is not None and value.is_float and not value.fuzzy
                return moves.explain(name, lambda all: difference(value, actual, reference[name], moves=[
                    m - tensors[name] + reference[name] if shift and m.shape == reference[name].shape else m for m in all], **how))

            judges[name] = judge
            text = judge(usual[name])
            if text and not self.lax:
                found.append(Difference("reference", name, text + " (as usual, and by --reference)"))
            if tensors is None:
                continue
            if value.doubt:
                self.counts["onnxruntime: " + value.doubt] += 1
                continue
            for word, result in (("as usual", usual), ("by --reference", reference))[self.lax:]:
                text = moves.explain(name, lambda all, result=result: difference(value, result[name], tensors[name], moves=all, other=True, **how))
                if text:
                    found.append(Difference("onnxruntime", name, f"{text} ({word}, and by ONNX Runtime)"))
                    break
        if tensors is not None:
            self.counts["compared with ONNX Runtime"] += 1
        for devices in self.devices:
            name = f"{devices} devices"
            self.compile(name, "--devices", str(devices))
            if self.run(name).read_bytes() != bits:
                found.append(Difference("devices", name, "other bits than on one device"))
        if self.devices and self.cut and not self.lax:
            found += self.compare_sharded(model, judges)
        if self.gpus and not self.lax:
            found += self.compare_gpus(judges)
        return found

    def compare_gpus(self, judges):
        """The kernels and calls for GPUs, on one device and on two; the worker's driver is an emulator."""
        bits, flags = None, () if self.calls else ("--no-library-calls",)
        for devices in (1, 2):
            name = "a GPU" if devices == 1 else f"{devices} GPUs"
            try:
                self.compile(name, "--target", "cuda:sm_90", "--devices", str(devices), *flags)
            except Stop as stop:
                if not NO_GPU_CODE.search(stop.difference.text):
                    raise
                self.counts["gpus: " + re.sub(r"^partita-compile: error: |node '[^']*': |'[^']*'", "", stop.difference.text)] += 1
                return []
            out = self.run(name)
            if devices == 1:
                bits, results = out.read_bytes(), load(out, self.model.outputs)
                texts = [Difference("gpu", n, f"{text} (on {name}, and by --reference)") for n, judge in judges.items() if (text := judge(results[n]))]
                if texts:
                    return texts[:1]
            elif out.read_bytes() != bits:
                return [Difference("gpu", name, "other bits than on one")]
        self.counts["computed for GPUs"] += 1
        return []

    def compare_sharded(self, model, judges):
        """Some inputs and weights cut over two or three devices: sums are added in another order."""
        noise = random.Random(zlib.crc32((self.worker.folder / "m.onnx").read_bytes()))
        devices = noise.choice((2, 2, 3))
        shards = {}
        for value in model.leaves:
            fitting = [d for d, size in enumerate(value.data.shape) if size and size % devices == 0]
            if fitting and noise.random() < 0.6:
                entry = ["null"] * value.data.ndim
                entry[noise.choice(fitting)] = "tensor"
                shards[value.name] = ", ".join(entry)
        split = self.worker.folder / "split.yaml"
        while shards:
            split.write_text(f"mesh: {{tensor: {devices}}}\nshard:\n" + "".join(f'  "{name}": [{dims}]\n' for name, dims in shards.items()))
            try:
                self.compile("sharded", "--partition", split)
            except Stop as stop:
                # What has folded away cannot be named.
                gone = re.search(r"no weight and no input matches '(\w+)'", stop.difference.text)
                if not gone:
                    raise
                del shards[gone[1]]
                continue
            self.counts["cut over devices"] += 1
            results = load(self.run("sharded"), model.outputs)
            texts = ((name, judge(results[name])) for name, judge in judges.items())
            return [Difference("sharded", name, f"{text} (over {devices} devices, {', '.join(shards)} cut)") for name, text in texts if text][:1]
        return []
