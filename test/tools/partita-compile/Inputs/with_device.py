"""with_device.py MACHINE NAME=VALUE...: the machine file with a GPU of sm_90. Rates that are not given are those of an H100; NAME= leaves one out."""

import json
import sys

rates = {"processors": 132, "clock": 1.83, "memory": 2680, "launch": 3000, "copy": 10000, "host": 51, "peer": 360}
for pair in sys.argv[2:]:
    name, value = pair.split("=")
    rates[name] = float(value) if value else None
machine = json.load(open(sys.argv[1]))
machine["devices"] = [{"kind": "cuda", "architecture": "sm_90", "name": "Example GPU", "rates": {name: value for name, value in rates.items() if value is not None}}]
json.dump(machine, sys.stdout)
