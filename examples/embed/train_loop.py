#!/usr/bin/env python3
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training that knows when to stop: train-loop.cpp in Python, with .npy files.

    train_loop.py LEARNING.partita RUN TRAINED.onnx image=image.npy label=label.npy

The last tenth of the samples is held out. An epoch learns from all others in their order, and ends with an evaluation and a checkpoint in the folder RUN. When
two epochs have made nothing better, or after the tenth, what was best is written.
"""

import math
import pathlib
import sys

import numpy
import partita

MOST_EPOCHS, PATIENCE = 10, 2


def main():
    path, run, output = sys.argv[1:4]
    samples = {name: numpy.load(file, mmap_mode="r") for name, file in (word.split("=", 1) for word in sys.argv[4:])}
    with partita.Trainer(path) as trainer:

        def part(begin, size):
            return {name: array[begin : begin + size] for name, array in samples.items()}

        count = min(len(array) for array in samples.values())
        held = -(-(count // 10) // trainer.evaluation_samples) * trainer.evaluation_samples
        steps = (count - held) // trainer.step_samples
        if held == 0 or steps < 1:
            sys.exit(f"{count} samples are too few for a step and an evaluation")
        best, best_step, worse = math.inf, 0, 0
        for epoch in range(1, MOST_EPOCHS + 1):
            for i in range(steps):
                result = trainer.step(part(i * trainer.step_samples, trainer.step_samples))
            found = trainer.evaluate(part(count - held, held))
            right = f"  right {found.right} of {found.labels}" if found.labels else ""
            print(f"epoch {epoch}  step {result.step}  loss {result.loss:.4f}  held out {found.loss:.4f}{right}")
            trainer.save(run, keep=PATIENCE + 1)
            worse = 0 if found.loss < best else worse + 1
            if worse == 0:
                best, best_step = found.loss, result.step
            elif worse == PATIENCE:
                break
        trainer.load_checkpoint(pathlib.Path(run) / f"step-{best_step:08}")
        trainer.export(output)
        print(f"{output} is the model after step {best_step}")


if __name__ == "__main__":
    main()
