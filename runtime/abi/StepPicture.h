//===- StepPicture.h - The order of a step as papers draw it ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_STEPPICTURE_H
#define PARTITA_RUNTIME_ABI_STEPPICTURE_H

#include "runtime/abi/Actions.h"

#include <cstdint>
#include <string>
#include <vector>

namespace partita::abi {

/// A program, as far as a picture shows it.
struct DrawnProgram {
  struct Unit {
    std::string name; ///< e.g. "F0", "B12", or a part of one: "F0.1"
    int64_t duration_ns = 0;
  };
  std::string device;
  std::vector<Unit> units;
  std::vector<ProgramAction> actions;
};

/// Whether a picture of a plan is one that people take in.
bool isDrawn(int64_t devices, int64_t micro_batches);

/// A line for each device, and a column for a unit of time. A unit is a letter
/// and its micro-batch, as long as it is predicted to take; a small letter is
/// that of a device's later stage. What does not fit into a line is left out.
/// Nothing for a single device.
///
///   a step, 20 us a column:
///   cpu:0  F0F1F2F3    B0  B1  B2  B3U
///   cpu:1    F0--F1--F2--F3--U
std::string stepPicture(const std::vector<DrawnProgram> &programs);

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_STEPPICTURE_H
