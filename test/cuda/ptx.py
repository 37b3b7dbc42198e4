"""The PTX of artifacts, and what ptxas says of it. Standard library only."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "executed"))
from harness import Failure

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
PTX = 4  # SectionKind::ptx (runtime/abi/artifact.h)


def find_ptxas():
    """ptxas: $PARTITA_PTXAS, that of PATH, or that of the Python environment of tools/setup.sh. None if there is none."""
    given = os.environ.get("PARTITA_PTXAS") or shutil.which("ptxas")
    if given:
        return given
    cache = pathlib.Path(os.environ.get("PARTITA_DEPS", pathlib.Path.home() / ".cache" / "partita"))
    found = sorted(cache.glob("python/lib/python*/site-packages/nvidia/*/bin/ptxas"))
    return str(found[-1]) if found else None


def sections(artifact):
    """The texts of an artifact's PTX sections, with the numbers of their architectures."""
    data = pathlib.Path(artifact).read_bytes()
    count = struct.unpack_from("<I", data, 12)[0]
    for number in range(count):
        kind, _, offset, size, _, _, architecture = struct.unpack_from("<IIQQQII", data, 64 + 64 * number)
        if kind == PTX:
            yield architecture, data[offset : offset + size - 1].decode()


def merge(texts):
    """One module of several: what they define gets the number of its text in front."""
    merged = []
    for number, text in enumerate(texts):
        if merged:
            text = re.sub(r"^\.(version|target|address_size).*$", "", text, flags=re.M)
        names = set(re.findall(r"^\s*\.(?:visible \.entry|global|shared)(?: \.\w+(?: \d+)?)* (\w+)", text, re.M))
        if names:
            text = re.sub(r"\b(?:" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + r")(?=\b|_param)",
                          lambda found: f"t{number}_{found[0]}", text)
        merged.append(text)
    return "\n".join(merged)


def assemble(ptxas, text, architecture, folder):
    """Assembles a text. Returns for each kernel its name, registers and bytes spilled; raises Failure with what ptxas says."""
    source = pathlib.Path(folder) / f"{architecture}.ptx"
    source.write_text(text)
    done = subprocess.run([ptxas, f"-arch={architecture}", "-v", str(source), "-o", str(source.with_suffix(".cubin"))],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "info" not in line]
        raise Failure(f"ptxas -arch={architecture} refuses the kernels:\n" + "\n".join(errors[:10]))
    kernels, name = [], None
    for line in done.stdout.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            name = found[1]
        elif found := re.search(r"(\d+) bytes spill stores", line):
            spilled = int(found[1])
        elif (found := re.search(r"Used (\d+) registers", line)) and name:
            kernels.append((name, int(found[1]), spilled))
            name = None
    if len(kernels) != text.count(".visible .entry"):
        raise Failure(f"ptxas reports {len(kernels)} kernels of {text.count('.visible .entry')}")
    return kernels
