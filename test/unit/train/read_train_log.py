#!/usr/bin/env python3
"""read_train_log.py PROGRAM

Reads what partita-write-train-log (PROGRAM) writes, without Partita's code: lines of JSON, and event files down to their sums and fields. Where the
package `tensorboard` is there, it reads them as well.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        (length,), (sum_,) = struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        assert sum_ == masked(data[:8])
        message = data[12 : 12 + length]
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == masked(message)
        yield message
        data = data[16 + length :]


def fields(message):
    """(number, value) of each field: an int, bytes, or a float."""
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    at = 0
    while at < len(message):
        number, wire = divmod(varint(), 8)
        if wire == 0:
            yield number, varint()
        elif wire == 2:
            size = varint()
            at += size
            assert at <= len(message)
            yield number, message[at - size : at]
        else:
            size, form = {1: (8, "<d"), 5: (4, "<f")}[wire]
            at += size
            yield number, struct.unpack(form, message[at - size : at])[0]


def expected(steps, scale):
    """{tag: [(step, value)]}, as WriteTrainLog.cpp has them."""
    curves = {tag: [(100 * step, value) for step in steps] for tag, value in
              (("learning_rate", 0.125), ("samples_per_second", 1000.0), ("data_wait_fraction", 0.5))}
    curves["epoch"] = [(100 * step, float(step)) for step in steps]
    curves["loss"] = [(100 * step, struct.unpack("<f", struct.pack("<f", scale / step))[0]) for step in steps]
    curves["eval/accuracy"] = [(100 * step, 0.25 * step) for step in steps if step % 2 == 0]
    return curves


def check_events(path, steps, scale, restart):
    events = [dict(fields(message)) for message in records(path.read_bytes())]
    assert all(event[1] > 1e9 for event in events), "the time of day"
    assert events[0][3] == b"brain.Event:2"
    if restart:
        assert events[1][2] == restart and dict(fields(events[1][7])) == {1: 1}, events[1]
    curves = {}
    for event in events[2 if restart else 1 :]:
        for number, value in fields(event[5]):
            assert number == 1
            value = dict(fields(value))
            curves.setdefault(value[1].decode(), []).append((event[2], value[2]))
    assert curves == expected(steps, scale), curves


def check_lines(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["step"] for line in lines] == [100, 200, 300, 400, 500, 400, 500, 600]
    assert lines[1] == {"step": 200, "epoch": 2, "loss": 0.5, "learning_rate": 0.125, "samples_per_second": 1000, "data_wait_fraction": 0.5,
                        "eval": {"accuracy": 0.5}}
    assert "eval" not in lines[0]


def check_tensorboard(folder):
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        print("not read with tensorboard: that package is not here")
        return
    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    loss = [(event.step, event.value) for event in accumulator.Scalars("loss")]
    # Without what the first run had after step 300.
    assert loss == expected((1, 2, 3), 1)["loss"] + expected((4, 5, 6), 2)["loss"], loss
    assert set(accumulator.Tags()["scalars"]) == set(expected((2,), 1))
    print("read with tensorboard")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.argv[1], name], check=True)
        first, second = sorted(folder.glob("events.out.tfevents.*"))
        check_events(first, (1, 2, 3, 4, 5), 1, None)
        check_events(second, (4, 5, 6), 2, 301)
        check_lines(folder / "log.jsonl")
        check_tensorboard(folder)


if __name__ == "__main__":
    main()
