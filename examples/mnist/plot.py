#!/usr/bin/env python3
"""Draws loss and accuracy of a training as an SVG picture. Needs nothing but Python.

    plot.py RUN/log.jsonl CURVE.svg
"""

import json
import math
import pathlib
import sys

WIDTH, HEIGHT = 360, 240  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 32, 40  # its margins
COLORS = {"training": "#1f77b4", "evaluation": "#d62728"}


def read(path):
    """The curves of each panel, by name: points (step, value). Where a step is there twice, the later line counts."""
    lines = {}
    for text in pathlib.Path(path).read_text().splitlines():
        line = json.loads(text)
        lines[line["step"]] = line

    def curve(value_of):
        found = ((step, value_of(line)) for step, line in sorted(lines.items()))
        return [(step, value) for step, value in found if isinstance(value, (int, float))]

    return {"loss": {"training": curve(lambda line: line.get("loss")), "evaluation": curve(lambda line: line.get("eval", {}).get("eval_loss"))},
            "accuracy": {"evaluation": curve(lambda line: line.get("eval", {}).get("accuracy"))}}


def ticks(low, high, count=5):
    """Round numbers from `low` to `high`, of which there are about `count`."""
    raw = (high - low) / count or 1
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw * 0.999)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def ticks_of_powers(low, high):
    """The same for a logarithmic axis, from the logarithm `low` to `high`: logarithms."""
    numbers = (digit * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for digit in (1, 2, 5))
    return [number for number in map(math.log10, numbers) if low <= number <= high]


class Panel:
    """Axes over the range of all curves, and the curves. Values that differ by a factor of five and more are drawn by their logarithms."""

    def __init__(self, title, curves, at):
        self.title, self.curves, self.at = title, curves, at
        points = [point for curve in curves.values() for point in curve]
        self.last = max(step for step, _ in points)
        low, high = min(value for _, value in points), max(value for _, value in points)
        self.is_log = low > 0 and high / low >= 5
        low, high = self.scale(low), self.scale(high)
        margin = 0.05 * (high - low) or 0.1
        self.low, self.high = low - margin, high + margin

    def x(self, step):
        return self.at + LEFT + (WIDTH - LEFT - RIGHT) * step / self.last

    def scale(self, value):
        return math.log10(value) if self.is_log else value

    def y(self, scaled):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (scaled - self.low) / (self.high - self.low)

    def draw(self):
        left, right, bottom = self.at + LEFT, self.at + WIDTH - RIGHT, HEIGHT - BOTTOM
        yield f'<text x="{left}" y="20" font-weight="bold">{self.title}</text>'
        for at in (ticks_of_powers if self.is_log else ticks)(self.low, self.high):
            yield f'<path d="M{left} {self.y(at):.1f}H{right}" stroke="#ddd"/>'
            yield f'<text x="{left - 6}" y="{self.y(at) + 4:.1f}" text-anchor="end">{10**at if self.is_log else at:.4g}</text>'
        for step in ticks(0, self.last):
            yield f'<text x="{self.x(step):.1f}" y="{bottom + 16}" text-anchor="middle">{step:g}</text>'
        yield f'<path d="M{left} {TOP}V{bottom}H{right}" stroke="black" fill="none"/>'
        yield f'<text x="{(left + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">step</text>'
        for number, (name, curve) in enumerate((name, curve) for name, curve in self.curves.items() if curve):
            color = COLORS[name]
            places = [f"{self.x(step):.1f} {self.y(self.scale(value)):.1f}" for step, value in curve]
            yield f'<path d="M{"L".join(places)}" stroke="{color}" stroke-width="1.5" fill="none"/>'
            if name == "evaluation":
                yield from (f'<circle cx="{place.split()[0]}" cy="{place.split()[1]}" r="3" fill="{color}"/>' for place in places)
            yield f'<text x="{right - 72 * number}" y="20" text-anchor="end" fill="{color}">{name}</text>'


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    panels = [(title, curves) for title, curves in read(sys.argv[1]).items() if any(curves.values())]
    if not panels:
        sys.exit(f"{sys.argv[1]} has no losses")
    width = WIDTH * len(panels)
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{HEIGHT}" fill="white"/>']
    for number, (title, curves) in enumerate(panels):
        text += Panel(title, curves, WIDTH * number).draw()
    pathlib.Path(sys.argv[2]).write_text("\n".join([*text, "</svg>", ""]))


if __name__ == "__main__":
    main()
