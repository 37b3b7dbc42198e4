#!/usr/bin/env python3
"""Makes a wheel of the Python package, with libpartita, partita-compile, partita-run and what these need. Standard library, ldd and strip only.

    runtime/python/wheel.py [--build build] [--output .] [--runtime-only]

The wheel has every library that they are linked with but those of C and C++, so it needs a glibc no older than that of this machine, as its tag says
(manylinux_2_36 on Debian 12), and x86-64-v3. With `--runtime-only` it has libpartita alone, and needs oneDNN 2.6 (libdnnl.so.2) where it is installed.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = ("partita-compile", "partita-run")
# What manylinux lets a wheel expect of a machine.
BASE = re.compile(r"(linux-vdso|ld-linux[\w-]*|libc|libm|libdl|librt|libpthread|libresolv|libutil|libgcc_s|libstdc\+\+)\.so")

SCRIPT = """#!python
import importlib.util
import os
import runpy

home = importlib.util.find_spec("partita").submodule_search_locations[0]
runpy.run_path(os.path.join(home, "_start.py"))["start"]("{tool}")
"""


def version():
    return re.search(r"project\(partita VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def needs(path):
    """The libraries that a program or library is linked with, by name, without those of C and C++."""
    text = subprocess.run(["ldd", str(path)], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", text, re.M))
    return {name: pathlib.Path(place) for name, place in found.items() if not BASE.match(name)}


def bundled(build, library):
    """Tools and libraries, by their names in the wheel."""
    runtime, tools = needs(library), {name: build / "bin" / name for name in TOOLS}
    more = {name: place for tool in tools.values() for name, place in needs(tool).items() if name not in runtime}
    # An MPI of the machine comes before this one.
    mpi = {name for name, place in more.items() if name.startswith("libmpi.so") for name in (name, *needs(place))}
    files = {f"partita/bin/{name}": path for name, path in tools.items()}
    files |= {f"partita/lib/{name}": path for name, path in runtime.items()}
    files |= {f"partita/lib/{'mpi' if name in mpi else 'tools'}/{name}": path for name, path in more.items()}
    return files


def stripped(path):
    """A file without the names of what is inside, where there is a tool for that."""
    if not shutil.which("strip"):
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / path.name
        subprocess.run(["strip", "--strip-unneeded", "-o", str(out), str(path)], check=True)
        return out.read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where Partita was built")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="the folder for the wheel")
    parser.add_argument("--runtime-only", action="store_true", help="without the tools and the libraries that they need")
    options = parser.parse_args()
    library = options.build / "lib" / "libpartita.so.1"
    paths = [library] + ([] if options.runtime_only else [options.build / "bin" / name for name in TOOLS])
    for path in paths:
        if not path.exists():
            parser.error(f"there is no {path}: build Partita first (tools/build.sh)")
    machine = platform.machine()
    tag = f"py3-none-linux_{machine}"
    info = f"partita-{version()}.dist-info"
    files = {f"partita/{path.name}": path.read_bytes() for path in sorted((HERE / "partita").iterdir()) if path.is_file()}
    files["partita/libpartita.so.1"] = library.read_bytes()
    scripts = {}
    if not options.runtime_only:
        tag = f"py3-none-manylinux_{platform.libc_ver()[1].replace('.', '_')}_{machine}"
        files |= {name: stripped(path) for name, path in bundled(options.build, library).items()}
        scripts = {f"partita-{version()}.data/scripts/{tool}": SCRIPT.format(tool=tool).encode() for tool in TOOLS}
        files |= scripts
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: partita\nVersion: {version()}\nSummary: Splits ONNX models over devices, runs and trains them\n"
                                 "License: Apache-2.0 WITH LLVM-exception\nRequires-Python: >=3.9\nRequires-Dist: numpy\n").encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    options.output.mkdir(parents=True, exist_ok=True)
    wheel = options.output / f"partita-{version()}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.startswith("partita/bin/") or name in scripts else 0o100644) << 16
            archive.writestr(entry, data, compresslevel=3)
    print(wheel)


if __name__ == "__main__":
    main()
