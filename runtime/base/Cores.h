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

/// The cores this process may use, in order. Asked once: call it before a
/// thread is kept on fewer of them.
const std::vector<int> &availableCores();

/// The calling thread's cores, given back at the end.
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
