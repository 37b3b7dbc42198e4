# common.sh - What the scripts of this folder share
#
# Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Each script is called with the program, the folder of make-artifacts, and a
# folder of its own, and sources this file first.

set -u
RUN=$1
ART=$2
OUT=$3
rm -rf "$OUT"
mkdir -p "$OUT"
checks=0
# Two mpirun that make the same folder at once fail (Open MPI 4.1).
export OMPI_MCA_orte_tmpdir_base=$OUT/open-mpi

fail() {
  echo "FAILED: $*"
  echo "--- stdout"; cat "$OUT/stdout"
  echo "--- stderr"; cat "$OUT/stderr"
  exit 1
}

# run EXPECTED-STATUS COMMAND...
run() {
  expected=$1
  shift
  "$@" >"$OUT/stdout" 2>"$OUT/stderr"
  status=$?
  checks=$((checks + 1))
  [ $status -eq "$expected" ] || fail "exit status $status, not $expected: $*"
}

# says FILE TEXT: the file of the last run (stdout or stderr) holds the text.
says() {
  grep -qF -- "$2" "$OUT/$1" || fail "$1 does not say: $2"
}

# refuses TEXT COMMAND...: exit status 1, the text on stderr, nothing on stdout.
refuses() {
  text=$1
  shift
  run 1 "$@"
  says stderr "$text"
  [ ! -s "$OUT/stdout" ] || fail "something on stdout: $*"
}

# same A B
same() {
  cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

absent() {
  [ ! -e "$1" ] || fail "$1 should not be there"
}

done_with() {
  echo "$checks runs as expected"
}
