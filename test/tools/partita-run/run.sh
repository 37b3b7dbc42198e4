# run.sh - Plain runs: inputs, outputs, partial micro-batches
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

run 0 "$RUN" "$ART/one.partita" --input "$ART/x.npy"
says stdout "layers/y:0  float32 [10, 64]"
says stdout "min -40.000  max 200.75"

# The same numbers, however the input is named and wherever the output goes.
run 0 "$RUN" "$ART/two.partita" --input "x=$ART/more.npy" --output "$OUT/a.npz"
run 0 "$RUN" "$ART/two.partita" -i "$ART/more.npy" -o "$OUT/b.npz" \
  --devices cpu:2 --threads 1 --no-pin
same "$OUT/a.npz" "$OUT/b.npz"
run 0 "$RUN" "$ART/two.partita" -i "$ART/more.npy" -o "$OUT/b.npz" --devices 2
same "$OUT/a.npz" "$OUT/b.npz"
run 0 "$RUN" "$ART/two.partita" -i "$ART/more.npy" -o "$OUT/folder/"
[ -f "$OUT/folder/layers_y_0.npy" ] || fail "no layers_y_0.npy"
run 0 "$RUN" "$ART/two.partita" -i "$ART/more.npy" -o "$OUT/folder"

# An output is an input of the same type: through the archive and the folder.
run 0 "$RUN" "$ART/two.partita" -i "x=$OUT/a.npz" -o "$OUT/c.npz"
run 0 "$RUN" "$ART/two.partita" -i "x=$OUT/folder/layers_y_0.npy" \
  -o "$OUT/d.npz"
same "$OUT/c.npz" "$OUT/d.npz"

# Two devices in a row are four when run twice.
run 0 "$RUN" "$ART/four.partita" -i "$ART/more.npy" -o "$OUT/e.npz"
same "$OUT/c.npz" "$OUT/e.npz"

run 0 "$RUN" "$ART/one.partita" -i "$ART/data1/input_0.pb" -o "$OUT/f.npz"
run 0 "$RUN" "$ART/one.partita" -i "$ART/x.npy" -o "$OUT/g.npz"
same "$OUT/f.npz" "$OUT/g.npz"
ls "$OUT" | grep -q 'npz\.' && fail "a temporary file was left"

# More threads than cores are worth a word.
run 0 "$RUN" "$ART/one.partita" -i "$ART/x.npy" --threads $(($(nproc) + 1))
says stderr "remark: $(($(nproc) + 1)) threads (1 device of $(($(nproc) + 1))) share $(nproc) core"
run 0 "$RUN" "$ART/one.partita" -i "$ART/x.npy" --threads 1
[ ! -s "$OUT/stderr" ] || fail "something on stderr"

run 0 "$RUN" --version
says stdout "partita-run "
run 0 "$RUN" --help
says stdout "Examples:"

done_with
