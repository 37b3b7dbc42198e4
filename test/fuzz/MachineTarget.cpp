//===- MachineTarget.cpp - Fuzzes the compiler's machine files ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Target.h"

#include "compiler/cost/MachineFile.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::MemoryFile bytes(data, size);
  auto file = MachineFile::read(bytes.path());
  if (!file) {
    fuzz::require(!llvm::toString(file.takeError()).empty(),
                  "an error has a message");
    return 0;
  }
  fuzz::require(!file->teams.empty(), "a machine has a team");
  fuzz::require(file->cores >= 1, "a machine has a core");
  file->findDevice("cuda", "sm_90");
  const MeasuredTeam &team = file->getTeam(2);
  team.getWorkRatio(1, 2);
  // Below, at and above what was measured.
  for (const auto &[name, table] : team.tables)
    for (double coordinate : {1e-3, 16.0, 1e12}) {
      const std::vector<double> point(table.axes.size(), coordinate);
      fuzz::require(table.at(point) >= 0, "a rate is a number");
    }
  return 0;
}
