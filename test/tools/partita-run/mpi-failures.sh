# mpi-failures.sh - A process of an MPI run is stopped, or killed
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#

. "$(dirname "$0")/common.sh"

command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 0; }

# They wait for most of the time: three cases at once, in folders of their own.
ALL=$OUT
jobs=
cases=0
at_once() {
  OUT=$ALL/$1
  mkdir "$OUT"
  "$1" &
  jobs="$jobs $!"
  cases=$((cases + 1))
  [ $((cases % 3)) -ne 0 ] || await_cases
}
await_cases() {
  for each in $jobs; do
    wait "$each" || broken=1
  done
  jobs=
  [ -z "${broken-}" ] || exit 1
}

# strike SIGNAL RANK [PROCESSES ARTIFACT]: starts a run without end and sends
# the signal to the process of that rank; the job must end by itself, soon.
strike() {
  signal=$1
  rank=$2
  n=${3:-2}
  artifact=${4:-slow}
  rm -f "$OUT"/pid.*
  # Every process leaves its number, and then becomes partita-run.
  OMPI_MCA_orte_tmpdir_base=$OUT/open-mpi \
    mpirun --allow-run-as-root --oversubscribe -n $n sh -c '
    echo $$ >"$0/pid.$OMPI_COMM_WORLD_RANK"
    exec "$@"' "$OUT" "$RUN" "$ART/$artifact.partita" --benchmark \
    --runs 10000000 --timeout 10 >"$OUT/stdout" 2>"$OUT/stderr" &
  job=$!
  waited=0
  while [ "$(ls "$OUT" | grep -c '^pid')" -lt $n ]; do
    [ $waited -lt 60 ] || fail "the processes did not start"
    sleep 1
    waited=$((waited + 1))
  done
  # A process that has mapped the artifact begins its steps soon.
  for k in $(seq 0 $((n - 1))); do
    while ! grep -q "$artifact.partita" "/proc/$(cat "$OUT/pid.$k")/maps"; do
      [ $waited -lt 60 ] || fail "process $k did not come to its steps"
      sleep 1
      waited=$((waited + 1))
    done
  done
  sleep 3 # until they are in the middle of their steps
  kill -0 $job || fail "the job ended before it was struck"
  kill -"$signal" "$(cat "$OUT/pid.$rank")"
  begin=$(date +%s)
  wait $job
  status=$?
  took=$(($(date +%s) - begin))
  [ $status -ne 0 ] || fail "the job ended well after SIG$signal"
  [ $took -le 40 ] || fail "the job took $took s to end"
  for k in $(seq 0 $((n - 1))); do
    waited=0
    while kill -0 "$(cat "$OUT/pid.$k")" 2>/dev/null; do
      [ $waited -lt 10 ] || fail "process $k is left"
      sleep 1
      waited=$((waited + 1))
    done
  done
}

# Nobody tells a process that another one stands still: its deadline must.
second_stands_still() {
  strike STOP 1
  [ $status -eq 1 ] || fail "exit status $status, not 1"
  grep 'process 0' "$OUT/stderr" |
    grep -qE "(cpu:1|process 1).*: nothing happened within 10 s" ||
    fail "process 0 does not say that it waits for 1"
}
first_stands_still() {
  strike STOP 0
  [ $status -eq 1 ] || fail "exit status $status, not 1"
  grep 'process 1' "$OUT/stderr" |
    grep -qE "(cpu:0|process 0).*: nothing happened within 10 s" ||
    fail "process 1 does not say that it waits for 0"
}

# mpirun notices that one died and ends the others; what they were waiting for
# is still said.
second_dies() {
  strike KILL 1
  grep 'process 0' "$OUT/stderr" | grep -qE "cpu:1|process 1" ||
    fail "process 0 does not say what it waited for"
}
first_dies() {
  strike KILL 0
  grep 'process 1' "$OUT/stderr" | grep -qE "cpu:0|process 0" ||
    fail "process 1 does not say what it waited for"
}

# Stopped before it has joined the job, where MPI itself would wait for ever.
one_never_comes() {
  OMPI_MCA_orte_tmpdir_base=$OUT/open-mpi \
    mpirun --allow-run-as-root --oversubscribe -n 2 sh -c '
    [ "$OMPI_COMM_WORLD_RANK" -eq 0 ] || exec sleep 60
    exec "$@"' "$OUT" "$RUN" "$ART/slow.partita" --benchmark \
    --timeout 3 >"$OUT/stdout" 2>"$OUT/stderr"
  status=$?
  [ $status -ne 0 ] || fail "the job ended well without one of its processes"
  says stderr "not all processes of the job came within 3 s"
}

# Two devices a process: the threads of a process end together, and one names
# the process that stands still.
second_of_two_devices_stands_still() {
  strike STOP 1 2 slow4
  [ $status -eq 1 ] || fail "exit status $status, not 1"
  grep 'process 0' "$OUT/stderr" |
    grep "nothing happened within 10 s" |
    grep -qE "of process 1|waits for process 1" ||
    fail "process 0 does not say that it waits for process 1"
}
first_of_two_devices_dies() {
  strike KILL 0 2 slow4
  grep 'process 1' "$OUT/stderr" | grep -qE "process 0" ||
    fail "process 1 does not say what it waited for"
}
# Two, one and one: of the others one waits for another that waits itself.
third_stands_still() {
  strike STOP 2 3 slow4
  [ $status -eq 1 ] || fail "exit status $status, not 1"
  grep "nothing happened within 10 s" "$OUT/stderr" |
    grep -q "no answer from process 2" || fail "nobody names process 2"
}
second_of_three_dies() {
  strike KILL 1 3 slow4
  grep -qE "process 1" "$OUT/stderr" || fail "nobody names process 1"
}

for each in second_stands_still first_stands_still second_dies first_dies \
  one_never_comes second_of_two_devices_stands_still \
  first_of_two_devices_dies second_of_three_dies third_stands_still; do
  at_once $each
done
await_cases
checks=$cases

done_with
