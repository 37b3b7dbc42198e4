#!/usr/bin/env python3
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A batch job: samples from a .npy file through a compiled model, a few steps at a time.

    run_batch.py MODEL.partita INPUT.npy OUTPUT.npy
"""

import collections
import sys

import numpy
import partita


def main():
    path, source, target = sys.argv[1:]
    samples = numpy.load(source, mmap_mode="r")
    with partita.Model(path) as model:
        under_way, results = collections.deque(), []
        for begin in range(0, len(samples), model.step_samples):
            if len(under_way) == 4:
                results.append(under_way.popleft().wait())
            under_way.append(model.submit(**{model.inputs[0].name: samples[begin : begin + model.step_samples]}))
        results += [ticket.wait() for ticket in under_way]
        numpy.save(target, numpy.concatenate([outputs[model.outputs[0].name] for outputs in results]))


if __name__ == "__main__":
    main()
