#!/usr/bin/env bash
# The main job, from nothing: installs and builds, splits the example model into a pipeline of two stages, runs it on two CPU devices,
# and shows the plan and the result.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh partita-compile partita-run
build=${PARTITA_BUILD:-build}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
show() { printf '\n$ %s\n' "$*"; "$@"; }
export PATH="$PWD/$build/bin:$PATH"
show partita-compile examples/digits/digits.onnx --dim batch=2 --devices 2 --micro-batches 5 -o "$work/digits.partita"
show partita-run "$work/digits.partita" --input examples/digits/digits.npy
