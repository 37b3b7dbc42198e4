//===- DirectPorts.h - Inputs and outputs used where they are ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan copies an input into a slot and an output out of one. Where the slot
// serves nothing else, the instructions can read the caller's bytes themselves,
// and write their result to where the caller wants it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CORE_DIRECTPORTS_H
#define PARTITA_RUNTIME_CORE_DIRECTPORTS_H

#include "runtime/abi/plan_generated.h"

#include <map>

namespace partita::runtime {

struct DirectPort {
  bool is_input = false;
  int io = -1; ///< Plan.inputs or Plan.outputs
};

/// The slots of a (verified) device for which that holds: in the arena, filled
/// by one input only and read by instructions only, or used by instructions
/// only and stored to one output. Not those that a library call updates in
/// place of another slot.
std::map<int, DirectPort> findDirectPorts(const abi::Device &device);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_CORE_DIRECTPORTS_H
