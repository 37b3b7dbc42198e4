# plan.sh - --plan, as a table and as JSON
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

run 0 "$RUN" "$ART/two.partita" --plan
says stdout "two.partita: test over 2 devices"
says stdout "stage  device  blocks"
says stdout "S1     cpu:1   (empty)"
says stdout "fill_drain, 3 micro-batches of 4 samples a step; predicted (uncalibrated): step"
says stdout "needs  an x86-64 processor"
says stdout "input  'x' float32 [N, 64], 4 a micro-batch"
says stdout "output 'layers/y:0' float32 [N, 64]"
says stdout "/layer0/MatMul_output"

run 0 "$RUN" "$ART/two.partita" --plan --json
says stdout '"samples_per_step": 12'
says stdout '"device": "cpu:1"'
says stdout '"an x86-64 processor"'
if command -v python3 >/dev/null; then
  python3 -m json.tool "$OUT/stdout" >/dev/null || fail "not JSON"
fi

done_with
