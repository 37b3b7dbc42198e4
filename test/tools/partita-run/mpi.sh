# mpi.sh - Devices in several processes: the same numbers as with threads
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 0; }
MPI="mpirun --allow-run-as-root --oversubscribe"

# gives DEVICES PROCESSES [OPTION...]
gives() {
  devices=$1
  n=$2
  shift 2
  case $devices in 1) name=one ;; 2) name=two ;; 4) name=four ;; esac
  run 0 $MPI -n $n "$RUN" "$ART/$name.partita" --test-data "$ART/data$devices" \
    "$@"
  [ "$(grep -c PASS "$OUT/stdout")" -eq 1 ] || fail "not one PASS"
  run 0 $MPI -n $n "$RUN" "$ART/$name.partita" -i "$ART/more.npy" \
    -o "$OUT/mpi.npz" --threads 1 "$@"
  run 0 "$RUN" "$ART/$name.partita" -i "$ART/more.npy" -o "$OUT/threads.npz" \
    --threads 1
  same "$OUT/mpi.npz" "$OUT/threads.npz"
}

# One process a device, several devices a process, and all in one.
gives 1 1
gives 2 2
gives 4 4
gives 4 2
gives 4 3
gives 4 1
# The stages of a pipeline in turns, and the output not in process 0.
gives 4 2 --device-map 0,2/1,3
gives 4 3 --device-map 3/1-2/0

run 0 $MPI -n 2 "$RUN" "$ART/two.partita" -i "$ART/x.npy" \
  --profile "$OUT/trace.json"
for text in '"name":"F0 #2"' '"name":"F1 #2"' '"ph":"f"'; do
  grep -qF "$text" "$OUT/trace.json" || fail "the trace has no $text"
done
run 0 $MPI -n 2 "$RUN" "$ART/four.partita" -i "$ART/x.npy" \
  --profile "$OUT/trace.json" --device-map 0,2/1,3
for text in '"name":"F0 #2"' '"name":"F3 #2"' '"ph":"f"'; do
  grep -qF "$text" "$OUT/trace.json" || fail "the trace has no $text"
done
run 0 $MPI -n 2 "$RUN" "$ART/four.partita" --benchmark --json --runs 3 \
  --device-map 0,2/1,3
for device in 0 1 2 3; do
  says stdout '"device":"cpu:'$device'"'
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
says stderr "compiled for 2 devices, but 3 processes were started: use mpirun -n 2 or fewer"
# wrong_map MAP TEXT
wrong_map() {
  run 1 $MPI -n 2 "$RUN" "$ART/four.partita" -i "$ART/x.npy" --device-map "$1"
  says stderr "error: --device-map '$1': $2"
  [ "$(grep -c 'partita-run: error' "$OUT/stderr")" -eq 1 ] ||
    fail "not one error"
}
wrong_map 0,1,2,3 "these are the devices of 1 process, but 2 processes were"
wrong_map 0,1/2,4 "there is no device 4 among 4 devices"
wrong_map 0,1/2,1 "device 1 is named twice"
wrong_map 0,1/2 "device 3 is in no process"
wrong_map 0,1/ "write the numbers of devices"
run 1 "$RUN" "$ART/four.partita" -i "$ART/x.npy" --device-map 0,1/2,3
says stderr "there is one process"

# All must run the same plan, on the same devices.
cp "$ART/two.partita" "$OUT/plan.partita"
mkdir "$OUT/other"
cp "$ART/slow.partita" "$OUT/other/plan.partita"
run 1 $MPI -n 1 -wdir "$OUT" "$RUN" plan.partita --benchmark : \
  -n 1 -wdir "$OUT/other" "$RUN" plan.partita --benchmark
says stderr "process 1 has another artifact than process 0 under the name 'plan.partita'"
run 1 $MPI -n 2 "$RUN" "$ART/four.partita" --benchmark : \
  -n 1 "$RUN" "$ART/four.partita" --benchmark --device-map 0/1/2,3
says stderr "process 2 has another artifact than process 0"

done_with
