#!/usr/bin/env python3
"""What `partita-run` says where a plan for GPUs cannot run: each error names what is wrong and what to do, exit status 1, and no output is left.
The driver is test/gpu-emulator's; that of one case is missing. Libraries that are missing or of another version are tested with the device
(test/unit/cuda), since this machine may have real ones."""

import os
import pathlib
import re
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "executed"))
from harness import BIN, REPOSITORY, SKIPPED, Failure, compile_model, main, run

EMULATOR = pathlib.Path(os.environ.get("PARTITA_GPU_EMULATOR", REPOSITORY / "build" / "test" / "gpu-emulator" / "lib"))
EXAMPLE = REPOSITORY / "examples" / "digits"


def bytes_of(text):
    number, unit = text.split()
    return float(number) * 1024 ** ("B", "KiB", "MiB", "GiB").index(unit)


def check(work):
    artifact, output = work / "digits.partita", work / "output.npz"
    compile_model(EXAMPLE / "digits.onnx", artifact, "--dim", "batch=2", "--target", "cuda:sm_90", "--no-library-calls")
    two, large = work / "two.partita", work / "large.partita"
    compile_model(EXAMPLE / "digits.onnx", two, "--dim", "batch=2", "--target", "cuda:sm_90", "--no-library-calls", "--devices", "2")
    compile_model(EXAMPLE / "digits.onnx", large, "--dim", "batch=4096", "--target", "cuda:sm_90", "--no-library-calls", "--no-optimize")

    def refuse(what, pattern, *flags, model=artifact, **environment):
        env = {"LD_LIBRARY_PATH": str(EMULATOR), "CUDA_EMU_QUIET": "1", **{name: str(value) for name, value in environment.items()}}
        text = run([BIN / "partita-run", model, "--input", EXAMPLE / "digits.npy", "--output", output, *flags], env=env, expect=1)
        found = re.search(pattern, text)
        if not found or not text.startswith("partita-run: error: ") or text.count("\n") != 1:
            raise Failure(f"{what}: expected one line with '{pattern}', and got\n{text}")
        if output.exists() or set(work.iterdir()) != {artifact, two, large}:
            raise Failure(f"{what}: something was left behind: {sorted(work.iterdir())}")
        return found

    refuse("no driver", r"no driver for NVIDIA's GPUs \(libcuda.so.1: .*\): install it, or compile the model for another --target", LD_LIBRARY_PATH="")
    refuse("an old driver", r"the driver for NVIDIA's GPUs is of CUDA 11.8; this program needs CUDA 12.0 or later", CUDA_EMU_DRIVER=11080)
    refuse("no GPU", r"no GPU that it may use: see nvidia-smi and CUDA_VISIBLE_DEVICES", CUDA_EMU_DEVICES=0)
    refuse("an older GPU", r"code for sm_90, which GPU 0 \(.*sm_80\) cannot run: compile the model for it", CUDA_EMU_SM=80)
    refuse("fewer GPUs", r"cuda:1: there is no GPU 1: this machine has 1 GPU that it may use", model=two, CUDA_EMU_DEVICES=1)
    refuse("GPUs that are not there", r"cuda:1: there is no GPU 7: this machine has 2 GPUs", "--devices", "cuda:0,7", model=two, CUDA_EMU_DEVICES=2)
    refuse("another kind", r"'digits.partita' was compiled for cuda:1; compile the model again with --devices cpu:1", "--devices", "cpu:1")
    needed, free, total = refuse(
        "less memory", r"the plan needs (\S+ \S+) on GPU 0 .*, and (\S+ \S+) of its (\S+ \S+) are free: compile the model for more devices or with --memory",
        model=large, CUDA_EMU_MEMORY_MB=1).groups()
    if not bytes_of(needed) > bytes_of(free) or bytes_of(total) != 2**20:
        raise Failure(f"the plan needs {needed}, and {free} of {total} are free?")
    # What a plan needs is said before anybody tries.
    plan = run([BIN / "partita-run", artifact, "--plan"])
    compile_model(EXAMPLE / "digits.onnx", two, "--dim", "batch=2", "--devices", "cuda:1,cpu:1", "--target", "cuda:sm_90")
    both = run([BIN / "partita-run", two, "--plan"])
    gpu = "needs  a GPU of NVIDIA's of sm_90 or later, with a driver of CUDA 12.0 or later\n"
    if gpu not in plan or "needs  cuDNN" in plan or not all(f"needs  {what}" in both for what in ("cuDNN 9", "a processor of x86-64-v3")):
        raise Failure(f"what the plans need:\n{plan}\n{both}")
    print("what cannot run on a GPU is refused in words: driver, GPUs, architecture, kind and memory; and --plan says what is needed")


if __name__ == "__main__":
    if not (EMULATOR / "libcuda.so.1").exists():
        print(f"skipped: no emulator at {EMULATOR} (set PARTITA_GPU_EMULATOR)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)))
