//===- PlanVerifier.h - Trust nothing in a plan -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ARTIFACT_PLANVERIFIER_H
#define PARTITA_RUNTIME_ARTIFACT_PLANVERIFIER_H

#include "runtime/abi/ScheduleCheck.h"
#include "runtime/abi/plan_generated.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace partita::runtime {

/// Checks every index, offset, shape, name and program of a plan that passed
/// the FlatBuffers verifier. Also checks that its schedule finishes and uses
/// its buffers correctly. Afterwards:
///   * every index is in range and every enumerator known;
///   * shapes are not negative, and elements times element size is `bytes`,
///     without overflow;
///   * slots lie in their region, aligned; views inside their slots; weights
///     inside the weights section (`weights_bytes`) if they lie there;
///   * frames have a copy, and all copies lie in the arena, aligned;
///   * only arena and frames are written, and the constant region by the load
///     program;
///   * each program is executed by one device for each coordinate of the mesh,
///     and starts only kernels that all its devices can start.
/// `path` is for messages.
Status verifyPlan(const abi::Plan &plan, const std::string &path,
                  int64_t weights_bytes);

/// Checks frames, slots, units, load program and actions of program `index`.
/// Returns what is wrong; empty if nothing is. The tables of the plan that they
/// refer to must have been checked.
std::string programError(const abi::Plan &plan, int index);

/// Checks shapes, strides and attributes of one call. Returns what is
/// wrong; empty if nothing is.
std::string callError(const abi::Program &program, const abi::Call &call);

/// Checks that a view lies inside its slot. Returns what is wrong; empty if
/// nothing is.
std::string viewError(const abi::Program &program, const abi::View *view);

/// The input of the schedule check, for a plan whose tables have been checked.
std::vector<abi::CheckedProgram> scheduleModel(const abi::Plan &plan);
abi::CheckedNames scheduleNames(const abi::Plan &plan);

/// Bytes of a mapped file, and the hash (XXH3) that they should have.
struct WeightBytes {
  const uint8_t *data = nullptr;
  size_t bytes = 0;
  uint64_t hash = 0;
};

/// Hashes all weights, on up to `threads` threads (fewer if there are few
/// bytes). Returns the index of the first whose hash differs. Pages are
/// released after they are read, so that the memory of this process does not
/// grow by the weights.
std::optional<size_t> findChanged(const std::vector<WeightBytes> &weights,
                                  int threads);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_ARTIFACT_PLANVERIFIER_H
