#!/usr/bin/env python3
"""Runs the node tests and the simple models of the ONNX backend suite and holds the results against the list that is checked in.

    backend.py                      every case of the suite; exit status 1 if one that passed before does not, or the other way round
    backend.py --update             the same, and writes the list anew
    backend.py test_add test_relu   only these cases

It prints what does not pass, and how many for which reason. A line of backend-cases.txt is a case and `pass`, or a case and why it does not. Inputs
that must be known at compile time (a shape to reshape to, say) are bound with --constant, as the compiler's message asks; open shapes, lengths of
sequences and optionals as the test data have them. A case runs on one device or cut into two stages, in turns (PARTITA_TEST_ALL=1, --update or names:
both). Kernels are compiled for this processor's level only, and of every fourth pair of cases optimized. Every twentieth case is run by the programs,
as a user runs them, the others in workers.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

from harness import BIN, Failure, cpu_level, data_folder, input_ports, main, run, some
from vectors import binding_flags

SUITES = ("node", "simple")
LIST = pathlib.Path(__file__).with_name("backend-cases.txt")
TOLERANCE = ("--rtol", "1e-3", "--atol", "1e-5")
OPTIMIZED = 4  # one of so many cases has optimized kernels, which take several times as long to compile
CRASHES = "crashes:"  # what no list excuses


def reason_of(text):
    """The first error of a tool's output, without what differs from case to case."""
    unsupported = re.findall(r"^  (\S+)(?: \(no op of opset \d+\))?, \d+ nodes?:", text, re.M)
    if unsupported:
        return "ops that are not supported: " + ", ".join(unsupported)
    lines = [line for line in text.splitlines() if "error:" in line or "FAIL" in line]
    line = lines[0] if lines else (text.strip().splitlines() or ["no message"])[-1]
    line = re.sub(r"^partita-(compile|run): error: ", "", line.strip())
    line = re.sub(r"node '[^']*': ", "", line)
    line = re.sub(r"\bthe input '[^']*'", "an input", line)
    return re.sub(r"\S*/(test_\w+)/\S*", r"\1", line)[:160]


def compiled(case, artifact, devices, flags, alone, more=()):
    """Compiles with `flags` and `more`, to the first of which it adds what the compiler asks for; returns an error text or None."""
    ports = None
    for _ in range(8):
        given = ("--cpu-level", cpu_level(), "--devices", devices, *flags, *more)
        status, text = run([BIN / "partita-compile", case / "model.onnx", "-o", artifact, *given], expect=None, alone=alone)
        if status == 0 and (flags or "it is 1 in a micro-batch" not in text):
            return None
        before = len(flags)
        if ports is None:
            ports = input_ports(case / "model.onnx")
            if not flags:
                flags += binding_flags(ports, case / "test_data_set_0")
        names = [port["name"] for port in ports]
        asked = re.findall(r"--constant '?([^\s'=]+)=", text)
        # No flag is offered for an input on whose values the model computes. These cases have no other.
        for listed in re.findall(r"the model's inputs? ((?:'[^']*'(?:, )?)+), on whose", text):
            asked += re.findall(r"'([^']*)'", listed)
        for name in dict.fromkeys(asked):
            flag = f"--constant={name}={case}/test_data_set_0/input_{names.index(name)}.pb" if name in names else None
            if flag and flag not in flags:
                flags.append(flag)
        if len(flags) == before:
            return text if status else None
    return text


def outcome(case, devices=(1, 2), alone=False, more=()):
    """'pass' or why not. `alone`: by the programs themselves. `more`: flags of the compiler."""
    try:
        return try_case(case, devices, alone, more)
    except Failure as crash:
        lines = str(crash).splitlines()
        return f"{CRASHES} {lines[1]}: {reason_of(str(crash))}"


def try_case(case, counts, alone, more):
    # An optional is present unless something else is said, so the compiler does not ask.
    flags = binding_flags(input_ports(case / "model.onnx"), case / "test_data_set_0") if "optional" in case.name else []
    with tempfile.TemporaryDirectory() as work:
        for devices in counts:
            artifact = pathlib.Path(work) / f"{devices}.partita"
            text = compiled(case, artifact, devices, flags, alone, more)
            if text is not None:
                return "does not compile: " + reason_of(text)
            for data in sorted(case.glob("test_data_set_*")):
                status, text = run([BIN / "partita-run", artifact, "--no-pin", "--test-data", data, *TOLERANCE], expect=None, alone=alone)
                if status != 0:
                    return "runs wrong: " + reason_of(text)
    return "pass"


def find_cases():
    """The folders of the cases, by name."""
    suites = [data_folder() / "onnx-backend" / suite for suite in SUITES]
    return {case.name: case for suite in suites for case in suite.iterdir()}


def read_list():
    rows = (line.split(" ", 1) for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    return {name: result for name, result in rows}


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    cases = find_cases()
    listed = read_list() if LIST.exists() else {}
    names = options.cases or sorted(cases)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        devices = lambda k: (1, 2) if options.cases or options.update else some((1, 2), 2, k)
        of_case = lambda k: outcome(cases[names[k]], devices(k), alone=k % 20 == 0, more=() if k // 2 % OPTIMIZED == 0 else ("--no-optimize",))
        results = dict(zip(names, pool.map(of_case, range(len(names)))))
    passed = [name for name, result in results.items() if result == "pass"]
    reasons = collections.Counter(result for result in results.values() if result != "pass")
    for name, result in results.items():
        if result != "pass":
            print(f"{name}: {result}")
    print(f"{len(passed)} of {len(results)} cases pass, each on one device or cut into two stages")
    for reason, count in sorted(reasons.items(), key=lambda row: (-row[1], row[0])):
        print(f"{count:5} {reason}")
    crashes = [n for n, r in results.items() if r.startswith(CRASHES)]
    if crashes:
        raise Failure(f"{len(crashes)} cases crash: " + " ".join(crashes))
    if options.update:
        kept = {**listed, **results}
        head = "# Node tests and simple models of the ONNX backend suite: a case and `pass`, or why not. Written by backend.py --update.\n"
        LIST.write_text(head + "".join(f"{name} {kept[name]}\n" for name in sorted(kept)))
        return
    changed = [n for n, r in results.items() if (r == "pass") != (listed.get(n) == "pass")]
    if changed:
        raise Failure(f"{len(changed)} cases are not as the list says (a case that passes now: run --update): " + " ".join(changed))


if __name__ == "__main__":
    main(check, use_workers=True)
