#!/usr/bin/env python3
"""Packs what the tests and benchmarks on GPUs need into a folder, which runs on any machine with the driver and Python 3: FOLDER/run.sh.

    pack.py FOLDER [--target cuda:sm_80] [--models MODELS] [--few]

The build's programs, the shared libraries that they need, and compiled models: those of the executed tests with their reference vectors, for 1, 2 and 4
devices, and those of MODELS (as test/bench/export_models.py writes them) for the benchmark. Without MODELS the benchmark has small language models, which
say little of speed. --few packs two models and no benchmark.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path += [str(REPOSITORY / "test" / folder) for folder in ("cuda", "executed", "bench")]
import cuts
import execute
import models as executed
from harness import BIN, data_folder, run

PROGRAMS = ("partita-run", "partita_cuda_tests", "partita_runtime_tests")
# Of the system: other versions than the target's own would not fit its driver.
SYSTEM = re.compile(r"linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so")
# By the number of devices: stages, or a mesh with weights cut, which has collectives.
CUTS = {1: (), 2: ("--devices", "2"), 4: {"stage": 2, "tensor": 2}}


def pack_programs(folder):
    for name in ("bin", "lib", "files"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    libraries = set()
    for name in PROGRAMS:
        shutil.copy2(BIN / name, folder / "bin")
        needed = subprocess.run(["ldd", BIN / name], check=True, capture_output=True, text=True).stdout
        libraries |= {path for file, path in re.findall(r"(\S+) => (/\S+)", needed) if not SYSTEM.match(file)}
    for path in libraries:
        shutil.copy2(path, folder / "lib")
    shutil.copy2(BIN.parent / "test" / "unit" / "runtime" / "libtest_kernels.so", folder / "files")
    shutil.copy2(REPOSITORY / "test" / "unit" / "runtime" / "Kernels.ptx", folder / "files")
    for path in (HERE / "run.sh", HERE / "run.py", HERE / "peer.py", REPOSITORY / "test" / "bench" / "export_models.py"):
        shutil.copy2(path, folder)


def pack_models(folder, names):
    """The executed tests' models, cut for several devices."""
    packed = []
    for name in names:
        place = folder / "models" / name.replace("/", "-")
        place.mkdir(parents=True)
        for devices, cut in CUTS.items():
            artifact, vectors = cuts.compile_mesh(place, name, cut) if isinstance(cut, dict) else execute.compile_for_gpus(place, name, *cut)
            artifact.rename(place / f"{devices}.partita")
        shutil.copytree(vectors, place / "vectors")
        packed.append({"name": name, "folder": f"models/{place.name}", "devices": list(CUTS), "tolerance": executed.TOLERANCES.get(name, executed.TOLERANCE)})
    return packed


def pack_benchmark(folder, models, target):
    """Models to measure. Their ONNX files go along for peers that read them."""
    packed = []
    for source in sorted(models.glob("*/model.onnx")):
        place = folder / "bench" / source.parent.name
        shutil.copytree(source.parent, place)
        run([BIN / "partita-compile", source, "--quiet", "--dim", "batch=1", "-o", place / "model.partita", "--target", target], expect=None)
        if (place / "model.partita").exists():
            packed.append({"name": source.parent.name, "folder": f"bench/{place.name}"})
        else:
            print(f"left out: {source} does not compile for {target}")
    return packed


def small_models(folder):
    import onnx
    from language_models import Bert, Gpt2

    for name, kind in (("small_gpt2", Gpt2), ("small_bert", Bert)):
        (folder / name).mkdir(parents=True)
        onnx.save(kind(2, 128, 32, 1000, seed=1).model, folder / name / "model.onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--target", default="cuda:sm_80", help="the architecture; a newer GPU runs it too (default: cuda:sm_80)")
    parser.add_argument("--models", type=pathlib.Path, help="models for the benchmark: FOLDER/NAME/model.onnx")
    parser.add_argument("--few", action="store_true")
    options = parser.parse_args()
    if not (BIN / "partita_cuda_tests").exists():
        sys.exit(f"no build at {BIN}: build first (tools/build.sh), or set PARTITA_BIN")
    execute.TARGET = ("--target", options.target)
    data_folder()
    pack_programs(options.folder)
    packed = {"target": options.target, "models": pack_models(options.folder, execute.MODELS[:2] if options.few else execute.MODELS)}
    packed["benchmark"] = []
    if not options.few:
        with tempfile.TemporaryDirectory() as work:
            models = options.models
            if models is None:
                try:
                    small_models(models := pathlib.Path(work))
                except ImportError as missing:
                    print(f"no small models for the benchmark: {missing}")
            packed["benchmark"] = pack_benchmark(options.folder, models, options.target)
    (options.folder / "models.json").write_text(json.dumps(packed, indent=1) + "\n")
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    print(f"{options.folder}: {len(packed['models'])} models, {len(packed['benchmark'])} to measure, {size / 2**20:.0f} MiB; run {options.folder}/run.sh")


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    main()
