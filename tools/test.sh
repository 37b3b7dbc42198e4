#!/usr/bin/env bash
# Installs what is needed, builds everything and passes all tests. What needs test data that is not there says that it was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh
ctest --test-dir "${PARTITA_BUILD:-build}" --output-on-failure --no-tests=error -j "$(nproc)"
