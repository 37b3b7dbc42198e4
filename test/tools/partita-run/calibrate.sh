# calibrate.sh - --calibrate: what this machine can do, as a file
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

# One core is measured fast.
run 0 taskset -c 0 "$RUN" --calibrate "$OUT/machine.json" --calibrate-seconds 0.1
for text in "depthwise" "GFLOP/s" "1 core," "1 thread: least"; do
  says stdout "$text"
done
if command -v python3 >/dev/null; then
  python3 - "$OUT/machine.json" <<'EOF' || fail "a table has a wrong size"
import json, math, sys
machine = json.load(open(sys.argv[1]))
assert machine["partita_machine"] == 4 and machine["cpu"]
for team in machine["teams"]:
    for table in team["tables"].values():
        assert len(table["values"]) == math.prod(map(len, table["axes"].values()))
        assert all(v >= 0 for v in table["values"])
        assert table["unit"].startswith("ns") or all(table["values"])
EOF
fi
refuses "there is no folder" "$RUN" --calibrate "$OUT/no/machine.json"
refuses "was compiled without the measurements" \
  "$RUN" "$ART/two.partita" --calibrate "$OUT/machine.json"
refuses "first write it" "$RUN" "$ART/two.partita" --calibrate "$OUT/no.json"
refuses "leave out" \
  "$RUN" "$ART/two.partita" --calibrate "$OUT/machine.json" --output "$OUT/y.npz"
echo '{"partita_machine": 4, "teams": [' >"$OUT/cut.json"
refuses "is no description of a machine" \
  "$RUN" "$ART/two.partita" --calibrate "$OUT/cut.json"
refuses "no artifact" "$RUN" --benchmark

done_with
