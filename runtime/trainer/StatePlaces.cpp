//===- StatePlaces.cpp - Which device has which state ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/StatePlaces.h"

#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"
#include "runtime/base/StateParts.h"
#include "runtime/trainer/Processes.h"

#include <algorithm>

namespace partita::runtime::train {

StatePlaces::StatePlaces(const abi::Plan &plan, const Processes *all)
    : owning(static_cast<size_t>(length(plan.states()))), having(owning.size()),
      here(owning.size()) {
  const int mine = all ? all->rank() : 0;
  for (int device = 0; device < length(plan.devices()); ++device) {
    const int process = all ? all->processOf(device) : 0;
    const abi::Program &program = programOf(plan, device);
    for (const abi::Slot &slot : each(program.slots())) {
      if (slot.space() != abi::Space::state)
        continue;
      const auto state = static_cast<size_t>(slot.offset());
      if (having[state].empty() || having[state].back() != device)
        having[state].push_back(device);
      // Of a state that is cut, every process has something else.
      const bool hasMore = isCut(at(plan.states(), state)) &&
                           std::find(owning[state].begin(), owning[state].end(),
                                     process) == owning[state].end();
      if (owning[state].empty() || hasMore)
        owning[state].push_back(process);
      if (process == mine)
        here[state] = true;
    }
  }
}

int64_t StatePlaces::missing() const {
  const auto found =
      std::find_if(owning.begin(), owning.end(),
                   [](const std::vector<int> &list) { return list.empty(); });
  return found == owning.end() ? -1 : found - owning.begin();
}

} // namespace partita::runtime::train
