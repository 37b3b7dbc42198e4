#!/usr/bin/env python3
"""Partitions of the example model: the compiler's whole decision loads again to the same artifact, byte for byte; blocks, BeginBlock, stages on
one device or many and every schedule give the bytes of one device; micro-batches need not divide the samples; the planned peak is what is used."""

import itertools
import json
import pathlib
import tempfile

from harness import REPOSITORY, SCHEDULES, Failure, compile_model, main, run_artifact

MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"
IMAGES = REPOSITORY / "examples" / "digits" / "digits.npy"

PARTITIONS = {
    "blocks and stages": 'blocks: {B1: ["/scale", "/conv1/*"], B2: ["/conv2/*", "/conv3/*"], B3: ["/Flatten", "/fc*", "/Softmax"]}\nstages: [[B1], [B2], [B3]]\n',
    "two blocks a stage": 'blocks: {B1: ["/scale", "/conv1/*"], B2: ["/conv2/*", "/conv3/*"], B3: ["/Flatten", "/fc*", "/Softmax"]}\nstages: [[B1, B2], [B3]]\n',
    "begin blocks": 'begin_blocks: {B1: "/scale", B2: "/conv3/Conv", B3: "/fc1/Gemm"}\nauto_stage: auto_increment\n',
    "begin blocks, one stage": 'begin_blocks: {B1: "/scale", B2: "/conv3/Conv"}\nauto_stage: same_as_device\n',
    "stages that share a device": 'begin_blocks: {B1: "/scale", B2: "/conv2/Conv", B3: "/fc1/Gemm"}\nstages: [[B1], [B2], [B3]]\ndevices: [0, 1, 0]\n',
    "devices in another order": 'begin_blocks: {B1: "/scale", B2: "/conv2/Conv"}\nstages: [[B1], [B2]]\ndevices: [1, 0]\nschedule: sequential\n',
    "fewer micro-batches than stages": 'begin_blocks: {B1: "/scale", B2: "/conv2/Conv", B3: "/fc1/Gemm"}\nstages: [[B1], [B2], [B3]]\nmicro_batches: 2\n',
    "three laps over two devices": 'begin_blocks: {B1: "/scale", B2: "/conv2/Conv", B3: "/conv3/Conv", B4: "/Flatten", B5: "/fc1/Gemm", B6: "/fc2/Gemm"}\nstages: [[B1], [B2], [B3], [B4], [B5], [B6]]\ndevices: [0, 1, 0, 1, 0, 1]\nschedule: looped\nmicro_batches: 5\n',
    "laps in another order": 'begin_blocks: {B1: "/scale", B2: "/conv2/Conv", B3: "/conv3/Conv", B4: "/fc1/Gemm"}\nstages: [[B1], [B2], [B3], [B4]]\ndevices: [0, 1, 1, 0]\nschedule: looped\nmicro_batches: 3\n',
    "many micro-batches": 'begin_blocks: {B1: "/scale", B2: "/conv2/Conv", B3: "/fc1/Gemm"}\nstages: [[B1], [B2], [B3]]\nmicro_batches: 16\n',
}


def outputs(artifact, work, *flags):
    out = work / "out.npz"
    run_artifact(artifact, "--threads", "1", "--input", f"image={IMAGES}", "--output", out, *flags)
    return out.read_bytes()


def check_schedules(work):
    """One micro-batch, fewer than stages, as many, more, and so many that the last is not full: the bytes of one device, and of the file."""
    dim = ("--dim", "batch=1")
    one, split, auto, again = (work / name for name in ("one.partita", "schedule.yaml", "auto.partita", "again.partita"))
    compile_model(MODEL, one, *dim)
    expected = outputs(one, work)
    for schedule, devices, batches in itertools.product(SCHEDULES, (2, 3, 4), (1, 2, 3, 4, 5, 8, 11)):
        what = f"{schedule}, {devices} devices, {batches} micro-batches"
        compile_model(MODEL, auto, *dim, "--schedule", schedule, "--devices", devices, "--micro-batches", batches, "--emit-partition", split)
        if outputs(auto, work) != expected:
            raise Failure(f"{what}: not the bytes of one device")
        compile_model(MODEL, again, *dim, "--partition", split)
        if auto.read_bytes() != again.read_bytes():
            raise Failure(f"{what}: the partition file that the compiler wrote gives another artifact:\n{split.read_text()}")
    for stages in (3, 6, 7):
        compile_model(MODEL, auto, *dim, "--schedule", "looped", "--devices", 2, "--stages", stages)
        if outputs(auto, work) != expected:
            raise Failure(f"looped, {stages} stages on two devices: not the bytes of one device")


def check(work):
    for batch in (1, 3, 10, 16):
        dim = ("--dim", f"batch={batch}")
        one = work / "one.partita"
        compile_model(MODEL, one, *dim)
        expected = outputs(one, work)
        for name, text in PARTITIONS.items():
            split, again = work / "split.yaml", work / "again.yaml"
            split.write_text(text)
            first, second = work / "first.partita", work / "second.partita"
            compile_model(MODEL, first, *dim, "--partition", split, "--emit-partition", again)
            if outputs(first, work) != expected:
                raise Failure(f"{name}, batch {batch}: not the bytes of one device")
            compile_model(MODEL, second, *dim, "--partition", again)
            if first.read_bytes() != second.read_bytes():
                raise Failure(f"{name}: the partition file that the compiler wrote gives another artifact:\n{again.read_text()}")
    check_schedules(work)
    for devices in (2, 4, 8, 12):
        auto, again = work / "auto.partita", work / "again.partita"
        split = work / "auto.yaml"
        compile_model(MODEL, auto, "--dim", "batch=3", "--devices", devices, "--emit-partition", split)
        # A compiler of its own: no kernel is one that the first has compiled.
        compile_model(MODEL, again, "--dim", "batch=3", "--partition", split, alone=True)
        if auto.read_bytes() != again.read_bytes():
            raise Failure(f"{devices} devices: the partition file that the compiler wrote gives another artifact:\n{split.read_text()}")
        measured = json.loads(run_artifact(auto, "--benchmark", "--runs", "3", "--warmup", "1", "--no-pin", "--json", alone=True))
        if measured["heap_allocations"]:
            raise Failure(f"{devices} devices: {measured['heap_allocations']} allocations from the heap in three steps")
        for report in measured["memory"]:
            if report["arena_touched_bytes"] != report["arena_bytes"]:
                raise Failure(f"{devices} devices: planned {report['arena_bytes']} bytes of arena, used {report['arena_touched_bytes']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)), use_workers=True)
    print("every partition gives the bytes of one device")
