# mpi.sh - One process a device: the same numbers as with threads
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 0; }
MPI="mpirun --allow-run-as-root --oversubscribe"

for n in 1 2 4; do
  case $n in 1) name=one ;; 2) name=two ;; 4) name=four ;; esac
  run 0 $MPI -n $n "$RUN" "$ART/$name.partita" --test-data "$ART/data$n"
  [ "$(grep -c PASS "$OUT/stdout")" -eq 1 ] || fail "not one PASS"
  run 0 $MPI -n $n "$RUN" "$ART/$name.partita" -i "$ART/more.npy" \
    -o "$OUT/mpi.npz" --threads 1
  run 0 "$RUN" "$ART/$name.partita" -i "$ART/more.npy" -o "$OUT/threads.npz" \
    --threads 1
  same "$OUT/mpi.npz" "$OUT/threads.npz"
done

run 0 $MPI -n 2 "$RUN" "$ART/two.partita" -i "$ART/x.npy" \
  --profile "$OUT/trace.json"
for text in '"name":"F0 #2"' '"name":"F1 #2"' '"ph":"f"'; do
  grep -qF "$text" "$OUT/trace.json" || fail "the trace has no $text"
done
run 0 $MPI -n 2 "$RUN" "$ART/two.partita" --benchmark --json --runs 3
# All processes measure as many steps.
run 0 $MPI -n 2 "$RUN" "$ART/two.partita" --benchmark --json --seconds 0.2
says stdout '"device":"cpu:1"'
says stdout '"arena_bytes":6144,"arena_touched_bytes":6144'
run 1 $MPI -n 2 "$RUN" "$ART/two.partita" --test-data "$ART/wrong"
says stdout "FAIL"

# One error, not one for each process.
run 1 $MPI -n 2 "$RUN" "$ART/two.partita" -i "y=$ART/x.npy"
[ "$(grep -c 'partita-run: error' "$OUT/stderr")" -eq 1 ] ||
  fail "not one error"
run 1 $MPI -n 3 "$RUN" "$ART/two.partita" -i "$ART/x.npy"
says stderr "compiled for 2 devices, but 3 processes were started"
run 1 $MPI -n 1 "$RUN" "$ART/two.partita" -i "$ART/x.npy"
says stderr "but 1 process was started"

done_with
