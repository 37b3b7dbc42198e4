#!/usr/bin/env python3
"""What is scarce: with too little memory partita-run ends with an error, never by a signal; a compiler that is killed leaves no file behind."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

from harness import BIN, REPOSITORY, Failure, compile_model, main

MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"
MIB = 1 << 20


def check_memory(work):
    """Limits of address space from where the program just starts to where it has enough."""
    for name, flags in (("one", ("--dim", "batch=1")), ("three", ("--dim", "batch=4", "--devices", 3))):
        artifact = work / f"{name}.partita"
        compile_model(MODEL, artifact, *flags)
        ends = {"done": 0, "error": 0, "loader": 0}
        # The limits end where two runs in turn have enough.
        for limit in range(40, 2000, 5):
            command = [BIN / "partita-run", artifact, "--benchmark", "--runs", "2", "--threads", "2"]
            bound = lambda: resource.setrlimit(resource.RLIMIT_AS, (limit * MIB, limit * MIB))
            result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=bound)
            # The system's loader has another status, and the library of threads its own words.
            if result.returncode == 0:
                ends["done"] += 1
            elif result.returncode == 127:
                ends["loader"] += 1
            elif result.returncode == 1 and ("partita-run: error: " in result.stderr or "libgomp: " in result.stderr):
                ends["error"] += 1
            else:
                raise Failure(f"{name}, {limit} MiB: status {result.returncode}\n{result.stderr}")
            if ends["done"] >= 4:
                break
        if not ends["error"] or ends["done"] < 4:
            raise Failure(f"{name}: these limits tell nothing: {ends}")
        print(f"{name}: {ends['error']} runs with too little memory end with an error")


def check_killed(work):
    """Killed at any time, the compiler leaves its output whole or not at all."""
    folder = work / "killed"
    folder.mkdir()
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        print("this file system has no files without names: what is left of a killed compiler is not looked at")
        return
    annotated = folder / "annotated.onnx"
    command = [BIN / "partita-compile", MODEL, "--dim", "batch=1", "--devices", "2", "--emit-onnx", annotated, "-o", folder / "out.partita", "--quiet"]
    begin = time.monotonic()
    subprocess.run(command, check=True)
    whole = time.monotonic() - begin
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    killed = 0
    for turn in range(40):
        for path in folder.iterdir():
            path.unlink()
        process = subprocess.Popen(command)
        time.sleep(whole * (turn + 1) / 40)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        for path in folder.iterdir():
            if path.stat().st_size != sizes.get(path.name):
                raise Failure(f"killed in turn {turn}: {path.name} has {path.stat().st_size} bytes, and whole ones {sizes}")
    if not killed:
        raise Failure("no turn was killed")
    print(f"{killed} killed compilers left nothing behind")


def check():
    with tempfile.TemporaryDirectory() as folder:
        check_killed(pathlib.Path(folder))
        if "--sanitized" not in sys.argv:  # a sanitizer needs address space of its own
            check_memory(pathlib.Path(folder))


if __name__ == "__main__":
    main(check)
