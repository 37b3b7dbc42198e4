#!/usr/bin/env python3
"""The worker answers as the programs do, outlives wrong commands, and its client outlives the worker."""

import os
import pathlib
import signal
import subprocess
import sys

from worker import BIN, Worker

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n,4] x) => (float[n,4] y) { [a] t = Tanh(x) [b] y = Add(t, x) }
"""
FAILURES = []


def expect(condition, what):
    if not condition:
        FAILURES.append(what)


def program(*words):
    done = subprocess.run([BIN / words[0], *map(str, words[1:])], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def same(worker, *words):
    """The command's result, which is that of the program."""
    done = worker.run(*words)
    expect(program(*words) == (done.status, done.output, done.errors), f"{' '.join(map(str, words))}: not as the program's: {done}")
    return done


def check(worker):
    model, artifact = worker.folder / "m.onnxtxt", worker.folder / "m.partita"
    model.write_text(MODEL)
    same(worker, "partita-compile", model, "--describe", "--json")
    expect(same(worker, "partita-compile", model, "-o", artifact, "--dim", "m=3").status == 1, "a dimension that the model does not have is an error")
    for devices in (1, 2, 1):
        command = ["partita-compile", model, "-o", artifact, "--dim", "n=3", "--devices", devices]
        worker.run(*command)
        once = artifact.read_bytes()
        program(*command)
        expect(once == artifact.read_bytes(), f"{devices} devices: another artifact than the program's")
        same(worker, "partita-run", artifact, "--plan")
    same(worker, "partita-run", artifact, "--wrong")
    same(worker, "partita-run", worker.folder / "none.partita")
    try:
        worker.run("ls")
        expect(False, "another program is refused")
    except ValueError:
        pass
    process = worker.process
    os.kill(process.pid, signal.SIGSTOP)
    worker.timeout = 0.2
    expect(worker.run("partita-run", artifact, "--plan").late, "a worker that does not answer is given up")
    worker.timeout = 60
    worker.run("partita-run", artifact, "--plan")
    os.kill(worker.process.pid, signal.SIGSEGV)
    done = worker.run("partita-run", artifact, "--plan")
    expect(done.died and done.status == -signal.SIGSEGV, f"a worker that died: {done}")
    expect(worker.run("partita-run", artifact, "--plan").status == 0, "after it, another worker answers")


if __name__ == "__main__":
    with Worker() as worker:
        check(worker)
        folder = worker.folder
    expect(not pathlib.Path(folder).exists(), "the worker's folder is removed")
    print("\n".join(FAILURES))
    sys.exit(bool(FAILURES))
