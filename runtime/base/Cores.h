//===- Cores.h - The cores of this process ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_CORES_H
#define PARTITA_RUNTIME_BASE_CORES_H

#include <sched.h>
#include <vector>

namespace partita::runtime {

/// The cores that this process may use, in order. The first call reads them and
/// later calls return the same list, so the first call must come before a
/// thread is pinned to fewer cores.
const std::vector<int> &availableCores();

/// Saves the affinity of the calling thread, and restores it when destroyed.
class SavedAffinity {
public:
  SavedAffinity();
  ~SavedAffinity();
  SavedAffinity(const SavedAffinity &) = delete;
  SavedAffinity &operator=(const SavedAffinity &) = delete;

private:
  cpu_set_t set;
  bool saved;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_CORES_H
