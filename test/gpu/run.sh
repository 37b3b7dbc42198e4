#!/bin/sh
# Runs Partita's tests and benchmarks on the GPUs of this machine; run.py says more.
#
#   test/gpu/run.sh [--few] [FLAG...]   here: packs what a build made, and runs it
#   test/gpu/pack.py FOLDER             packs it, for a machine without a compiler
#   FOLDER/run.sh                       on that machine
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ -f "$here/models.json" ]; then
  exec python3 "$here/run.py" "$here" "$@"
fi
packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT
few=
if [ "$1" = --few ]; then
  few=--few
  shift
fi
python3 "$here/pack.py" "$packed" $few
python3 "$packed/run.py" "$packed" "$@"
