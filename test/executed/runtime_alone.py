#!/usr/bin/env python3
"""The runtime builds alone, and needs neither MLIR nor LLVM nor ONNX: runtime_alone.py SOURCE BUILD ALONE [FLAG ...].

It is configured in ALONE without the compiler, with FLAGs besides. If its build has the same commands as the whole one in BUILD has for these files, then
what is in BUILD is what it makes: that the files compile and link is shown, and nothing is built twice."""

import json
import pathlib
import re
import sys

from harness import Failure, main, run

COMPILERS = ("llvm", "mlir", "onnx")


def commands(build):
    """The command lines that build partita-run, without the name of the folder."""
    lines = run(["ninja", "-C", build, "-t", "commands", "partita-run"]).splitlines()
    # The commit, of which --version speaks, is that of the last build.
    return [re.sub(r"-DPARTITA_COMMIT=\S+", "", line.replace(str(build), "BUILD")) for line in lines if not line.startswith("ninja:")]


def check():
    source, build, alone = map(pathlib.Path, sys.argv[1:4])
    for file in [*source.glob("runtime/**/*.h"), *source.glob("runtime/**/*.cpp"), *source.glob("tools/partita-run/**/*.h"), *source.glob("tools/partita-run/**/*.cpp")]:
        for line in re.findall(r'#include\s*[<"]((?:llvm|mlir|dialects|compiler|onnx)/[^>"]*)', file.read_text()):
            raise Failure(f"{file} includes {line}")
    run(["cmake", "-S", source, "-B", alone, "-G", "Ninja", "-DPARTITA_COMPILER=OFF", "-DPARTITA_TESTS=OFF", *sys.argv[4:]])
    whole = set(commands(build))
    for command in commands(alone):
        if command not in whole:
            raise Failure(f"alone, the runtime is built with a command that the whole build does not have:\n{command}")
        for name in COMPILERS:
            if re.search(rf"\b(lib)?{name}\b", command, re.I):
                raise Failure(f"the runtime is built with {name}:\n{command}")
    linked = run(["ldd", build / "bin" / "partita-run"])
    for name in COMPILERS:
        if name in linked.lower():
            raise Failure(f"partita-run links {name}:\n{linked}")


if __name__ == "__main__":
    main(check)
