#!/usr/bin/env python3
"""Draws a step of a training from its profile as an SVG picture: a row for each device, a box for each unit. Needs nothing but Python.

    draw_trace.py trace.json STEP.svg [STEP]

STEP is the number of the step, as the profile counts them; without it, the last one of the profile is drawn.
"""

import html
import json
import pathlib
import sys

WIDTH, ROW, LEFT, TOP = 900, 34, 52, 24
COLORS = {"P": "#bbbbbb", "F": "#4c78a8", "B": "#f58518", "I": "#f58518", "W": "#e4a853", "U": "#54a24b"}


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip())
    events = json.loads(pathlib.Path(sys.argv[1]).read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"].rsplit(":", 1)[0] for event in events if event["name"] == "thread_name"}
    units = [event for event in events if event.get("cat") == "unit"]
    step = int(sys.argv[3]) if len(sys.argv) == 4 else max(unit["args"]["step"] for unit in units)
    units = [unit for unit in units if unit["args"]["step"] == step]
    if not units:
        sys.exit(f"draw_trace.py: {sys.argv[1]} has no step {step}")
    begin = min(unit["ts"] for unit in units)
    scale = (WIDTH - LEFT - 8) / (max(unit["ts"] + unit["dur"] for unit in units) - begin)
    height = TOP + ROW * len(names) + 8
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">', f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
             f'<text x="{LEFT}" y="16">one step, {(WIDTH - LEFT - 8) / scale / 1000:.1f} ms: forward (blue), backward (orange), update (green)</text>']
    for row, (thread, name) in enumerate(sorted(names.items())):
        y = TOP + ROW * row
        lines.append(f'<text x="4" y="{y + 20}">{html.escape(name)}</text>')
        for unit in units:
            if unit["tid"] != thread:
                continue
            x, width = LEFT + (unit["ts"] - begin) * scale, max(unit["dur"] * scale, 0.5)
            lines.append(f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="{ROW - 8}" fill="{COLORS[unit["name"][0]]}"><title>{html.escape(unit["name"])}</title></rect>')
            if width > 14:
                lines.append(f'<text x="{x + width / 2:.1f}" y="{y + 21}" text-anchor="middle" fill="white">{unit["args"]["micro_batch"]}</text>')
    pathlib.Path(sys.argv[2]).write_text("\n".join([*lines, "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
