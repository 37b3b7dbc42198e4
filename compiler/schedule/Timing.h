//===- Timing.h - Simulated time of a step ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Simulates the units of all devices, each device in its order. A unit begins
// when its device is free, its operands have arrived, and each value that it
// sends has a free buffer. A device whose next unit must wait is examined again
// when the unit that it waits for is done. So the simulation is linear in the
// units and the values that they read and send.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_TIMING_H
#define PARTITA_COMPILER_SCHEDULE_TIMING_H

#include "compiler/schedule/Schedule.h"

#include <vector>

namespace partita::schedule {

struct Timing {
  double stepNs = 0; ///< infinite if the orders deadlock
  double bubble = 0; ///< idle share of the devices that have work
  /// Values whose buffers the critical path waits for. The step may be shorter
  /// if they are copied instead of borrowed, or have more buffers.
  std::vector<int> bottlenecks;
  /// By value: the most micro-batches of it that are in flight at the same
  /// time. A copied value needs no more buffers than that.
  std::vector<int> inFlight;
  /// How often the simulation checked whether a unit can begin. It measures the
  /// work of the simulation.
  int64_t looks = 0;
};

/// Times the orders. If devices wait for each other's buffers in a cycle, this
/// changes `transfers` until they can go on: a borrowed value is copied
/// instead, and a copied value gets one more buffer. The times are those with
/// the changed transfers.
Timing timeOrders(const ScheduleProblem &problem, const UnitOrders &orders,
                  Transfers &transfers);

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_TIMING_H
