#!/usr/bin/env python3
"""Runs node tests of the ONNX backend suite and holds the result against the list that is checked in.

    backend.py                      the cases of backend-cases.txt; exit status 1 if one that passed before does not, or the other way round
    backend.py --all                every case of the suite; prints what passes, what does not, and why
    backend.py --update             writes the list anew
    backend.py test_add test_relu   only these cases

A line of backend-cases.txt is a case and `pass`, or a case and the reason why it does not. Inputs that must be known at compile time (a shape to
reshape to, say) are bound with --constant, as the compiler's message asks; open shapes, lengths of sequences and optionals as the test data have them. Each case also runs cut into two stages.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

from harness import BIN, Failure, data_folder, input_names, input_ports, main, run
from vectors import binding_flags

LIST = pathlib.Path(__file__).with_name("backend-cases.txt")
TOLERANCE = ("--rtol", "1e-3", "--atol", "1e-5")


def reason_of(text):
    """The first error of a tool's output, without what differs from case to case."""
    lines = [line for line in text.splitlines() if "error:" in line or "FAIL" in line]
    line = lines[0] if lines else (text.strip().splitlines() or ["no message"])[-1]
    return re.sub(r"\S*/(test_\w+)/\S*", r"\1", line.strip())[:160]


def compiled(case, model, artifact, devices):
    """Compiles, binding the inputs that the compiler asks for; returns an error text or None."""
    flags = binding_flags(input_ports(model), case / "test_data_set_0")
    for _ in range(6):
        status, text = run([BIN / "partita-compile", model, "-o", artifact, "--devices", devices, *flags], expect=None)
        if status == 0:
            return None
        asked = [m for m in re.findall(r"--constant '?([^\s'=]+)=", text) if f"--constant={m}" not in "".join(flags)]
        if status != 1 or not asked:
            return f"exit status {status}: {text}" if status != 1 else text
        names = input_names(model)
        for name in dict.fromkeys(asked):
            if name not in names:
                return text
            flags.append(f"--constant={name}={case}/test_data_set_0/input_{names.index(name)}.pb")
    return text


def outcome(case):
    """'pass' or why not."""
    with tempfile.TemporaryDirectory() as work:
        for devices in (1, 2):
            artifact = pathlib.Path(work) / f"{devices}.partita"
            text = compiled(case, case / "model.onnx", artifact, devices)
            if text is not None:
                return "does not compile: " + reason_of(text)
            for data in sorted(case.glob("test_data_set_*")):
                status, text = run([BIN / "partita-run", artifact, "--no-pin", "--test-data", data, *TOLERANCE], expect=None)
                if status != 0:
                    return ("crashes: " if status not in (0, 1) else "runs wrong: ") + reason_of(text)
    return "pass"


def read_list():
    rows = (line.split(" ", 1) for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    return {name: result for name, result in rows}


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    suite = data_folder() / "onnx-backend" / "node"
    listed = read_list() if LIST.exists() else {}
    names = options.cases or (sorted(p.name for p in suite.iterdir()) if options.all else sorted(listed))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(names, pool.map(lambda name: outcome(suite / name), names)))
    passed = [name for name, result in results.items() if result == "pass"]
    reasons = collections.Counter(result for result in results.values() if result != "pass")
    for name, result in results.items():
        if result != "pass":
            print(f"{name}: {result}")
    print(f"{len(passed)} of {len(results)} cases pass, each on one device and cut into two stages")
    for reason, count in reasons.most_common(20):
        print(f"{count:5} {reason}")
    if options.update:
        kept = {**listed, **results}
        head = "# Node tests of the ONNX backend suite: a case and `pass`, or why not. Written by backend.py --update.\n"
        LIST.write_text(head + "".join(f"{name} {kept[name]}\n" for name in sorted(kept)))
        return
    changed = [n for n, r in results.items() if n in listed and (r == "pass") != (listed[n] == "pass")]
    if changed:
        raise Failure(f"{len(changed)} cases are not as the list says (a case that passes now: run --update): " + " ".join(changed))


if __name__ == "__main__":
    main(check)
