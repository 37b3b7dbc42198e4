"""Random models with gradients (run.py --gradients): the derivative of a loss to each input and each parameter, along random directions, against central
differences of the loss, which ONNX Runtime or ONNX's reference implementation computes in double precision, node by node (see differentiable.py). Then the same
gradients by --reference, on two and three devices (the same bits), with tensors cut over devices, and summed over micro-batches in pipelines of replicas.

Half of the models are compiled in f32 or f16 instead, as most are that are trained: their leaves are numbers of f32, so the differences are the same, and
library calls, which f64 has none of, are compared as well. Where two step sizes disagree, there is a kink or a jump nearby: another direction and a smaller
step are tried, and what stays without a number is counted. Of more than a small share of such the run fails.
"""

import collections
import contextlib
import pathlib
import random
import re
import time
import zlib

import numpy as np

from check import Checker, Difference, Stop
from differentiable import SHORT, Witness, make
from files import save
from graph import TYPES, Model, Node, Value
from shrink import Shrinker

STEPS = (1e-5, 1e-6, 1e-5, 1e-7)  # sizes of steps, in turn, until two halves agree
SKIPPED = 0.03  # the share of derivatives that may stay without a number
# How far gradients may be off, as a part of their length; a part of the sum that is the loss; and how far those of two compilations may be apart.
NEAR = {"f64": (1e-6, 0.0, 1e-6), "f32": (1e-3, 1e-5, 3e-3), "f16": (6e-2, 2e-3, 0.1)}
NEAR_SHORT = (3e-4, 1e-6, 3e-4)  # of f64, where something is computed in f32 nevertheless
# There, how far the gradient of a normalization may be off whose rows are of equal numbers: roundings, divided by the root of epsilon, where 0 would be right.
NEAR_ZERO = 3e-4
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb_h1", "zb_v", "looped", "sequential", "fill_drain")
# What cannot be summed, whatever the plan is.
NOT_SUMMED = re.compile(r"depends on no parameter|counts samples where gradients are summed")
PLAIN = {"sum", "output"}  # losses that are no more than a sum


def target_of(kind, out, noise):
    """What a loss compares with."""
    if kind in ("cross_entropy", "nll"):
        return noise.integers(0, out.shape[1], out.shape[0])
    if kind.startswith("bce"):
        return noise.uniform(0.05, 0.95, out.shape).astype(np.float32).astype(np.float64)
    return noise.uniform(-1.5, 1.5, out.shape).astype(np.float32).astype(np.float64)


def loss_value(kind, options, out, target):
    """A loss by its definition."""
    if kind in PLAIN:
        return out.sum()
    if kind in ("cross_entropy", "nll"):
        top = out.max(1, keepdims=True)
        logs = out - top - np.log(np.exp(out - top).sum(1, keepdims=True)) if kind == "cross_entropy" else out
        counts = target != options.get("ignore_index", -100)
        chosen = np.eye(out.shape[1])[np.where(counts, target, 0)] * counts[:, None]
        smooth = options.get("label_smoothing", 0.0)
        terms = -(((1 - smooth) * chosen + smooth / out.shape[1] * counts[:, None]) * logs).sum(1)
        return terms.sum() / (1 if options.get("reduction") == "sum" else counts.sum())
    if kind == "mse":
        terms = (out - target) ** 2
    elif kind == "l1":
        terms = np.abs(out - target)
    elif kind == "huber":
        apart, delta = np.abs(out - target), options.get("delta", 1.0)
        terms = np.where(apart < delta, apart * apart / 2, delta * (apart - delta / 2))
    elif kind == "bce":
        terms = -(target * np.log(out) + (1 - target) * np.log(1 - out))
    else:
        terms = np.logaddexp(0, out) - target * out
    return terms.sum() if options.get("reduction") == "sum" else terms.mean()


class Problem:
    """A model with a loss: `whole` is the model up to the output that the loss is of. Of a sum every element has a weight of its own, so that no
    cotangent is 1 everywhere."""

    def __init__(self, model, seed, witness):
        rng, noise = random.Random(seed), np.random.default_rng(seed)
        kind = rng.choices(("sum", "output", "mse", "l1", "huber", "bce", "bce_logits", "cross_entropy", "nll"), (12, 4, 2, 1, 1, 1, 1, 2, 1))[0]
        self.nodes, self.leaves, self.witness, self.names = list(model.nodes), list(model.leaves), witness, 0
        parts = []
        for end in model.outputs:
            if kind in PLAIN:
                # The weights belong to the end, so that they stay while the model shrinks.
                own = np.random.default_rng(zlib.crc32(end.name.encode()))
                k = self.leaf(f"k_{end.name}", own.uniform(0.3, 1.5, end.shape) * own.choice([-1.0, 1.0], end.shape))
                end = self.node("Mul", [end, k], end.shape)
            parts.append(self.node("Reshape", [end, self.leaf(f"flat_{end.name}", np.array([-1]))], [end.size]))
        out = parts[0] if len(parts) == 1 else self.node("Concat", parts, [sum(p.size for p in parts)], axis=0)
        self.options = {}
        if kind in ("cross_entropy", "nll"):
            classes = next((k for k in (5, 4, 3, 2, 7) if out.size % k == 0 and out.size > k), None)
            if classes is None:
                kind = "mse"
            else:
                out = self.node("Reshape", [out, self.leaf("rows", np.array([-1, classes]))], [out.size // classes, classes])
        if kind == "bce":
            out = self.node("Sigmoid", [out], out.shape)
        if kind == "output":
            out = self.node("ReduceSum", [out], [], keepdims=0)
        if kind not in PLAIN and rng.random() < 0.4:
            self.options["reduction"] = "sum"
        if kind == "huber":
            self.options["delta"] = rng.choice((0.5, 1.25))
        if kind == "cross_entropy" and rng.random() < 0.4:
            self.options["label_smoothing"] = 0.25
        self.kind, self.out = kind, out
        self.target = None if kind in PLAIN else target_of(kind, np.empty(out.shape), noise)
        if kind in ("cross_entropy", "nll") and rng.random() < 0.5 and len(set(self.target)) > 1:
            self.options["ignore_index"] = int(self.target[0])
        self.whole = Model(self.nodes, self.leaves, [out], model.opset, model.ir_version)
        self.spec = f"{kind}:{out.name}" + "".join(f",{k}={v}" for k, v in self.options.items())

    def leaf(self, name, array):
        floats = array.dtype.kind == "f"
        value = Value(name, "f64" if floats else "i64", array.shape, data=array.astype(np.float32).astype(np.float64) if floats else array)
        value.constant, value.at = True, array
        if not floats:
            value.fixed = True
        self.leaves.append(value)
        return value

    def node(self, op, inputs, shape, **attributes):
        self.names += 1
        value = Value(f"z{self.names}", "f64", shape)
        value.node = Node(op, inputs, [value], attributes)
        self.nodes.append(value.node)
        return value

    def loss(self, leaves):
        """The loss, and about the largest sum on the way to it."""
        out = self.witness.forward(self.whole, leaves)[self.out.name]
        return float(loss_value(self.kind, self.options, out, self.target)), float(np.abs(out).sum())

    @contextlib.contextmanager
    def typed(self, dtype):
        """The model as one of other floats, for as long as it is written."""
        values = [v for v in [*self.whole.leaves, *(v for n in self.whole.nodes for v in n.outputs)] if v.dtype == "f64"]
        kept = [v.data for v in values]
        try:
            for v in values:
                v.dtype, v.data = dtype, None if v.data is None else v.data.astype(TYPES[dtype][0])
            yield
        finally:
            for v, data in zip(values, kept):
                v.dtype, v.data = "f64", data


class GradientChecker(Checker):
    def __init__(self, worker, level):
        super().__init__(worker, level)
        self.witness = Witness()
        self.moved = None  # gradients of moved inputs of the model at hand

    # -- differences of the loss --------------------------------------------------------------------------------------------------------------------

    def slope(self, problem, leaves, name, noise):
        """A direction, how much the loss grows along it, and what of that is rounding; None for a number where none was found."""
        start, size = problem.loss(leaves)
        for step in STEPS:
            direction = noise.standard_normal(leaves[name].shape)
            at = lambda t: problem.loss({**leaves, name: leaves[name] + t * direction})[0]
            whole, half = [at(step), at(-step)], [at(step / 2), at(-step / 2)]
            rounding = 60 * 2.0**-52 * (1 + size + abs(start)) / step
            first, second = (whole[0] - whole[1]) / (2 * step), (half[0] - half[1]) / step
            # A kink at the point itself has equal slopes for both steps; its curvature tells it.
            bent = abs((half[0] + half[1] - 2 * start) - (whole[0] + whole[1] - 2 * start) / 4) * 2 / step
            allowed = 2e-7 * max(abs(first), abs(second)) + 4 * rounding
            if np.isfinite(first + second) and abs(first - second) <= allowed and bent <= allowed:
                return direction, (4 * second - first) / 3, rounding
        return None, None, None

    # -- what is compared ---------------------------------------------------------------------------------------------------------------------------

    def results(self, name, feed="in.npz"):
        with np.load(self.run(name, feed)) as archive:
            return {n: archive[n] for n in archive.files}

    def moves(self, usual, name):
        """Where a gradient that short floats compute goes when inputs are a rounding away: with terms that cancel it is mostly rounding."""
        if self.moved is None:
            noise, self.moved = np.random.default_rng(1), []
            rounding = lambda dtype: max(np.finfo(dtype).eps, np.finfo(np.float32).eps)  # some ops compute doubles in f32
            with np.load(self.worker.folder / "in.npz") as archive:
                feeds = {n: archive[n] for n in archive.files}
            for _ in range(6):
                moved = {n: a if a.dtype.kind != "f" else (a * (1 + rounding(a.dtype) * noise.uniform(-1, 1, a.shape))).astype(a.dtype) for n, a in feeds.items()}
                np.savez(self.worker.folder / "moved.npz", **moved)
                self.moved.append(self.results("usual", "moved.npz"))
        return [m[name].astype(np.float64) - usual[name].astype(np.float64) for m in self.moved]

    def compile_gradients(self, name, *flags):
        self.compile(name, "--gradients", "inputs", "--loss", self.problem.spec, *flags)

    def check_gradients(self, model, seed):
        """Differences of a model, the first of each kind."""
        rng, noise = random.Random(seed), np.random.default_rng(seed)
        dtype, variants = rng.choices(("f64", "f32", "f16"), (50, 40, 10))[0], rng.sample(("reference", "2 devices", "3 devices", "tensors", "cut", "summed"), 2)
        self.problem = problem = Problem(model, seed, self.witness)
        whole = self.model = problem.whole
        leaves = {v.name: v.data for v in whole.leaves}
        loss, size = problem.loss(leaves)
        if not np.isfinite(loss):
            self.counts["skip: not finite"] += 1
            return []
        if problem.kind == "bce" and not 1e-3 < (p := self.witness.forward(whole, leaves)[problem.out.name]).min() <= p.max() < 1 - 1e-3:
            self.counts["skip: 1 - p has too few digits"] += 1
            return []
        with problem.typed(dtype):
            (self.worker.folder / "m.onnx").write_bytes(whole.proto().SerializeToString())
            feeds = {v.name: v.data for v in whole.inputs}
        if problem.target is not None:
            feeds["target"] = problem.target if problem.target.dtype.kind == "i" else problem.target.astype(TYPES[dtype][0])
        np.savez(self.worker.folder / "in.npz", **feeds)
        self.counts["models"] += 1
        self.moved = None
        self.counts[f"in {dtype}"] += 1
        near = NEAR_SHORT if dtype == "f64" and any(n.op in SHORT for n in whole.nodes) else NEAR[dtype]
        try:
            self.compile_gradients("usual")
            usual = self.results("usual")
        except Stop as stop:
            return self.stopped(stop)
        found = self.compare_slopes(problem, usual, leaves, loss, size, near, dtype, noise)
        if not found:
            try:
                for variant in variants:
                    found += self.compare_variant(variant, usual, near)
            except Stop as stop:
                return self.stopped(stop)
        return found

    def stopped(self, stop):
        difference = stop.difference
        if difference.kind != "refusal":
            return [difference]
        text = re.sub(r"node '[^']*'|'[^']*'|\d+", "", difference.text)
        if "depends on no parameter" in difference.text:
            self.counts["skip: the loss depends on nothing"] += 1
            return []
        if difference.where == "compile usual" and not self.compiles("--reference"):
            self.counts["skip: refused without gradients, too: " + text[:100]] += 1
            return []
        self.counts["refused: " + text[:120]] += 1
        return [difference]

    def compare_slopes(self, problem, usual, leaves, loss, size, near, dtype, noise):
        if not abs(float(usual["loss"]) - loss) <= (1e-9 if near == NEAR["f64"] else near[0] / 3) * (1 + abs(loss) + size):
            return [Difference("loss", "loss", f"{usual['loss']}, and {loss} by its definition")]
        # Scalars, statistics, and constants that are nodes are no parameters.
        written = {t.name for t in problem.whole.proto().graph.initializer}
        untrained = {v.name for v in problem.whole.leaves if v.constant and v.name not in written}
        untrained |= {v.name for n in problem.whole.nodes if n.op == "BatchNormalization" for v in n.inputs[3:5]}
        for value in problem.whole.leaves:
            if value.dtype != "f64" or hasattr(value, "fixed"):
                continue
            have = usual.get(f"{value.name}.grad")
            if have is None and value.constant and (not value.shape or value.name in untrained):
                self.counts["not trained"] += 1
                continue
            have = np.zeros(value.shape) if have is None else have.astype(np.float64)
            if have.shape != value.shape:
                return [Difference("shape", value.name, f"{have.shape} instead of {value.shape}")]
            direction, wanted, rounding = self.slope(problem, leaves, value.name, noise)
            if wanted is None:
                self.counts["derivatives without a number"] += 1
                continue
            self.counts["derivatives"] += 1
            along, length = float(np.sum(have * direction)), float(np.linalg.norm(have))
            allowed = near[0] * max(abs(wanted), abs(along), length) + near[1] * (1 + size) + rounding
            if near == NEAR_SHORT:
                allowed += NEAR_ZERO
            if near != NEAR["f64"] and abs(along - wanted) > allowed and f"{value.name}.grad" in usual:
                self.counts["asked how far roundings go"] += 1
                allowed += 4 * max(abs(float(np.sum(m * direction))) for m in self.moves(usual, f"{value.name}.grad"))
            if not abs(along - wanted) <= allowed:
                return [Difference("slope", value.name, f"{wanted:.9g} along a direction, and {along:.9g} by the gradient "
                                                        f"(of length {length:.4g}; {problem.spec}; {dtype})")]
        return []

    def compare_variant(self, variant, usual, near):
        self.counts[variant] += 1
        if variant.endswith("devices"):
            self.compile_gradients(variant, "--devices", variant[0])
            other = self.results(variant)
            wrong = [n for n in usual if n not in other or other[n].tobytes() != usual[n].tobytes()]
            return [Difference("devices", f"{variant}, {n}", "other bits than on one device") for n in wrong[:1]]
        if variant == "summed":
            return self.compare_summed(usual, near)
        if variant == "reference":
            self.compile_gradients(variant, "--reference")
        elif variant == "tensors":
            self.compile_gradients(variant, "--tensor-parallel", "2")
        elif not self.compile_cut(variant):
            return []
        other = self.results(variant)
        if set(other) != set(usual):
            return [Difference(variant, "outputs", f"{sorted(set(other) ^ set(usual))} are not in both")]
        for name, array in usual.items():
            length = float(np.linalg.norm(array.astype(np.float64)))
            apart = float(np.linalg.norm(other[name].astype(np.float64) - array.astype(np.float64))) if other[name].shape == array.shape else np.inf
            allowed = near[2] * max(length, 1e-2)
            if variant == "reference" and near == NEAR["f16"] and np.isfinite(length) and np.isnan(apart):
                self.counts["rounded to where there is no derivative"] += 1  # halves are rounded after each op there, a cube of 0.002 to 0
                continue
            if near[2] > 1e-6 and apart > allowed and np.isfinite(apart):
                self.counts["asked how far roundings go"] += 1
                allowed += 4 * max(float(np.linalg.norm(m)) for m in self.moves(usual, name))
            if not apart <= allowed:
                return [Difference(variant, name, f"is {apart:.3g} away, and {length:.4g} long")]
        return []

    def compare_summed(self, usual, near):
        """Over micro-batches of the same samples, on a random mesh: a sum is so many times that of one, and a mean is that."""
        draw = random.Random(zlib.crc32((self.worker.folder / "m.onnx").read_bytes()))
        batches, stages, tensor = draw.choice((1, 2, 4, 4)), draw.choice((1, 2, 2, 3)), draw.choice((1, 1, 2))
        replicas = draw.choice([d for d in (1, 2, 4) if batches % d == 0])
        flags = ["--micro-batches", str(batches), "--devices", str(replicas * stages * tensor)]
        for flag, size in (("--data-parallel", replicas), ("--tensor-parallel", tensor)):
            flags += (flag, str(size)) if size > 1 else ()
        if stages > 1 and draw.random() < 0.8:
            flags += ("--schedule", draw.choice(SCHEDULES))
        for share, option in ((0.15, ("--reference",)), (0.15, ("--no-library-calls",)), (0.2, ("--fusion-bytes", "64"))):
            flags += option if draw.random() < share else ()
        try:
            self.compile("summed", "--gradients", "--loss", self.problem.spec, *flags)
        except Stop as stop:
            if stop.difference.kind == "refusal" and NOT_SUMMED.search(stop.difference.text):
                self.counts["skip: not summed over micro-batches"] += 1
                return []
            raise
        with np.load(self.worker.folder / "in.npz") as archive:
            np.savez(self.worker.folder / "many.npz", **{n: np.concatenate([archive[n]] * batches) if batches > 1 else archive[n] for n in archive.files})
        times = batches if self.problem.kind == "sum" or self.problem.options.get("reduction") == "sum" else 1
        for name, array in self.results("summed", "many.npz").items():
            wanted = times * usual[name].astype(np.float64)
            length, apart = float(np.linalg.norm(wanted)), float(np.linalg.norm(array.astype(np.float64) - wanted))
            allowed = near[2] * max(length, 1e-2)
            if near[2] > 1e-6 and apart > allowed and np.isfinite(apart):
                allowed += 4 * times * max(float(np.linalg.norm(m)) for m in self.moves(usual, name))
            if not apart <= allowed and np.isfinite(length):
                return [Difference("summed", name, f"is {apart:.3g} away, and {length:.4g} long, by {' '.join(flags)}")]
        self.counts["with sums over micro-batches"] += 1
        return []

    def compile_cut(self, variant):
        """Some inputs and weights cut over two or three devices; whether any is."""
        noise = random.Random(zlib.crc32((self.worker.folder / "m.onnx").read_bytes()))
        devices, shards = noise.choice((2, 2, 3)), {}
        for value in self.model.leaves:
            fitting = [d for d, size in enumerate(value.shape) if size and size % devices == 0]
            if fitting and noise.random() < 0.6 and value.dtype == "f64":
                entry = ["null"] * value.rank
                entry[noise.choice(fitting)] = "tensor"
                shards[value.name] = ", ".join(entry)
        split = self.worker.folder / "split.yaml"
        while shards:
            split.write_text(f"mesh: {{tensor: {devices}}}\nshard:\n" + "".join(f'  "{name}": [{dims}]\n' for name, dims in shards.items()))
            try:
                self.compile_gradients(variant, "--partition", split)
            except Stop as stop:
                gone = re.search(r"no weight and no input matches '(\w+)'", stop.difference.text)
                if not gone:
                    raise
                del shards[gone[1]]
                continue
            self.counts["with tensors cut"] += 1
            return True
        return False


def shrunk(checker, model, seed, wanted, most):
    def fails(candidate):
        kept, checker.counts = checker.counts, collections.Counter()
        try:
            return any(d.kind == wanted.kind for d in checker.check_gradients(candidate, seed))
        finally:
            checker.counts = kept
    tensors = checker.witness.forward(model, {v.name: v.data for v in model.leaves})
    for node in model.nodes:
        for value in node.outputs:
            value.low = None
    return Shrinker(fails, {n: t for n, t in tensors.items() if t.dtype == np.float64}, most).shrink(model)


def check(worker, level, options):
    """Runs run.py's models and seeds; the exit status."""
    checker, begin, texts, done, last = GradientChecker(worker, level), time.monotonic(), [], 0, 0.0
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.models)
    for seed in seeds:
        if (options.seconds is not None and time.monotonic() - begin > options.seconds) or len(texts) >= options.most:
            break
        if seed in options.skip:
            continue
        checker.optimize = seed % 8 == 0
        model = None
        try:
            at = time.monotonic()
            model = make(seed, checker.witness, options.only)
            checker.times["generate"] += (time.monotonic() - at) * 1000
            found = checker.check_gradients(model, seed)
        except Exception as error:
            texts.append(f"seed {seed}: the test itself fails: {type(error).__name__}: {error}")
            print(texts[-1], flush=True)
            continue
        done += 1
        if found:
            words = f"seed {seed}: " + "; ".join(map(str, found))
            model = shrunk(checker, model, seed, found[0], options.shrink)
            if options.keep:
                # With the loss: it is a part of what differs.
                kept = save(Problem(model, seed, checker.witness).whole, pathlib.Path(options.keep) / f"gradients-{found[0].kind.replace(' ', '-')}-{seed}", words)
                words += f"\nkept as {kept}"
            texts.append(words)
            print(f"{words}\n{model.text()}", flush=True)
        elif options.seed is not None:
            print(f"{model.text()}\nno difference")
        elif options.progress and time.monotonic() - last > 30:
            last = time.monotonic()
            print(f"{done} models, {len(texts)} differ, {last - begin:.0f} s", flush=True)
    seconds = time.monotonic() - begin
    print(f"{done} models with gradients in {seconds:.0f} s ({1000 * seconds / max(done, 1):.0f} ms each), "
          f"{checker.counts['derivatives']} derivatives; {len(texts)} differ")
    print("milliseconds a model: " + ", ".join(f"{what} {ms / max(done, 1):.1f}" for what, ms in sorted(checker.times.items(), key=lambda row: -row[1])))
    print("\n".join(f"{n:6} {what}" for what, n in sorted(checker.counts.items(), key=lambda row: -row[1])))
    skipped, all = checker.counts["derivatives without a number"], checker.counts["derivatives"]
    if skipped > 3 and skipped > SKIPPED * (all + skipped):
        print(f"{skipped} of {all + skipped} derivatives have no number to be compared with: too many")
        return 1
    return int(bool(texts))
