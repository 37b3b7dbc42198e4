#!/usr/bin/env bash
# Installs what is needed, builds everything and passes all tests. What needs test data that is not there says that it was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh
# Open MPI takes 0.2 s of each of a thousand runs to find no network that it knows.
export OMPI_MCA_pml=ob1
# Threads that wait leave their core to another test.
export OMP_WAIT_POLICY=passive
# Two more than there are cores: some wait for deadlines.
ctest --test-dir "${PARTITA_BUILD:-build}" --output-on-failure --no-tests=error -j "$(($(nproc) + 2))"
