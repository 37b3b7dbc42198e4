#!/usr/bin/env bash
# Installs what is needed and builds Partita into build/. Arguments go to CMake, e.g. -DPARTITA_SANITIZE=address,undefined.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
build=${PARTITA_BUILD:-build}
cmake -S . -B "$build" -G Ninja "$@" >"$build.configure.log" 2>&1 || { mkdir -p "$build"; cat "$build.configure.log" >&2; exit 1; }
mv "$build.configure.log" "$build/configure.log"
ninja -C "$build"
