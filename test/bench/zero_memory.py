#!/usr/bin/env python3
"""The memory of each process of a training of GPT-2 124M on replicas, as the system counts it, beside the plan and ZeRO's formulas.

    zero_memory.py                                all: it needs 24 GiB
    zero_memory.py --replicas 2 4 --zero 1 3      some
    zero_memory.py --layers 2 --vocabulary 5000   a smaller model

With AdamW in f32 and several micro-batches, a device has 16, 8 + 8/N, 4 + 12/N or 16/N bytes of each parameter, with `--zero` 0 to 3. Activations, and the layer
that is being computed, come on top. The system's count is of anonymous memory, without files and code, after three steps.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "executed"), str(HERE.parents[1] / "examples")]

import numpy as np
import onnx

from peers import rank_processes
from shakespeare import make_model as shakespeare
from training_memory import FREED, count

BIN = pathlib.Path(os.environ.get("PARTITA_BIN", HERE.parents[1] / "build" / "bin"))
FORMULAS = (lambda n: 16, lambda n: 8 + 8 / n, lambda n: 4 + 12 / n, lambda n: 16 / n)
MIB = 1 << 20


def measure(artifact, data, replicas):
    """The largest count of all processes, after three steps."""
    token = f"{os.getpid()}.memory"
    environment = dict(os.environ, **FREED, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PARTITA_TEST_RUN=token, OMP_WAIT_POLICY="passive")
    command = ["mpirun", "--oversubscribe", "-n", replicas, BIN / "partita-run", artifact, "--train", *data, "--threads", 1, "--no-pin", "--json", "--report-every", 1, "--steps", 10**6, "--timeout", 600]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("{") and json.loads(line).get("step") == 3:
                held = max(count(pid) for pid in rank_processes(token).values())
                process.terminate()
                process.stdout.read()
                return held
    sys.exit(f"the training ended early:\n{said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--zero", type=int, nargs="+", default=[0, 1, 2, 3], choices=range(4))
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--block", type=int, default=32, help="tokens of a sample")
    parser.add_argument("--json", action="store_true", help="a line for each run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        model = shakespeare.make_model(batch=1, block=given.block, layers=given.layers, heads=given.width // 64, width=given.width, vocabulary=given.vocabulary)
        parameters = sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) and "mask" not in tensor.name)
        onnx.save(model, work / "gpt.onnx")
        noise, data = np.random.default_rng(1), []
        for name in ("tokens", "next"):
            np.save(work / f"{name}.npy", noise.integers(0, given.vocabulary, (96, given.block)))
            data += ["--data", f"{name}={work}/{name}.npy"]
        if not given.json:
            print(f"{parameters / 1e6:.1f} million parameters, AdamW, two micro-batches of {given.block} tokens for each replica\n")
            print(f"{'replicas':>8}  {'zero':>4}  {'formula':>12}  {'plan':>12}  {'system':>12}")
        for replicas in given.replicas:
            for zero in given.zero:
                command = [BIN / "partita-compile", work / "gpt.onnx", "--loss", "cross_entropy:logits:next,axis=2", "--optimizer", "adamw", "--micro-batches", 2 * replicas,
                           "--data-parallel", replicas, "--zero", zero, "--json", "-o", work / "gpt.partita"]
                text = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout
                plan = next(plan for plan in json.JSONDecoder().raw_decode(text, text.index("["))[0] if plan["entry"] == "train")
                row = {"replicas": replicas, "zero": zero, "formula": int(parameters * FORMULAS[zero](replicas)), "plan": max(stage["peak_bytes"] for stage in plan["stages"]),
                       "system": measure(work / "gpt.partita", data, replicas)}
                print(json.dumps(row) if given.json else f"{replicas:8}  {zero:4}" + "".join(f"  {row[key] / MIB:8.0f} MiB" for key in ("formula", "plan", "system")), flush=True)


if __name__ == "__main__":
    main()
