# benchmark.sh - --benchmark, for people and as JSON
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

run 0 "$RUN" "$ART/two.partita" --benchmark --warmup 1 --runs 3
says stdout "3 steps measured, after 1 to warm up"
says stdout "median"
says stdout "bubble   measured"
# What the plan reserved is what a step writes.
grep -q "^cpu:1 .* 6.00 KiB " "$OUT/stdout" || fail "no arena of 6 KiB"

run 0 "$RUN" "$ART/two.partita" --benchmark --json --runs 3
for key in median_ms p10_ms p90_ms samples_per_s stream_samples_per_s bubble_measured \
  bubble_predicted predicted_ms arena_bytes arena_touched_bytes; do
  says stdout "\"$key\":"
done
[ "$(wc -l <"$OUT/stdout")" -eq 1 ] || fail "more than one line"
if command -v python3 >/dev/null; then
  python3 -m json.tool "$OUT/stdout" >/dev/null || fail "not JSON"
fi

# As many steps as a time takes.
run 0 "$RUN" "$ART/two.partita" --benchmark --json --runs 1 --seconds 0.3
runs=$(sed 's/.*"runs":\([0-9]*\),.*/\1/' "$OUT/stdout")
[ "$runs" -gt 3 ] || fail "$runs steps in 0.3 seconds"
run 0 "$RUN" "$ART/two.partita" --benchmark --json --runs 7 --seconds 1e-9
says stdout '"runs":7,'
run 1 "$RUN" "$ART/two.partita" --benchmark --seconds 0
says stderr "'0' is not a number above 0"

# Samples at a rate: 300 or so in half a second, none of them lost.
run 0 "$RUN" "$ART/two.partita" --benchmark --rate 600 --seconds 0.5
says stdout "offered  600 samples a second"
says stdout "p99.9"
run 0 "$RUN" "$ART/two.partita" --benchmark --rate 600 --seconds 0.5 \
  --batch-delay 5 --json
for key in batch_delay_ms served_samples_per_s kept_up steps p50 p99.9 max; do
  says stdout "\"$key\":"
done
samples=$(sed 's/.*"samples":\([0-9]*\),.*/\1/' "$OUT/stdout")
[ "$samples" -gt 200 ] || fail "$samples samples in half a second"
run 1 "$RUN" "$ART/two.partita" --rate 5
says stderr "--rate belongs to --benchmark"
run 1 "$RUN" "$ART/two.partita" --benchmark --batch-delay 5
says stderr "--batch-delay belongs to --benchmark --rate R"

# Samples that are given are used, however many they are.
run 0 "$RUN" "$ART/two.partita" --benchmark --runs 3 -i "$ART/x.npy"
run 0 "$RUN" "$ART/two.partita" --benchmark --runs 3 -i "$ART/more.npy"

done_with
