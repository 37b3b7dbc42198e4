//===- Timing.h - How long a step takes -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the units of all devices in simulated time, each device in its order. A
// unit begins when its device is free, its operands are there, and a buffer is
// free for each value that it sends. A device whose next unit must wait is
// looked at again when the unit that it waits for is done, so the time this
// takes is linear in the units and the values that they read and send.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_TIMING_H
#define PARTITA_COMPILER_SCHEDULE_TIMING_H

#include "compiler/schedule/Schedule.h"

#include <vector>

namespace partita::schedule {

struct Timing {
  double stepNs = 0; ///< infinite if the orders contradict the values
  double bubble = 0; ///< idle share of the devices that have work
  /// Values for whose buffers the critical path waits. The step may be shorter
  /// if they are copied and not borrowed, or have more buffers.
  std::vector<int> culprits;
  /// By value: micro-batches of it that are on their way at the same time. So
  /// many buffers would do for a copied value.
  std::vector<int> inFlight;
  /// How often the simulation looked whether a unit can begin: its work.
  int64_t looks = 0;
};

/// Times the orders. Devices that wait for each other's buffers get on, by a
/// change of `transfers`: of what they borrow, receivers copy what they wait
/// for; what they copy gets one more buffer. So the returned transfers can be
/// kept, and the times are those with them.
Timing timeOrders(const ScheduleProblem &problem, const UnitOrders &orders,
                  Transfers &transfers);

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_TIMING_H
