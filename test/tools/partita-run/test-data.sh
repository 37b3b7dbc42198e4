# test-data.sh - --test-data: vectors that agree and that do not
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

for n in 1 2 4; do
  case $n in 1) name=one ;; 2) name=two ;; 4) name=four ;; esac
  run 0 "$RUN" "$ART/$name.partita" --test-data "$ART/data$n"
  says stdout "output 'layers/y:0' float32 [10, 64]: ok, max abs diff 0"
  says stdout PASS
done

run 0 "$RUN" "$ART/one.partita" --test-data "$ART/sets"
says stdout test_data_set_0
says stdout test_data_set_1

run 1 "$RUN" "$ART/one.partita" --test-data "$ART/wrong"
says stdout "1 of 640 elements differ; worst at [3, 5]: 36 instead of 37"
says stdout "FAIL: 1 of 1 outputs differ"
# Far beyond what the range of the tensor explains.
says stdout "cosine 0.9999"
run 1 "$RUN" "$ART/one.partita" --test-data "$ART/wrong" --json
for text in '"pass":false' '"range":1e-05' '"set":"wrong"' '"mismatches":1' \
  '"worst":{"index":[3,5],"actual":36.0,"expected":37.0}'; do
  says stdout "$text"
done
run 0 "$RUN" "$ART/one.partita" --test-data "$ART/data1" --json
says stdout '"pass":true'
run 0 "$RUN" "$ART/one.partita" --test-data "$ART/wrong" --range-tol 1
says stdout "1 of 640 elements agree by the tensor's range"
run 0 "$RUN" "$ART/one.partita" --test-data "$ART/wrong" --atol 1
run 0 "$RUN" "$ART/one.partita" --test-data "$ART/wrong" --rtol 0.03

run 0 "$RUN" "$ART/one.partita" -i "$ART/x.npy" -o "$OUT/reference.npz"
run 0 "$RUN" "$ART/one.partita" -i "$ART/x.npy" --compare "$OUT/reference.npz"
says stdout "PASS: 1 tensors agree; least cosine 1, of 'layers/y:0'"
run 1 "$RUN" "$ART/two.partita" -i "$ART/x.npy" --compare "$OUT/reference.npz"
says stdout "DIFFERENT: output 'layers/y:0'"
says stdout "cosine"
run 1 "$RUN" "$ART/two.partita" -i "$ART/x.npy" --compare "$OUT/reference.npz" \
  --json
for text in '"pass":false' '"name":"layers/y:0"' '"cosine":' '"worst":'; do
  says stdout "$text"
done

refuses "there is no folder" "$RUN" "$ART/one.partita" --test-data "$ART/none"
mkdir "$OUT/empty"
refuses "holds no input_0.pb" "$RUN" "$ART/one.partita" --test-data "$OUT/empty"
mkdir "$OUT/noinput"
cp "$ART/data1/output_0.pb" "$OUT/noinput"
refuses "the input 'x'" "$RUN" "$ART/one.partita" --test-data "$OUT/noinput"
mkdir "$OUT/nooutput"
cp "$ART/data1/input_0.pb" "$OUT/nooutput"
refuses "holds no output_K.pb" \
  "$RUN" "$ART/one.partita" --test-data "$OUT/nooutput"
mkdir "$OUT/broken"
head -c 100 "$ART/data1/input_0.pb" >"$OUT/broken/input_0.pb"
refuses "cut off" "$RUN" "$ART/one.partita" --test-data "$OUT/broken"

done_with
