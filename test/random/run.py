#!/usr/bin/env python3
"""Random models, each computed as usual, by --reference, by ONNX Runtime, on two and three devices, and with tensors cut over devices: all must agree but
for rounding, and the numbers of devices bit for bit.

    run.py                             the bounded run of the test command: what was found before, then models of fixed seeds
    run.py --models 50000 --jobs 2     more, with progress; --first SEED goes on from there
    run.py --values special            leaves with NaN, infinities and the largest numbers, under --strict-nan
    run.py --seed 1234                 one model: its text, and what differs
    run.py --samples                   models over samples, in half of which they are combined: in pieces against the whole (see samples.py)
    run.py --gradients                 models with a loss: gradients against differences of the loss, and in every way against each other (see gradients.py)
    run.py --gpu                       also for GPUs, on one and two of them, on test/gpu-emulator, with library calls and without
    run.py --only conv,matmul          only models of these makers (see generate.py)

What differs is shrunk to the smallest model that shows it, which is printed and written to --keep DIR. Exit status 1 if something differs, 77 if ONNX
Runtime is not installed. ONEDNN_MAX_CPU_ISA=AVX2 is honoured, with kernels held to x86-64-v3.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing.util
import os
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "worker"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import numpy  # noqa: F401
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing} (tools/setup.sh installs it)")
    sys.exit(77)

from check import Checker
from coverage import Coverage
from files import load, save
from generate import generate
from shrink import Shrinker
from worker import Worker

FOUND = HERE / "found"
EMULATOR = pathlib.Path(os.environ.get("PARTITA_GPU_EMULATOR", HERE.parents[1] / "build" / "test" / "gpu-emulator" / "lib"))
OPTIMIZED = 8  # the kernels of one model in so many are what ordinary compilations make; those of others come without LLVM's optimizations


def cpu_level():
    if os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper().startswith("AVX2"):
        return "v3"
    flags = set(re.findall(r"\w+", pathlib.Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0]))
    return "v4" if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags else "v3"


class Runner:
    """What one process does: it has a worker of its own."""

    def __init__(self, options):
        self.options = options
        # Streams run late there, and blocks in an order of their own.
        gpus = {"LD_LIBRARY_PATH": str(EMULATOR), "CUDA_EMU_SEED": "1", "CUDA_EMU_DEVICES": "2", "CUDA_EMU_QUIET": "1", "CUDA_EMU_THREADS": "1", "PARTITA_CACHE": ""}
        self.worker = Worker(gpus if options.gpu else None, timeout=options.timeout)
        multiprocessing.util.Finalize(None, self.worker.close, exitpriority=1)  # in processes of a pool, too
        self.checker = Checker(self.worker, cpu_level(), values=options.values)
        self.checker.gpus = options.gpu
        self.coverage = Coverage()

    def one(self, seed):
        """The text of what differs for a seed; "" if nothing does."""
        begin = time.monotonic()
        self.checker.optimize = seed % OPTIMIZED == 0
        self.checker.cut = seed // OPTIMIZED % self.options.cut_every == 0
        self.checker.calls = seed % 2 == 0
        model = generate(seed, self.options.values, self.options.zero, self.options.only)
        self.checker.times["generate"] += (time.monotonic() - begin) * 1000
        found = self.checker.check(model)
        self.coverage.add(self.checker.model, self.worker, self.checker.artifact("usual"), seed)
        if not found:
            return ""
        shrunk = self.shrunk(model, found[0])
        words = f"seed {seed}: " + "; ".join(map(str, found))
        if self.options.keep:
            kept = save(shrunk, pathlib.Path(self.options.keep) / f"{found[0].kind}-{seed}", words)
            words += f"\nkept as {kept}"
        return f"{words}\n{shrunk.text()}"

    def shrunk(self, model, wanted):
        def fails(candidate):
            counts, self.checker.counts = self.checker.counts, collections.Counter()
            devices, self.checker.devices = self.checker.devices, self.checker.devices if wanted.kind in ("devices", "sharded", "crash", "refusal") else ()
            try:
                return any(d.kind == wanted.kind for d in self.checker.check(candidate))
            finally:
                self.checker.counts, self.checker.devices = counts, devices
        _, _, tensors = self.checker.witness(model)
        return Shrinker(fails, tensors, self.options.shrink).shrink(model)

    def part(self, seeds):
        """The seeds' differences, and what was counted on the way."""
        self.checker.counts.clear()
        self.checker.times.clear()
        self.coverage.clear()
        texts = []
        for seed in seeds:
            if seed in self.options.skip:
                continue
            try:
                texts.append(self.one(seed))
            except Exception as error:
                texts.append(f"seed {seed}: the test itself fails: {type(error).__name__}: {error}")
        return [t for t in texts if t], dict(self.checker.counts), dict(self.checker.times), self.coverage.result()


runner = None


def start(options):
    global runner
    runner = Runner(options)


def part(seeds):
    return runner.part(seeds)


def check_found(runner):
    """The models that showed something once."""
    texts = []
    for path in sorted([*FOUND.glob("*.onnxtxt"), *FOUND.glob("*.onnx")]):
        model, note = load(path)
        runner.checker.expect("special" if "special" in path.name else "finite")
        found = runner.checker.check(model)
        texts += [f"{path.name} ({note.partition(':')[0]}): {d}" for d in found]
    runner.checker.expect(runner.options.values)
    return texts


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=400, help="how many models (default: 400)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="only the model of this seed, with its text")
    parser.add_argument("--seconds", type=float, help="begin no more models after this time")
    parser.add_argument("--jobs", type=int, default=1, help="processes; each keeps one core busy")
    parser.add_argument("--values", choices=("finite", "special"), default="finite")
    parser.add_argument("--cut-every", type=int, default=1, metavar="N", help="tensors are cut over devices in one model of N (default: 1)")
    parser.add_argument("--zero", action=argparse.BooleanOptionalAction, default=False, help="dimensions of 0 as well")
    parser.add_argument("--only", type=lambda text: text.split(","), help="makers, comma-separated")
    parser.add_argument("--gpu", action="store_true", help="for GPUs as well, on the emulator")
    parser.add_argument("--samples", action="store_true", help="models over samples, run in pieces")
    parser.add_argument("--gradients", action="store_true", help="models with a loss and its gradients")
    parser.add_argument("--progress", action="store_true", help="with --gradients: a line now and then")
    parser.add_argument("--keep", help="folder for the smallest models")
    parser.add_argument("--shrink", type=int, default=150, help="most attempts to shrink a model")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one compilation or run")
    parser.add_argument("--coverage", action="store_true", help="print all that was covered")
    parser.add_argument("--skip", type=lambda text: {int(s) for s in text.split(",") if s}, default=set(), help="seeds to leave out, comma-separated")
    parser.add_argument("--no-found", action="store_true", help="leave out what was found before")
    parser.add_argument("--most", type=int, default=20, help="stop after so many differences")
    return parser.parse_args()


def main():
    options = parse()
    if options.keep:
        pathlib.Path(options.keep).mkdir(parents=True, exist_ok=True)
    if options.gpu and not (EMULATOR / "libcuda.so.1").exists():
        print(f"skipped: no emulator at {EMULATOR} (set PARTITA_GPU_EMULATOR)")
        return 77
    if options.samples:
        import samples
        with Worker(timeout=options.timeout) as worker:
            return samples.check(worker, cpu_level(), options)
    if options.gradients:
        import gradients
        with Worker(timeout=options.timeout) as worker:
            return gradients.check(worker, cpu_level(), options)
    begin = time.monotonic()
    texts, counts, times, coverage = [], collections.Counter(), collections.Counter(), Coverage()
    if options.seed is not None:
        start(options)
        print(generate(options.seed, options.values, options.zero, options.only).text())
        texts = [runner.one(options.seed)]
        print(texts[0] or "no difference")
        return bool(texts[0])
    done = 0

    def take(result):
        nonlocal done
        found, some, spent, covered = result
        texts.extend(found)
        counts.update(some)
        times.update(spent)
        coverage.join(covered)
        for text in found:
            print(text, flush=True)

    size = 20
    parts = [range(s, min(s + size, options.first + options.models)) for s in range(options.first, options.first + options.models, size)]
    late = lambda: options.seconds is not None and time.monotonic() - begin > options.seconds
    if options.jobs == 1:
        start(options)
        if not options.no_found:
            texts += check_found(runner)
            print("\n".join(texts))
        for seeds in parts:
            if late() or len(texts) >= options.most:
                break
            take(part(seeds))
            done += len(seeds)
    else:
        with concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=start, initargs=(options,)) as pool:
            waiting, queue = set(), iter(parts)
            while True:
                while len(waiting) < 2 * options.jobs and not late() and len(texts) < options.most and (seeds := next(queue, None)):
                    waiting.add(pool.submit(part, seeds))
                if not waiting:
                    break
                ready, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in ready:
                    take(future.result())
                    done += size
                seconds = time.monotonic() - begin
                print(f"\r{done} models, {len(texts)} differ, {seconds:.0f} s, {1000 * seconds * options.jobs / done:.0f} ms each and core ", end="", file=sys.stderr)
            print(file=sys.stderr)
    seconds = time.monotonic() - begin
    if options.values == "special" and runner and runner.checker.lax:
        print("partita-run has no --strict-nan: results as usual were not compared")
    summary(options, done, texts, counts, times, coverage, seconds)
    return bool(texts)


def summary(options, done, texts, counts, times, coverage, seconds):
    print(f"{done} models in {seconds:.0f} s on {options.jobs} core{'s' * (options.jobs > 1)} ({1000 * seconds * options.jobs / max(done, 1):.0f} ms each), "
          f"{counts.pop('compared with ONNX Runtime', 0)} of them with ONNX Runtime, {counts.pop('computed for GPUs', 0)} for GPUs; {len(texts)} differ")
    print("milliseconds a model: " + ", ".join(f"{what} {ms / max(done, 1):.1f}" for what, ms in sorted(times.items(), key=lambda row: -row[1])))
    for prefix, words in (("partita alone: ", "Partita refuses what ONNX Runtime runs"), ("partita: ", "Partita refuses, as ONNX Runtime does"), ("gpus: ", "No code for GPUs"), ("onnxruntime: ", "ONNX Runtime refuses, or is no witness")):
        rows = sorted(((n, text[len(prefix):]) for text, n in counts.items() if text.startswith(prefix)), reverse=True)
        if rows:
            print(f"{words}:")
            print("\n".join(f"{n:6} {text}" for n, text in (rows if options.coverage else rows[:12])))
    print(coverage.text(options.coverage))


if __name__ == "__main__":
    sys.exit(main())
