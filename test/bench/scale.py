#!/usr/bin/env python3
"""How compiling, the proof and loading grow with the number of micro-batches: GPT-2 over 64 devices, with 8 and with 512.

    scale.py [--stages 64] [--micro-batches 8 512] [--rounds 3] [--layers 12] [--width 64] [--train SCHEDULE] [--processes 4] [--json FILE]

The model is GPT-2 as exporters write it, of the given layers and width, with weights that are all the same: what is measured does not depend on them.
Times are those of the processor (user and system), medians over the rounds, which take turns: to compile, without kernels that the cache has; to print
the plan (`partita-run --plan`), which reads, verifies and proves it; and to run one step of one micro-batch over all devices in one process, which loads
them. "bytes a step" is what each further step of a program adds to the artifact. Memory is the peak of a process of `mpirun -n PROCESSES`, over as many
devices, with the fewest and the most micro-batches. With --train a plan that learns by SCHEDULE is compiled and proven; it is not run. Needs onnx and
numpy.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from language_models import Gpt2

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
TOKENS, WORDS = 8, 512

def seconds(*words):
    """Of the processor, for a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def steps_of(model, *flags):
    text = subprocess.run([BIN / "partita-compile", model, *flags, "--emit", "plan"], check=True, capture_output=True, text=True).stdout
    return len(re.findall(r"^\s*plan\.(run|send|recv|wait|release|load_input|store_output)\b", text, re.M))


def peak_kib(processes, *words):
    """The largest memory of one of the processes."""
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); " \
             "print('KiB', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(processes), sys.executable, "-c", script, *map(str, words)],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return max(int(k) for k in re.findall(r"KiB (\d+)", done.stdout))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=int, default=64)
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[8, 512])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768, help="of the model; a multiple of 64")
    parser.add_argument("--train", metavar="SCHEDULE", help="compile plans that learn, e.g. by 1f1b")
    parser.add_argument("--processes", type=int, default=4, help="of mpirun, for the memory of one; 0: leave it out")
    parser.add_argument("--json")
    options = parser.parse_args()
    few, *_, many = sorted(options.micro_batches)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = folder / "gpt2.onnx"
        onnx.save(Gpt2(options.layers, options.width, TOKENS, WORDS).model, model)
        one = folder / "one.npy"
        np.save(one, np.zeros((1, TOKENS), np.int64))
        learn = ("--loss", "sum:logits", "--optimizer", "sgd,learning_rate=0.1", "--schedule", options.train) if options.train else ()
        flags = {m: ("--devices", options.stages, "--micro-batches", m, "--dim", "batch=1", "--quiet", *learn) for m in options.micro_batches}
        art = {m: folder / f"{m}.partita" for m in options.micro_batches}
        times = {m: {"compile": [], "proof": [], "load and run": []} for m in options.micro_batches}
        for m in options.micro_batches:
            seconds(BIN / "partita-compile", model, *flags[m], "-o", art[m])  # the cache has the kernels from now on
        for _ in range(options.rounds):
            for m in options.micro_batches:
                times[m]["compile"].append(seconds(BIN / "partita-compile", model, *flags[m], "-o", art[m]))
                times[m]["proof"].append(seconds(BIN / "partita-run", art[m], "--plan"))
                times[m]["load and run"].append(0.0 if options.train else seconds(BIN / "partita-run", art[m], "--threads", 1, "--no-pin", "--input", one))
        medians = {m: {what: statistics.median(values) for what, values in row.items()} for m, row in times.items()}
        steps = {m: steps_of(model, *map(str, flags[m])) for m in (few, many)}
        sizes = {m: art[m].stat().st_size for m in (few, many)}
        step_bytes = (sizes[many] - sizes[few]) / max(1, steps[many] - steps[few])
        memory = {}
        if options.processes and not options.train:
            for m in (few, many):
                cut = folder / "cut.partita"
                seconds(BIN / "partita-compile", model, "--devices", options.processes, "--micro-batches", m, "--dim", "batch=1", "--quiet", "-o", cut)
                memory[m] = peak_kib(options.processes, BIN / "partita-run", cut, "--threads", 1, "--no-pin", "--input", one)
    print(f"{'micro-batches':>13}  {'compile':>9}  {'proof':>9}  {'load, run':>9}  {'sum':>9}  {'memory':>10}")
    for m, row in medians.items():
        kib = f"{memory[m] / 1024:.1f} MiB" if m in memory else ""
        print(f"{m:>13}  {row['compile']:7.2f} s  {row['proof']:7.3f} s  {row['load and run']:7.2f} s  {sum(row.values()):7.2f} s  {kib:>10}")
    print(f"{many} beside {few} micro-batches: {sum(medians[many].values()) / sum(medians[few].values()):.2f} times the time; {step_bytes:.1f} bytes a step")
    if options.json:
        found = {"seconds": medians, "steps": steps, "bytes": sizes, "bytes_per_step": step_bytes, "kib": memory}
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
