#!/usr/bin/env python3
"""Compiles for GPUs, without one: models, the node tests of the ONNX backend suite, and an example of every op. ptxas assembles all kernels.

    kernels.py models               the models of test/executed, by kernels alone for one architecture and with library calls for another, in turns
    kernels.py suite                each fourth case of the ONNX suite that passes on the CPU, for sm_90
    kernels.py examples             the examples of all ops, and attention by calls, for one architecture each, in turns; holds docs/cuda-ops.md against what
                                    compiles
    kernels.py examples --update    the same, and writes docs/cuda-ops.md

What does not compile must say why: an error names the op and the node. Kernels may spill as much as MOST_SPILLED says, and the test prints which do.
With PARTITA_TEST_ALL=1 nothing is left out, and each is compiled for all architectures. Skipped without ptxas (tools/setup.sh installs it), but for what
needs none.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

import calls
from ptx import ARCHITECTURES, assemble, find_ptxas, merge, sections
from examples import examples

from harness import ALL, BIN, REPOSITORY, SKIPPED, Failure, data_folder, main, run, some
import backend
import models as executed

MOST_SPILLED = 0  # bytes of a kernel
BATCH = 40  # modules that are assembled as one
TABLE = REPOSITORY / "docs" / "cuda-ops.md"
KERNELS = "--no-library-calls"  # there is a kernel also of what a library computes
REFUSED = re.compile(r"'nn\.(\w+)' of node '[^']*' has no kernel for CUDA devices|'(\w+)' of '\w+' has no code for CUDA devices")


class Modules:
    """PTX that waits to be assembled, and what was."""

    def __init__(self, ptxas, folder):
        self.ptxas, self.folder = ptxas, folder
        self.waiting = collections.defaultdict(list)
        self.kernels, self.spilled, self.wrong = collections.Counter(), [], []

    def add(self, what, artifact):
        for number, text in sections(artifact):
            if ".extern" in text:
                self.wrong.append(f"{what}: " + text[text.index(".extern") :].splitlines()[0])
            waiting = self.waiting[f"sm_{number}"]
            waiting.append((what, text))
            if len(waiting) == BATCH:
                self.flush(f"sm_{number}")

    def flush(self, architecture):
        waiting = self.waiting.pop(architecture, [])
        if not self.ptxas or not waiting:
            return
        try:
            self.record(architecture, waiting, merge([text for _, text in waiting]))
        except Failure:
            for what, text in waiting:  # which one it is
                try:
                    self.record(architecture, [(what, text)], text)
                except Failure as failure:
                    self.wrong.append(f"{what}: {failure}")

    def record(self, architecture, waiting, text):
        for name, registers, spilled in assemble(self.ptxas, text, architecture, self.folder):
            self.kernels[architecture] += 1
            if spilled:
                number = re.match(r"t(\d+)_", name)
                self.spilled.append((spilled, architecture, waiting[int(number[1]) if number else 0][0], name))

    def finish(self):
        for architecture in ARCHITECTURES:
            self.flush(architecture)
        for spilled, architecture, what, name in sorted(self.spilled, reverse=True):
            print(f"{what}: '{name}' spills {spilled} bytes on {architecture}")
            if spilled > MOST_SPILLED:
                self.wrong.append(f"{what}: '{name}' spills {spilled} bytes on {architecture}, more than {MOST_SPILLED}")
        print(", ".join(f"{self.kernels[a]} kernels for {a}" for a in ARCHITECTURES if self.kernels[a]) + " assembled")
        if self.wrong:
            raise Failure("\n".join(self.wrong))


def refusal(text, what):
    """Why a model has no kernels: the ops. An error that does not name one is a failure."""
    found = REFUSED.search(text)
    if not found or "error:" not in text:
        raise Failure(f"{what} does not compile, and the error says no op:\n{text[-2000:]}")
    return found[1] or found[2]


def check_models(modules, folder):
    refused = []
    for number, name in enumerate([*executed.MODELS, *executed.WIDE]):
        case = data_folder() / "models" / name
        flags = executed.MODELS[name][0] if name in executed.MODELS else ()
        if name in executed.WIDE:
            flags = [f"--shape={port}={'x'.join(map(str, shape))}" for port, shape, *_ in executed.WIDE[name][0]]
        artifact = folder / "model.partita"
        # With library calls other ops stand alone.
        compilations = [(architecture, flag) for architecture in ARCHITECTURES for flag in ((KERNELS,), ())]
        if not ALL:
            turn = number % len(ARCHITECTURES)
            compilations = [(ARCHITECTURES[turn], (KERNELS,)), (ARCHITECTURES[turn - 1], ())]
        for architecture, flags_of_calls in compilations:
            status, text = run([BIN / "partita-compile", case / "model.onnx", "--target", f"cuda:{architecture}", "--quiet", "-o", artifact, *flags, *flags_of_calls],
                               expect=None, timeout=600)
            if status:
                refused.append(f"{name}: {refusal(text, name)}")
                break
            modules.add(name, artifact)
    print("\n".join(f"no kernels: {line}" for line in refused))


def check_suite(modules, folder):
    folders = backend.find_cases()
    names = some((name for name, result in backend.read_list().items() if result == "pass"), 4, 1)
    refused = collections.defaultdict(list)

    def compile_case(name):
        case, artifact = folders[name], folder / f"{name}.partita"
        flags = backend.binding_flags(backend.input_ports(case / "model.onnx"), case / "test_data_set_0")
        text = backend.compiled(case, artifact, 1, [*flags, "--target", "cuda:sm_90", "--no-optimize", KERNELS], False)
        return name, artifact, text

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, artifact, text in pool.map(compile_case, names):
            if text is not None:
                refused[refusal(text, name)].append(name)
                continue
            modules.add(name, artifact)
            artifact.unlink()
    for op, cases in sorted(refused.items(), key=lambda row: -len(row[1])):
        print(f"{len(cases):5} cases have no kernel for {op}: {' '.join(cases[:4])}{' ...' if len(cases) > 4 else ''}")
    print(f"{len(names) - sum(map(len, refused.values()))} of {len(names)} cases compile")


def check_attention(modules, folder):
    """What is left to kernels where attention is a call."""
    for number, (kind, form, mask, _) in enumerate(calls.attentions()):
        source, artifact = folder / f"{number}.mlir", folder / f"{number}.partita"
        source.write_text(calls.attention(kind, form, mask)[0])
        for architecture in some(ARCHITECTURES, len(ARCHITECTURES), number):
            run([BIN / "partita-compile", source, "--target", f"cuda:{architecture}", "--quiet", "-o", artifact, "--attention-calls"])
            modules.add(f"{form} of {kind}", artifact)


def check_examples(modules, folder, update):
    ops = collections.defaultdict(lambda: [0, 0])
    families, called = {}, set()
    for number, (family, name, op, text) in enumerate(examples()):
        source, artifact = folder / f"{name}.mlir", folder / f"{name}.partita"
        source.write_text(text)
        families.setdefault(op, family)
        for architecture in some(ARCHITECTURES, len(ARCHITECTURES), number):
            status, said = run([BIN / "partita-compile", source, "--target", f"cuda:{architecture}", "--quiet", "-o", artifact, KERNELS], expect=None)
            if status:
                refusal(said, name)
                break
            modules.add(f"example {name}", artifact)
            run([BIN / "partita-compile", source, "--target", f"cuda:{architecture}", "--quiet", "-o", artifact])
            modules.add(f"example {name} with calls", artifact)
        ops[op][status != 0] += 1
        if "plan.call <" in run([BIN / "partita-compile", source, "--target", "cuda:sm_90", "--emit", "plan"], expect=None)[1]:
            called.add(op)
    lines = ["# Ops on CUDA devices", "",
             "Which ops of the `nn` dialect have kernels for GPUs, by an example of each. `test/cuda/kernels.py examples --update` writes this page, and a",
             "test holds it against what the compiler does. An op without a kernel is an error that names it and its node.",
             "Ops in bold are library calls, where the library computes them ([cuda.md](cuda.md)).", "",
             "| family | compiled to kernels | not compiled |", "| --- | --- | --- |"]
    for family in dict.fromkeys(families.values()):
        mine = sorted(op for op in ops if families[op] == family)
        yes, no = (", ".join(f"**`{op}`**" if op in called else f"`{op}`" for op in mine if bool(ops[op][1]) == wanted) for wanted in (False, True))
        lines.append(f"| {family} | {yes} | {no} |")
    lines += ["", "`scan`, `top_k` and `scatter` are computed by as many operations for each element as there are elements in a row, or updates; but sums of long rows",
              "(the gradient of an embedding) by blocks that look through the places of all updates once for some rows together. `recurrent` is computed by a block for each sequence and direction, of f32, and of states that fit shared memory.", ""]
    if update:
        TABLE.write_text("\n".join(lines))
    elif not TABLE.exists() or TABLE.read_text() != "\n".join(lines):
        raise Failure(f"{TABLE} is not what compiles: run {pathlib.Path(__file__).name} examples --update")


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("models", "suite", "examples"))
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    ptxas = find_ptxas()
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        modules = Modules(ptxas, folder)
        if options.what == "models":
            check_models(modules, folder)
        elif options.what == "suite":
            check_suite(modules, folder)
        else:
            check_examples(modules, folder, options.update)
            check_attention(modules, folder)
        modules.finish()
    if not ptxas:
        print("skipped: nothing was assembled, there is no ptxas (tools/setup.sh installs it, or set PARTITA_PTXAS)")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main(check, use_workers=True)
