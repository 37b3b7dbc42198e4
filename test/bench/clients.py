#!/usr/bin/env python3
"""Words that a decoder with weights of 4 bits gives several clients, each of whom has a text of its own. Partita with a step for each of them, and with steps that those
who wait share (partita-compile --sequences, --dim batch_size=1,2,4,8); ONNX Runtime with a call for each, and with one batch of texts that are equally long. A program
asks for the next word of each text, and waits for all; prompts of 64 words are not timed.

    test/bench/clients.py                   # caches of 512 words, written in place
    test/bench/clients.py --growing         # caches that are longer behind a step"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

import decoder
import numpy as np

sys.path.append(str(decoder.REPOSITORY / "runtime" / "python"))
CACHE, PROMPT, WORDS = 512, 64, 100


def measure(artifact, clients, threads, growing):
    """Words a second; run in a process of its own."""
    import partita

    ids = np.random.default_rng(2).integers(0, 500, (clients, PROMPT + WORDS))

    def given(client, begin, end):
        words = {"input_ids": ids[client : client + 1, begin:end]}
        if not growing:
            return {**words, "attention_mask": (np.arange(CACHE) < end).astype(np.int64)[None]}
        past = CACHE - 1
        return {**words, "attention_mask": (np.arange(past + end - begin) >= past - begin).astype(np.int64)[None], "position_ids": np.arange(begin, end)[None]}

    with partita.Model(artifact, threads=threads) as model:
        texts = model.sequences[:clients]
        for client, text in enumerate(texts):
            text.reset()
            text.run(given(client, 0, PROMPT))
        took = []
        for end in range(PROMPT + 1, PROMPT + WORDS + 1):
            inputs = [given(client, end - 1, end) for client in range(clients)]
            begin = time.perf_counter()
            for ticket in [text.submit(each) for text, each in zip(texts, inputs)]:
                ticket.wait()
            took.append(time.perf_counter() - begin)
    print(clients / np.median(took[5:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("threads", 2), ("turns", 5), ("layers", 6), ("width", 1024)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--growing", action="store_true")
    options = parser.parse_args()
    from decoder_model import write_decoder

    run = decoder.run

    with tempfile.TemporaryDirectory() as work:
        model = pathlib.Path(work) / "decoder.onnx"
        heads = options.width // 64
        write_decoder(model, options.layers, options.width, heads, heads // 2, 64, 3 * options.width, 1000, 4096, growing=options.growing)
        sizes = {"sequence_length": f"1,{PROMPT}"}
        sizes |= {"past_sequence_length": CACHE - 1} if options.growing else {"past_sequence_length": CACHE, "total_sequence_length": CACHE}
        artifacts = {"alone": "1", "shared": "1,2,4,8"}
        for name, batch in artifacts.items():
            dims = (flag for size in ({**sizes, "batch_size": batch}).items() for flag in ("--dim", f"{size[0]}={size[1]}"))
            run(decoder.BIN / "partita-compile", model, "-o", pathlib.Path(work) / f"{name}.partita", "--quiet", "--state", "past_key_values.*=present.*", "--sequences", 8, *dims)
        print(f"{model.stat().st_size / 2**20:.0f} MiB, {options.threads} threads, {options.turns} turns; words a second\n")
        print("| clients | ONNX Runtime | in a batch | Partita | steps shared | times as many |\n| --- | --- | --- | --- | --- | --- |")
        for clients in (1, 2, 4, 8):
            turns = []
            for _ in range(options.turns):
                peers = []
                for texts in (1, clients):
                    took, _ = json.loads(run(sys.executable, decoder.__file__, "--peer", model, 1, CACHE, options.threads, 0, int(options.growing), texts))
                    peers.append(1e3 * texts / took)
                ours = (run(sys.executable, __file__, "--ours", pathlib.Path(work) / f"{name}.partita", clients, options.threads, int(options.growing)) for name in artifacts)
                turns.append([*peers, *map(json.loads, ours)])
            columns = np.array(turns).T
            low, middle, high = np.percentile(columns[3] / columns[2], (25, 50, 75))
            print(f"| {clients} | " + " | ".join(f"{np.median(column):.0f}" for column in columns) + f" | {middle:.2f} ({low:.2f} to {high:.2f}) |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ours"]:
        measure(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main()
