//===- Cores.cpp - The cores of this process ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Cores.h"

namespace partita::runtime {

const std::vector<int> &availableCores() {
  static const std::vector<int> cores = [] {
    cpu_set_t set;
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
      for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &set))
          cores.push_back(core);
    if (cores.empty())
      cores.push_back(0);
    return cores;
  }();
  return cores;
}

SavedAffinity::SavedAffinity()
    : saved(sched_getaffinity(0, sizeof(set), &set) == 0) {}

SavedAffinity::~SavedAffinity() {
  if (saved)
    (void)sched_setaffinity(0, sizeof(set), &set);
}

} // namespace partita::runtime
