# wrong-input.sh - Every wrong input: a clear error, exit 1, no file
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

refuses "No such file" "$RUN" "$OUT/absent.partita" --plan
echo nonsense >"$OUT/text.partita"
refuses "$OUT/text.partita" "$RUN" "$OUT/text.partita" --plan
refuses "$OUT" "$RUN" "$OUT" --plan
for size in 0 1 63 64 4095 4096 5000; do
  head -c $size "$ART/one.partita" >"$OUT/cut.partita"
  refuses "cut.partita" "$RUN" "$OUT/cut.partita" --plan
done

one() { "$RUN" "$ART/one.partita" "$@"; }
o="$OUT/o.npz"
refuses "these inputs are missing" one -o "$o"
refuses "there is no input 'xx'; did you mean 'x'?" one -i "xx=$ART/x.npy" -o "$o"
refuses "is given twice" one -i "$ART/x.npy" -i "$ART/x.npy" -o "$o"
refuses "No such file" one -i "$OUT/absent.npy" -o "$o"
refuses "float64 [10, 64], but float32 [N, 64] is needed" \
  one -i "$ART/double.npy" -o "$o"
refuses "float32 [10, 63], but float32 [N, 64] is needed" \
  one -i "$ART/narrow.npy" -o "$o"
refuses "must end in .npy, .npz or .pb" one -i "$ART/one.partita" -o "$o"
head -c 200 "$ART/x.npy" >"$OUT/cut.npy"
refuses "cut.npy" one -i "$OUT/cut.npy" -o "$o"
run 0 "$RUN" "$ART/one.partita" -i "$ART/x.npy" -o "$OUT/y.npz"
refuses "there is no input 'layers/y:0'; known: 'x'; --input NAME=$OUT/y.npz takes it" \
  one -i "$OUT/y.npz" -o "$o"
cp "$OUT/cut.npy" "$OUT/cut.npz"
refuses "not a .npz file" one -i "$OUT/cut.npz" -o "$o"

x="$ART/x.npy"
refuses "there is no folder" one -i "$x" -o "$OUT/no/o.npz"
refuses "--output -: name an .npz file or a folder" one -i "$x" -o -
refuses "it is a file" one -i "$x" -o "$ART/x.npy"
refuses "name an .npz file" one -i "$x" -o "$OUT/o.txt"
refuses "compiled for cpu:1; compile the model again with --devices cpu:2" \
  one -i "$x" -o "$o" --devices cpu:2
refuses "compiled for cpu:1; compile the model again with --devices cuda:1" \
  one -i "$x" -o "$o" --devices cuda:1
refuses "no devices of kind 'gpu'" one -i "$x" -o "$o" --devices gpu:1
for devices in cpu cpu: cpu:0 0 cpu:-1 cpu:1x; do
  refuses "'$devices' is no number of devices: write it as 2 or cpu:2" \
    one -i "$x" -o "$o" --devices $devices
done
for devices in cuda:x cuda:0* cuda:0,,1 cuda:*2 cuda:0*0 cuda:0*5000 cuda:-1; do
  refuses "'$devices' is no number of devices, and no list of GPUs: write it as cuda:2, or as cuda:0,1 or cuda:0*4" \
    one -i "$x" -o "$o" --devices "$devices"
done
refuses "compiled for cpu:1; compile the model again with --devices cuda:0*1" \
  one -i "$x" -o "$o" --devices 'cuda:0*1'
refuses "compiled for cpu:1; compile the model again with --devices cpu:1,cuda:1" \
  one -i "$x" -o "$o" --devices 'cpu:1,cuda:1'
refuses "'2,cpu:1' names the kind of some devices only" \
  one -i "$x" -o "$o" --devices 2,cpu:1
refuses "--threads" one -i "$x" -o "$o" --threads 0
refuses "--timeout" one -i "$x" -o "$o" --timeout -1
refuses "--json belongs to" one -i "$x" -o "$o" --json
refuses "exclude each other" one --benchmark --test-data "$ART/data1"
refuses "belongs to a plain run" one --benchmark -o "$o"
refuses "there is no option '--nonsense' (partita-run --help" one --nonsense
refuses "there is no option '--thread'; did you mean '--threads'?" \
  one --thread 2 -i "$x"
refuses "the argument '3' is one too many" one 3
refuses "--cpu-level" one -i "$x" -o "$o" --cpu-level v2
refuses "holds code for x86-64-v4;" \
  "$RUN" "$ART/v4.partita" -i "$x" -o "$o" --cpu-level v3
absent "$o"

# A damaged weight is found, unless nobody wants to know.
cp "$ART/one.partita" "$OUT/damaged.partita"
size=$(wc -c <"$OUT/damaged.partita")
printf 'X' | dd of="$OUT/damaged.partita" bs=1 seek=$((size - 100)) \
  conv=notrunc 2>/dev/null
refuses "are not those the model was compiled with" \
  "$RUN" "$OUT/damaged.partita" -i "$x" -o "$o"
absent "$o"
run 0 "$RUN" "$OUT/damaged.partita" -i "$x" -o "$o" --trust-weights

done_with
