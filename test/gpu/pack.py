#!/usr/bin/env python3
"""Packs what the tests and benchmarks on GPUs need into a folder, which runs on any machine with the driver and Python 3: FOLDER/run.sh.

    pack.py FOLDER [--target T] [--models MODELS] [--few]        or FOLDER.tar.xz, which is small to carry: tar xf FOLDER.tar.xz; FOLDER/run.sh

The build's programs, the shared libraries that they need, and compiled models: those of the executed tests with their reference vectors, for 1, 2 and 4
devices, trainings with the CPU's losses, for 1 and 2 (where NumPy and onnx make their samples), and those of MODELS (as test/bench/export_models.py writes them) for the benchmark. Without MODELS, ResNet-50, BERT-base and GPT-2 are exported if
PyTorch is installed here, else the benchmark has small language models, which say little of speed. --few packs two models, and a toy for the benchmark.
The target is the architecture of this machine's GPU 0, and sm_80 without one.
"""

import argparse
import ctypes
import importlib.util
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
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
ARCHITECTURES = (80, 90, 100, 120)
EXPORTED = ("resnet50", "bert_base", "gpt2")
# By the number of devices: stages, or a mesh with weights cut, which has collectives.
CUTS = {1: (), 2: ("--devices", "2"), 4: {"stage": 2, "tensor": 2}}


def target_of(driver):
    """The newest architecture that GPU 0 runs."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    try:
        cuda = ctypes.CDLL(str(driver / "libcuda.so.1") if driver else "libcuda.so.1")
    except OSError:
        return None
    if cuda.cuInit(0) or cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, 0) or cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0):
        return None
    known = [architecture for architecture in ARCHITECTURES if architecture <= major.value * 10 + minor.value]
    return f"cuda:sm_{known[-1]}" if known else None


def export_models(folder):
    """The benchmark's models, as far as PyTorch and what they need are here; why others are not."""
    if importlib.util.find_spec("torch") is None:
        return [[f"benchmark {name}", "PyTorch is not installed where this was packed, to export it (--models has exported ones)"] for name in EXPORTED]
    left = []
    for name in EXPORTED:
        done = subprocess.run([sys.executable, REPOSITORY / "test" / "bench" / "export_models.py", folder, name], capture_output=True, text=True)
        if done.returncode:
            left.append([f"benchmark {name}", "it was not exported: " + (done.stderr.strip().splitlines() or ["no reason is known"])[-1]])
            shutil.rmtree(folder / name, ignore_errors=True)
    return left


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
    # Names that debuggers read are half of a build; without the tool they stay.
    if tool := shutil.which("strip") or shutil.which("llvm-strip"):
        for path in (*(folder / "bin").iterdir(), *(folder / "lib").iterdir()):
            path.chmod(path.stat().st_mode | 0o200)
            subprocess.run([tool, "--strip-unneeded", path], check=False, stderr=subprocess.DEVNULL)
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
    packed, left = [], []
    for source in sorted(models.glob("*/model.onnx")):
        place = folder / "bench" / source.parent.name
        shutil.copytree(source.parent, place)
        for flags in ((), ("--dim", "batch=1")):
            if not (place / "model.partita").exists():
                run([BIN / "partita-compile", source, "--quiet", *flags, "-o", place / "model.partita", "--target", target], expect=None)
        if (place / "model.partita").exists():
            packed.append({"name": source.parent.name, "folder": f"bench/{place.name}"})
        else:
            left.append([f"benchmark {source.parent.name}", f"it does not compile for {target}"])
    return packed, left


def pack_trainings(folder, few):
    """Trainings for one device and two, with their samples and the losses of the CPU."""
    try:
        import trained
    except ImportError as missing:
        return [], [["training", f"its samples are not made: {missing}"]]
    work, packed = folder / "training", []
    work.mkdir()
    learners = list(trained.example_learners(work)) + ([] if few else [trained.case_learner(work, name) for name in ("cnn-adam", "transformer-adagrad", "lstm-momentum")])
    for learner in learners:
        lines, _ = trained.learn(work, learner, "cpu")
        for devices in (1, 2):
            cut = ("--devices", devices, "--schedule", "1f1b") if devices > 1 else ()
            run([BIN / "partita-compile", learner.model, *learner.flags, *execute.TARGET, *cut, "--quiet", "-o", work / f"{learner.name}.{devices}.partita"])
        data = [re.sub(r"=.*/", "=", word) for word in map(str, learner.data) if "=" in word]
        packed.append({"name": learner.name, "data": data, "devices": [1, 2], "losses": [line["loss"] for line in lines]})
    for path in {*work.glob("*.onnx"), *work.glob("cpu*")}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return packed, []


def toy_model(folder):
    (folder / "digits").mkdir(parents=True)
    shutil.copy2(REPOSITORY / "examples" / "digits" / "digits.onnx", folder / "digits" / "model.onnx")


def small_models(folder):
    import onnx
    from language_models import Bert, Gpt2

    for name, kind in (("small_gpt2", Gpt2), ("small_bert", Bert)):
        (folder / name).mkdir(parents=True)
        onnx.save(kind(2, 128, 32, 1000, seed=1).model, folder / name / "model.onnx")


def pack(folder, options):
    target = options.target or target_of(options.driver) or "cuda:sm_80"
    execute.TARGET = ("--target", target)
    data_folder()
    pack_programs(folder)
    packed = {"target": target, "models": pack_models(folder, execute.MODELS[:2] if options.few else execute.MODELS)}
    packed["trainings"], untrained = pack_trainings(folder, options.few)
    left = []
    with tempfile.TemporaryDirectory() as work:
        models = options.models or pathlib.Path(work)
        if options.few and not options.models:
            toy_model(models)
        elif not options.models:
            left = export_models(models)
            if not any(models.iterdir()):
                try:
                    small_models(models)
                except ImportError as missing:
                    left.append(["benchmark of small models", f"they are not made: {missing}"])
        packed["benchmark"], failed = pack_benchmark(folder, models, target)
    packed["left"] = untrained + left + failed
    (folder / "models.json").write_text(json.dumps(packed, indent=1) + "\n")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{len(packed['models'])} models, {len(packed['trainings'])} trainings, {len(packed['benchmark'])} to measure, for {target}; {size / 2**20:.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="or FOLDER.tar.xz")
    parser.add_argument("--target", help="the architecture; a newer GPU runs it too (default: that of GPU 0)")
    parser.add_argument("--driver", type=pathlib.Path, metavar="LIB", help="ask the libcuda.so.1 of that folder instead of the driver")
    parser.add_argument("--models", type=pathlib.Path, help="models for the benchmark: FOLDER/NAME/model.onnx")
    parser.add_argument("--few", action="store_true")
    options = parser.parse_args()
    if not (BIN / "partita_cuda_tests").exists():
        sys.exit(f"no build at {BIN}: build first (tools/build.sh), or set PARTITA_BIN")
    if options.models and not any(options.models.glob("*/model.onnx")):
        sys.exit(f"there is no {options.models}/NAME/model.onnx: test/bench/export_models.py writes such models")
    if not options.folder.name.endswith(".tar.xz"):
        pack(options.folder, options)
        return print(f"run {options.folder}/run.sh")
    with tempfile.TemporaryDirectory() as work:
        name = options.folder.name.removesuffix(".tar.xz")
        folder = pathlib.Path(work) / name
        folder.mkdir()
        pack(folder, options)
        # Artifacts for several devices have the same weights, far from each other.
        with lzma.open(options.folder, "wb", filters=[{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 27}]) as file, tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(folder, name)
    print(f"{options.folder}: {options.folder.stat().st_size / 2**20:.0f} MiB; there: tar xf {options.folder.name}; {name}/run.sh")


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    main()
