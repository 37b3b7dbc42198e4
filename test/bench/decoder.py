#!/usr/bin/env python3
"""Times a language model with weights of 4 bits beside ONNX Runtime, in turns, each in a process of its own: a word, with short and long caches of keys and
values, and a prompt of 64 words. The model is as ONNX Runtime GenAI's builder writes them (test/executed/decoder_model.py), with random weights. Caches stay where
they are: in ONNX Runtime inputs and outputs share them, as in GenAI, and in Partita they are states.

    decoder.py [--threads 2] [--turns 5] [--layers 6] [--width 1024] [--accuracy 1] [--copied] [--growing] [--experts 8]

Prints medians in ms, with quartiles of how many times as fast Partita is, and the memory of both processes, with the caches in it. --copied: each step gets caches,
and returns others.
--growing: the caches that a step returns are longer by the new words, as in models that Optimum exports. ONNX Runtime writes them anew then.
--experts N: a layer has N networks of the same size, two of which compute a word (QMoE).
--accuracy 4: ONNX Runtime may round what is multiplied to 8 bits. Needs onnx and onnxruntime, and nothing else at work.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
sys.path.append(str(REPOSITORY / "test" / "executed"))
TASKS = {"a word, cache of 512": (1, 512), "a word, cache of 4096": (1, 4096), "a prompt of 64 words": (64, 512)}
LENGTH = 4096


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE).stdout


def measure_peer(model, words, cache, threads, copied, growing, texts=1):
    """What ONNX Runtime takes for so many texts, ms and MiB; run in a process of its own."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options)
    noise, inputs = np.random.default_rng(1), {}
    for port in session.get_inputs():
        if port.name == "input_ids":
            inputs[port.name] = np.arange(words)[None].repeat(texts, 0) % 500
        elif port.name == "attention_mask":
            inputs[port.name] = np.ones((texts, cache), np.int64)
        elif port.name == "position_ids":
            inputs[port.name] = np.arange(cache - words, cache)[None].repeat(texts, 0)
        else:
            entries = cache - words if growing else cache
            inputs[port.name] = noise.standard_normal((texts, port.shape[1], entries, port.shape[3])).astype(np.float32)
    binding = session.io_binding()
    for name, value in inputs.items():
        shared = onnxruntime.OrtValue.ortvalue_from_numpy(value)
        binding.bind_ortvalue_input(name, shared)
        if name.startswith("past") and not growing:
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), shared)
    for port in session.get_outputs() if growing else session.get_outputs()[:1]:
        binding.bind_output(port.name)
    took = []
    for _ in range(25):
        begin = time.perf_counter()
        if copied:
            session.run(None, inputs)
        else:
            session.run_with_iobinding(binding)
        took.append(1e3 * (time.perf_counter() - begin))
    memory = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(json.dumps([np.median(took[5:]), memory / 1024]))


def measure(artifact, threads):
    result = json.loads(run(BIN / "partita-run", artifact, "--benchmark", "--threads", threads, "--json"))
    return result["median_ms"], result["peak_resident_bytes"] / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("threads", 2), ("turns", 5), ("layers", 6), ("width", 1024), ("accuracy", 1), ("experts", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name in ("copied", "growing"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    from decoder_model import write_decoder

    with tempfile.TemporaryDirectory() as work:
        model = pathlib.Path(work) / "decoder.onnx"
        heads = options.width // 64
        write_decoder(model, options.layers, options.width, heads, heads // 2, 64, 3 * options.width, 1000, LENGTH, options.accuracy, options.growing, options.experts)
        print(f"{model.stat().st_size / 2**20:.0f} MiB, {options.threads} threads, {options.turns} turns; ms, and MiB\n")
        print("| task | ONNX Runtime | Partita | times as fast | memory of ONNX Runtime | of Partita |\n| --- | --- | --- | --- | --- | --- |")
        for task, (words, cache) in TASKS.items():
            artifact = pathlib.Path(work) / "decoder.partita"
            sizes = {"batch_size": 1, "sequence_length": words}
            sizes |= {"past_sequence_length": cache - words} if options.growing else {"past_sequence_length": cache, "total_sequence_length": cache}
            run(BIN / "partita-compile", model, "-o", artifact, "--quiet", *(flag for name, size in sizes.items() for flag in ("--dim", f"{name}={size}")),
                *([] if options.copied else ["--state", "past_key_values.*=present.*"]))
            turns = []
            for _ in range(options.turns):
                peer = json.loads(run(sys.executable, __file__, "--peer", model, words, cache, options.threads, int(options.copied), int(options.growing)))
                turns.append((*peer, *measure(artifact, options.threads)))
            peers, peer_memory, ours, memory = zip(*turns)
            low, middle, high = np.percentile(np.divide(peers, ours), (25, 50, 75))
            times = f"{np.median(peers):.3g} | {np.median(ours):.3g} | {middle:.2f} ({low:.2f} to {high:.2f})"
            print(f"| {task} | {times} | {max(peer_memory):.0f} | {max(memory):.0f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        measure_peer(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main()
