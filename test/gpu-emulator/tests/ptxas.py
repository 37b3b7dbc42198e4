#!/usr/bin/env python3
"""Assembles every single-instruction kernel of the emulator's tests with ptxas: the tests' PTX is PTX.

    ptxas.py gpu_emulator_tests      exit status 77, with words, where there is no ptxas
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "cuda"))
from ptx import find_ptxas

# Known to the emulator because the manual has them for another architecture or version of PTX.
NEWER = (r"\.f32x2", r"(add|sub|fma)\S*\.f32\.b?f16", r"satfinite.*f16x2", r"cvt\.r[mp]\.", r"cvt\.\S*\.tf32")


def kernels(text):
    """(instruction, kernel) of each module; a kernel starts at `.visible`."""
    for module in re.split(r"(?=^\.version)", text, flags=re.M):
        found = re.search(r"^(\.visible .*?^\})\n// (.*)$", module, re.M | re.S)
        if found:
            yield found[2], found[1]


def assemble(tool, folder, architecture, version, bodies):
    path = folder / f"{architecture}.ptx"
    text = f".version {version}\n.target {architecture}\n.address_size 64\n"
    path.write_text(text + "\n".join(body.replace(" k(", f" k{i}(", 1) for i, body in enumerate(bodies)))
    return subprocess.run([tool, f"-arch={architecture}", str(path), "-o", str(folder / "out.cubin")], capture_output=True, text=True)


def main():
    tool = find_ptxas()
    if not tool:
        print("there is no ptxas here: the PTX of the tests was not assembled")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        dump = folder / "dump"
        subprocess.run([sys.argv[1], "--gtest_filter=IntegerTest.*:FloatTest.*:ConvertTest.*"], env={**os.environ, "GPUEMU_DUMP": str(dump)}, check=True, stdout=subprocess.DEVNULL)
        found = dict(kernels(dump.read_text()))
        groups = {"sm_90": ("8.0", []), "sm_100": ("8.6", [])}
        for instruction, kernel in found.items():
            groups["sm_100" if any(re.search(each, instruction) for each in NEWER) else "sm_90"][1].append(kernel)
        for architecture, (version, bodies) in groups.items():
            done = assemble(tool, folder, architecture, version, bodies)
            if done.returncode:
                print(done.stdout + done.stderr)
                return 1
            print(f"{architecture}: {len(bodies)} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
