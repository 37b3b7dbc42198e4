#!/usr/bin/env python3
"""Trainings that nobody chose: the cases of test/executed/training_cases.py on random meshes, with random schedules, stages and options. Each is 20 steps
whose losses and parameters are PyTorch's (training_reference.json); some are begun by another random plan, which leaves a checkpoint; some are compiled
again from the partition that the compiler has written, and are the same artifact. A plan that is refused must be refused for a reason that people can see.

    trainings.py                               the bounded run of the test command
    trainings.py --trainings 1000 --first 500  others
    trainings.py --seed 1234                   one training, with its commands

PARTITA_TEST_TARGET=cuda:sm_80 compiles for GPUs, of which test/gpu-emulator may be a driver.
"""

import argparse
import itertools
import pathlib
import random
import re
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "executed"))

from harness import BIN, TARGET, Failure, main, run

import training
from training_cases import CASES, STEPS

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb_h1", "zb_v", "looped", "sequential", "fill_drain", "auto")
MOST_DEVICES = 16
# What cannot be, by what is asked for.
REFUSALS = (
    r"the micro-batches of a step .* cannot be dealt out to \d+ replicas",
    r"`reproducible` adds gradients up in a tree",
    r"zero \d: replicas share in each micro-batch what `reproducible` computes together",
)


class Draw:
    """A case, and the flags of a plan for it."""

    def __init__(self, random):
        self.random = random
        self.case = random.choice(CASES)
        self.dtype = random.choice(self.case.dtypes)
        self.optimized = self.chance(0.1)
        # A checkpoint knows it, so a plan that goes on has it, too.
        self.flags = [*self.case.flags(), *(("--on-nonfinite", random.choice(("stop", "skip"))) if self.chance(0.15) else ())]

    def chance(self, share):
        return self.random.random() < share

    def plan(self):
        choose, flags = self.random.choice, []
        data = choose((1, 2, 2, 2, 3, 4, 4, 8)) if self.case.micro > 1 else 1
        stages, tensor = choose((1, 1, 2, 2, 3, 4, 5)), choose((1, 1, 1, 2, 3, 4))
        if data * stages * tensor > MOST_DEVICES:
            tensor = 1
        if data > 1:
            flags += ["--data-parallel", data]
            if self.chance(0.75):
                flags += ["--zero", choose((0, 1, 2, 3, 3, "auto"))]
        if tensor > 1:
            flags += ["--tensor-parallel", tensor]
        if data * stages * tensor > 1:
            flags += ["--devices", self.kinds(stages) if TARGET and stages > 1 and data * tensor == 1 and self.chance(0.5) else data * stages * tensor]
        if stages > 1 and self.chance(0.8):
            schedule = choose(SCHEDULES)
            flags += ["--schedule", schedule]
            if schedule in ("interleaved", "looped") and self.chance(0.5):
                flags += ["--stages", stages * choose((2, 3))]
        elif stages == 1 and self.chance(0.2):
            flags += ["--reproducible"]
        for share, option in (
            (0.3, ("--recompute", choose(("standard", "full")))), (0.2, ("--fusion-bytes", choose(("0", "64", "1KiB")))), (0.15, ("--optimizer-state", "host")),
            (0.15, ("--no-library-calls",)), (0.15, ("--reference",)), (0.1, ("--no-winograd",)), (0.1, ("--weights", "beside"))):
            if self.chance(share):
                flags += option
        return flags

    def kinds(self, stages):
        """GPUs and CPUs, in either order."""
        first = self.random.randrange(1, stages)
        kinds = self.random.sample(("cuda", "cpu"), 2)
        return f"{kinds[0]}:{first},{kinds[1]}:{stages - first}"


class Checker:
    def __init__(self, work, says):
        self.work, self.says = work, says
        self.count = dict.fromkeys(("trained", "refused", "begun by another plan", "compiled again from a partition"), 0)

    def compile(self, draw, name, flags, target=TARGET):
        """The artifact, or None if the plan is refused."""
        model, artifact = training.write_model(self.work, draw.case.model, draw.dtype), self.work / f"{name}.partita"
        command = [BIN / "partita-compile", model, "-o", artifact, *target, *draw.flags, *flags, *(() if draw.optimized else ("--no-optimize",))]
        if self.says:
            print(*command)
        status, text = run(command, expect=None)
        if not status:
            return artifact
        error = next((line for line in reversed(text.splitlines()) if "error:" in line), text)
        if status != 1 or not any(re.search(refusal, error) for refusal in REFUSALS):
            raise Failure(f"it is not compiled: {error}")
        self.count["refused"] += 1
        return None

    def check(self, seed):
        draw = Draw(random.Random(seed))
        flags = draw.plan()
        try:
            if not (artifact := self.compile(draw, "plan", flags)):
                return
            begun, more = None, ["--threads", draw.random.choice((1, 2, 3))] if draw.chance(0.3) else []
            if draw.chance(0.2) and (first := self.compile(draw, "first", draw.plan())):
                begun = (first, draw.random.randrange(1, STEPS))
                self.count["begun by another plan"] += 1
            if draw.chance(0.1):
                self.check_partition(draw, artifact, flags)
            training.compare_case(self.work, draw.case, draw.dtype, artifact, "", begun, more)
            self.count["trained"] += 1
        except Failure as failure:
            raise Failure(f"seed {seed}: {draw.case.name} {draw.dtype} {' '.join(map(str, flags))}: {failure}")

    def check_partition(self, draw, artifact, flags):
        """The partition that is written says the whole decision."""
        partition = self.work / "partition.yaml"
        self.compile(draw, "plan", [*flags, "--emit-partition", partition])
        # The file says the kinds of the devices, where there are several.
        target = TARGET if all(isinstance(flag, int) for before, flag in zip(flags, flags[1:]) if before == "--devices") else ()
        placed = {"--devices", "--data-parallel", "--tensor-parallel", "--schedule", "--stages"}
        others, left = [], iter(flags)
        for flag in left:
            if flag in placed:
                next(left)
            else:
                others.append(flag)
        again = self.compile(draw, "again", [*others, "--partition", partition], target)
        if not again or again.read_bytes() != artifact.read_bytes():
            raise Failure(f"the artifact from the written partition differs:\n{partition.read_text()}")
        self.count["compiled again from a partition"] += 1


def check():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainings", type=int, default=40, help="how many (default: 40)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--seconds", type=float, help="begin no more after this time")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.trainings) if options.seed is None else [options.seed]
    begin, wrong = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(pathlib.Path(folder), options.seed is not None)
        for seed in itertools.takewhile(lambda _: not options.seconds or time.monotonic() - begin < options.seconds, seeds):
            try:
                checker.check(seed)
            except Failure as failure:
                wrong.append(failure)
                print(failure, flush=True)
    print("random trainings: " + ", ".join(f"{count} {what}" for what, count in checker.count.items()))
    if wrong:
        raise Failure(f"{len(wrong)} are wrong")


if __name__ == "__main__":
    main(check, use_workers=not TARGET)
