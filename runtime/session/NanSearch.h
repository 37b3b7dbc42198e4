//===- NanSearch.h - Which instruction made NaN -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An instruction makes NaN if its results have some, and the values that it
// reads have none. To find it, a device's program is run with a look at every
// instruction: before it, at what it reads, because a result may take the place
// of an operand; and after it, at what it wrote. That takes time, so a session
// does it only if it is asked to (SessionOptions.search).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_NANSEARCH_H
#define PARTITA_RUNTIME_SESSION_NANSEARCH_H

#include "runtime/base/NotFinite.h"
#include "runtime/device/Device.h"

#include <optional>
#include <string>
#include <vector>

namespace partita::runtime {

class Artifact;

/// An instruction that made NaN. They compare in the order of the model.
struct NanOrigin {
  int micro_batch = 0; ///< of the step
  int stage = 0;       ///< Plan.stages
  int action = 0;      ///< of the device's program
  int instruction = 0; ///< of the action's unit
  int device = 0;      ///< Plan.devices

  auto operator<=>(const NanOrigin &) const = default;
};

/// The instruction's nodes and device: "'norm/Log' on cpu:0".
std::string describe(const abi::Plan &plan, const NanOrigin &origin);

/// The first of the instruction's parameters that has what is looked for, by
/// number in Plan.weights. Of a parameter that the load program changes, it is
/// the weight that is looked at.
std::optional<int> findInParameters(Search search, const Artifact &artifact,
                                    const NanOrigin &origin);

/// Whether the device lets a session look at memory between two instructions.
bool canBeSearched(const abi::Plan &plan, int device);

/// Looks at the instructions of one device. The thread that runs them makes all
/// calls, or others while that has nothing to do.
class NanSearch {
public:
  NanSearch(const abi::Plan &plan, int index, Device &device, Search search);

  /// Call when a step begins.
  void clear();
  /// Call just before a unit runs. `action`: of the program; `micro_batch`:
  /// counted within the replica, and `fed`: within the step.
  void begin(int action, int micro_batch, int fed);
  /// Call after each instruction of the unit.
  void finished(size_t instruction);

  /// The first one of each micro-batch, since `clear`.
  const std::vector<std::optional<NanOrigin>> &origins() const { return found; }

private:
  bool isSought(int slot, const abi::View *view);
  /// Whether a value that the instruction reads, or one that it writes, has
  /// what is looked for. Parameters are not looked at.
  bool uses(const abi::Instruction &instruction, bool written);

  const abi::Plan &plan;
  const int index;
  const abi::Program &program;
  Device &device;
  const Search search;
  std::vector<uint8_t> bytes; ///< of a slot; no step allocates
  std::vector<std::optional<NanOrigin>> found;

  const abi::Unit *unit = nullptr; ///< the one that runs
  int action = 0, micro_batch = 0, fed = 0;
  bool given = false; ///< the next instruction reads what is looked for
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_NANSEARCH_H
