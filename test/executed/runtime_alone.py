#!/usr/bin/env python3
"""The runtime builds alone, and links neither MLIR nor LLVM nor ONNX: runtime_alone.py SOURCE BUILD."""

import pathlib
import re
import sys

from harness import Failure, main, run


def check():
    source, build = map(pathlib.Path, sys.argv[1:3])
    for file in [*source.glob("runtime/**/*.h"), *source.glob("runtime/**/*.cpp"), *source.glob("tools/partita-run/*")]:
        for line in re.findall(r'#include\s*[<"]((?:llvm|mlir|dialects|compiler|onnx)/[^>"]*)', file.read_text()):
            raise Failure(f"{file} includes {line}")
    run(["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DPARTITA_COMPILER=OFF", "-DPARTITA_TESTS=OFF"])
    run(["ninja", "-C", build, "partita-run"], timeout=1000)
    tool = build / "bin" / "partita-run"
    linked = run(["ldd", tool])
    for library in ("MLIR", "LLVM", "onnx"):
        if library.lower() in linked.lower():
            raise Failure(f"partita-run links {library}:\n{linked}")
    run([tool, "--help"])


if __name__ == "__main__":
    main(check)
