#!/usr/bin/env bash
# Runs Partita's tests and benchmarks on the GPUs of this machine; run.py and pack.py say more.
#
#   test/gpu/run.sh [--few] [--models MODELS] [--target T] [FLAG...]     here: packs what a build made, and runs it
#   test/gpu/pack.py FOLDER                                             packs it, for a machine without a compiler
#   FOLDER/run.sh [FLAG...]                                             on that machine
#
# PYTHON is the Python that does it (default: python3); with NumPy and onnx, trainings are packed, too.
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ -f "$here/models.json" ]; then
  exec "${PYTHON:-python3}" "$here/run.py" "$here" "$@"
fi
pack=()
run=()
while [ $# -gt 0 ]; do
  case "$1" in
    --few) pack+=("$1"); shift ;;
    --models | --target) pack+=("$1" "${2?$1 needs a value}"); shift 2 ;;
    --emulator) pack+=(--driver "${2?$1 needs a value}"); run+=("$1" "$2"); shift 2 ;;
    *) run+=("$1"); shift ;;
  esac
done
packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT
"${PYTHON:-python3}" "$here/pack.py" "$packed" "${pack[@]}"
"${PYTHON:-python3}" "$packed/run.py" "$packed" "${run[@]}"
