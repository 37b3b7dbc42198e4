#!/usr/bin/env bash
# Installs what Partita needs on Debian 12: packages of Debian, and ONNX's own C++ library, which Debian has too old.
#
#   tools/setup.sh              everything
#   tools/setup.sh --runtime    only what the runtime needs (no MLIR, no ONNX)
#   tools/setup.sh --fuzz       everything, and what clang needs for libFuzzer (docs/fuzzing.md)
#
# Tests that compare with ONNX Runtime, and the documentation, have a Python environment of their own; where it cannot be installed they say skipped.
# The part of ONNX that is used is built once (tools/onnx), from its source archive on PyPI, into $PARTITA_DEPS (default: ~/.cache/partita).
# Running this again costs a second.
set -euo pipefail
runtime_only=no; [ "${1:-}" = --runtime ] && runtime_only=yes
cd "$(dirname "$0")/.."
deps=${PARTITA_DEPS:-$HOME/.cache/partita}; onnx_version=1.23.2
runtime_packages=(g++ cmake ninja-build ccache git pkg-config flatbuffers-compiler libflatbuffers-dev libdnnl-dev libopenmpi-dev openmpi-bin
  libprotobuf-dev protobuf-compiler libcli11-dev nlohmann-json3-dev zlib1g-dev libzip-dev libxxhash-dev libgtest-dev libbenchmark-dev)
compiler_packages=(libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools lld-22 liblld-22-dev zlib1g-dev libzstd-dev clang-format-22 python3 python3-venv)
# For the inference server of examples/embed. It would replace an older Boost, which may be somebody's: then the server is left out.
dpkg-query -W -f '${Status}' libboost1.74-dev 2>/dev/null | grep -q 'ok installed' || runtime_packages+=(libboost1.81-dev)
packages=("${runtime_packages[@]}"); [ $runtime_only = yes ] || packages+=("${compiler_packages[@]}")
[ "${1:-}" != --fuzz ] || packages+=(clang-22 libclang-rt-22-dev libomp-22-dev)

say() { printf '== %s\n' "$*"; }
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "Installing ${#missing[@]} packages of Debian, with what they need (about a minute): ${missing[*]}"
  as_root=(); [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
[ $runtime_only = no ] || exit 0

# install_python NAME WHAT-FOR PACKAGE...: into a Python environment of Partita's own. Without a network this is tried once a day, not at every build.
install_python() {
  local marker=$deps/python/.$1 failed=$deps/python-failed-$1 what=$2; shift 2
  if [ -e "$marker" ] || [ -n "$(find "$failed" -mmin -1440 2>/dev/null)" ]; then return; fi
  say "Installing $what into $deps/python (about 20 seconds)"
  [ -e "$deps/python/bin/pip" ] || python3 -m venv "$deps/python"
  if "$deps/python/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@" >/dev/null 2>&1; then
    touch "$marker"
    rm -f "$failed"
  else
    touch "$failed"
    echo "$what could not be installed into $deps/python: tests that need it will say skipped. It is tried again tomorrow, or when $failed is gone." >&2
  fi
}
install_python complete "ONNX Runtime for the tests" numpy "onnx==$onnx_version" onnxruntime
install_python ptxas "ptxas for the tests of kernels for GPUs" "nvidia-cuda-nvcc==13.0.88"
install_python ir "onnx_ir for the tests" "onnx_ir==1.1.0"
install_python docs "Sphinx for the documentation" "sphinx==9.0.4" "myst-parser==5.2.0" "furo==2025.12.19"

# An older script built messages without reflection, which the tests need.
if [ -e "$deps/onnx/.version-$onnx_version" ] && ! grep -q 'public ::PROTOBUF_NAMESPACE_ID::MessageLite' "$deps/onnx/include/onnx/onnx-ml.pb.h"; then
  exit 0
fi
say "Building ONNX $onnx_version into $deps/onnx (about a minute)"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
pip=$deps/python/bin/pip
[ -e "$pip" ] || { python3 -m venv "$work/venv"; pip=$work/venv/bin/pip; }
"$pip" download --quiet --disable-pip-version-check --no-deps --no-binary onnx -d "$work" "onnx==$onnx_version"
tar -xf "$work/onnx-$onnx_version.tar.gz" -C "$work"
cmake -S tools/onnx -B "$work/build" -G Ninja -DONNX_SOURCE="$work/onnx-$onnx_version" -DCMAKE_INSTALL_PREFIX="$deps/onnx" >"$work/log" 2>&1 ||
  { tail -n 40 "$work/log" >&2; echo "ONNX could not be configured" >&2; exit 1; }
ninja -C "$work/build"
cmake --install "$work/build" >/dev/null
touch "$deps/onnx/.version-$onnx_version"
