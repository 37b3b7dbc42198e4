#!/usr/bin/env bash
# Installs what is needed and builds Partita into build/: all of it, or the named targets. Flags go to CMake, the rest to ninja, e.g.
#
#   tools/build.sh partita-compile partita-run
#   PARTITA_BUILD=build-asan tools/build.sh -DPARTITA_SANITIZE=address,undefined
#
# A new folder compiles sources in groups, which takes less from nothing. -DPARTITA_UNITY=OFF compiles each by itself, for those
# who change it often.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
build=${PARTITA_BUILD:-build}; flags=(); targets=()
for word in "$@"; do case $word in -*) flags+=("$word") ;; *) targets+=("$word") ;; esac; done
[ -e "$build/CMakeCache.txt" ] || flags=(-DPARTITA_UNITY=ON "${flags[@]}")
echo "== Building ${targets[*]:-everything} in $build/"
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja "${flags[@]}" >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
ninja -C "$build" "${targets[@]}"
