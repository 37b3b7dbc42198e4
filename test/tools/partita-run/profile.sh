# profile.sh - --profile: a trace that chrome://tracing opens
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

run 0 "$RUN" "$ART/two.partita" -i "$ART/more.npy" --profile "$OUT/trace.json"
for text in '"displayTimeUnit":"ms"' '"name":"cpu:1: S1"' '"stages":[{"name":"S0"' '"name":"F0 #2"' \
  '"name":"/layer1/MatMul"' '"name":"send /layer0/MatMul_output #0 to cpu:1"' \
  '"name":"receive /layer0/MatMul_output #0 from cpu:0"' \
  '"name":"wait for cpu:1 to take /layer0/MatMul_output #0"' \
  '"cat":"wait"' '"waited_us":' '"predicted_us":' '"step":0,"micro_batch":1' \
  '"GFLOP/s":' '"ph":"s"' '"ph":"f"'; do
  grep -qF "$text" "$OUT/trace.json" || fail "the trace has no $text"
done
if command -v python3 >/dev/null; then
  python3 -m json.tool "$OUT/trace.json" >/dev/null || fail "not JSON"
fi
run 0 "$RUN" "$ART/two.partita" --benchmark --runs 3 --profile "$OUT/b.json"

run 0 "$RUN" "$ART/two.partita" --benchmark --runs 3 --profile-table
for text in "medians of 3 steps" "covered" "predicted" "/layer1/MatMul" \
  "stage  device" "kind of work" "waiting" "moving bytes"; do
  says stdout "$text"
done
run 0 "$RUN" "$ART/two.partita" -i "$ART/more.npy" --profile-table
says stdout "medians of"
# Modules, by the names of nodes where the model says nothing of them.
says stdout "module"
says stdout "layer1 "
run 0 "$RUN" "$ART/two.partita" -i "$ART/more.npy" --profile-table --top 1
says stdout " more: "
refuses "--top belongs to --profile-table" "$RUN" "$ART/two.partita" --benchmark --top 3
run 0 "$RUN" "$ART/two.partita" --benchmark --runs 3 --profile-table --json
for key in covered gflops gbytes predicted_us waiting_us moving_us kinds modules; do
  says stdout "\"$key\":"
done

refuses "there is no folder" \
  "$RUN" "$ART/two.partita" -i "$ART/x.npy" --profile "$OUT/no/trace.json"

done_with
