//===- StatePlaces.cpp - Which device has which state ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/StatePlaces.h"

#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"
#include "runtime/trainer/Processes.h"

#include <algorithm>

namespace partita::runtime::train {

StatePlaces::StatePlaces(const abi::Plan &plan, const Processes *all)
    : owners(static_cast<size_t>(length(plan.states())), -1),
      here(owners.size()) {
  const int mine = all ? all->rank() : 0;
  for (int device = 0; device < length(plan.devices()); ++device) {
    const int process = all ? all->processOf(device) : 0;
    const abi::Program &program = programOf(plan, device);
    for (int64_t i = 0; i < length(program.slots()); ++i) {
      const abi::Slot &slot = *program.slots()->Get(static_cast<unsigned>(i));
      if (slot.space() != abi::Space::state)
        continue;
      const auto state = static_cast<size_t>(slot.offset());
      if (owners[state] < 0)
        owners[state] = process;
      if (process == mine)
        here[state] = true;
    }
  }
}

int64_t StatePlaces::missing() const {
  const auto found = std::find(owners.begin(), owners.end(), -1);
  return found == owners.end() ? -1 : found - owners.begin();
}

} // namespace partita::runtime::train
