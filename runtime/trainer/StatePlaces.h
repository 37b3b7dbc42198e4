//===- StatePlaces.h - Which device has which state -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_STATEPLACES_H
#define PARTITA_RUNTIME_TRAINER_STATEPLACES_H

#include "runtime/abi/plan_generated.h"

#include <cstdint>
#include <vector>

namespace partita::runtime::train {

class Processes;

/// Where the states of a plan are. Several devices may have a state; then all
/// of them have the same values between two steps, or parts of it (abi::Cut).
class StatePlaces {
public:
  StatePlaces() = default;
  /// `all`: of one process, null.
  StatePlaces(const abi::Plan &plan, const Processes *all);

  /// A state that no device has; -1: there is none.
  int64_t missing() const;
  /// Whether a device of this process has the state.
  bool isHere(int64_t state) const { return here[static_cast<size_t>(state)]; }
  /// The processes that hand it out, or parts of it.
  const std::vector<int> &owners(int64_t state) const {
    return owning[static_cast<size_t>(state)];
  }

  /// The devices that have it, or parts of it, in order.
  const std::vector<int> &devices(int64_t state) const {
    return having[static_cast<size_t>(state)];
  }

private:
  std::vector<std::vector<int>> owning, having; ///< empty: no device has it
  std::vector<bool> here;
};

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_STATEPLACES_H
