//===- DevicePlacement.h - Where the values of a device lie -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_DEVICEPLACEMENT_H
#define PARTITA_COMPILER_PIPELINE_PLAN_DEVICEPLACEMENT_H

#include "compiler/pipeline/plan/Placement.h"
#include "compiler/pipeline/plan/StageLowering.h"
#include "compiler/schedule/Schedule.h"

namespace partita::pipeline {

/// Buffers and offsets of one device. Times are `position of the step in the
/// program * width + 1 + index of the work in the unit`; the load program runs
/// before, at negative times.
///
/// A value that crosses units has as many buffers as micro-batches of it are
/// held at the same time, so a receive buffer is one where the receiver reads
/// it at once, and a sent value alternates between `kSendBuffers`. A value that
/// has several becomes an argument of its units. All others have one buffer for
/// all micro-batches.
class DevicePlacement {
public:
  DevicePlacement(const LoweredDevice &device,
                  const std::vector<LoweredStage> &stages,
                  const std::vector<schedule::ScheduleStep> &program,
                  const std::vector<int> &valueOfSchedule);

  int64_t arenaBytes() const { return arena.bytes; }
  int64_t constantBytes() const { return constants.bytes; }

  /// How many buffers a value has; 1 if it does not cross units.
  int getDepth(int value) const { return slots[value].size(); }
  /// Which of them holds it on a micro-batch.
  int getBuffer(int value, int microBatch) const;
  /// Its offset in the arena or constant region.
  int64_t getOffset(int value, int buffer) const;

  /// Whether the operand of a stage's work shares the bytes of the result that
  /// its lowering lets it share.
  bool isInPlace(int operand, int result) const {
    return slots[operand].size() == 1 && slots[operand] == slots[result];
  }

private:
  void addBoundaryValues();
  void addLocalValues();
  void addLoadValues();
  void shareInPlace();
  void tryShare(int stage, int index, int operand, int result);
  int addBuffer(int value);

  const LoweredDevice &device;
  const std::vector<LoweredStage> &stages;
  const std::vector<schedule::ScheduleStep> &program;
  const std::vector<int> &valueOfSchedule; // ScheduleValue -> value here, or -1

  int64_t width = 2;
  std::vector<std::vector<int64_t>> runs;      // positions, by stage
  std::vector<std::vector<int>> slots;         // buffers, by value
  std::map<std::pair<int, int>, int> bufferOf; // (value, micro-batch)
  std::vector<Buffer> buffers;
  Placement arena, constants;
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_DEVICEPLACEMENT_H
