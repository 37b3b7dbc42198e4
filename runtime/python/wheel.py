#!/usr/bin/env python3
"""Makes a wheel of the Python package, with libpartita inside. Standard library only.

    runtime/python/wheel.py [--build build] [--output .]

The library needs oneDNN 2.6 (libdnnl.so.2) on the machine where the wheel is installed; tools/setup.sh installs it.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def version():
    return re.search(r"project\(partita VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where Partita was built")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="the folder for the wheel")
    options = parser.parse_args()
    library = options.build / "lib" / "libpartita.so.1"
    if not library.exists():
        parser.error(f"there is no {library}: build Partita first (tools/build.sh)")
    tag = f"py3-none-linux_{platform.machine()}"
    info = f"partita-{version()}.dist-info"
    files = {f"partita/{path.name}": path.read_bytes() for path in sorted((HERE / "partita").iterdir()) if path.is_file()}
    files["partita/libpartita.so.1"] = library.read_bytes()
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: partita\nVersion: {version()}\nSummary: Runs and trains models that partita-compile has compiled\n"
                                 "License: Apache-2.0 WITH LLVM-exception\nRequires-Python: >=3.9\nRequires-Dist: numpy\n").encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    options.output.mkdir(parents=True, exist_ok=True)
    wheel = options.output / f"partita-{version()}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    print(wheel)


if __name__ == "__main__":
    main()
