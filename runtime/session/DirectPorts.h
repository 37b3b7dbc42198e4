//===- DirectPorts.h - Values used where they come from ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan copies an input into a slot, an output out of one, and what another
// device sends into one. Where the slot serves nothing else, the instructions
// can read the caller's or the sender's bytes themselves, and write their
// result to where the caller wants it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_DIRECTPORTS_H
#define PARTITA_RUNTIME_SESSION_DIRECTPORTS_H

#include "runtime/abi/plan_generated.h"

#include <map>

namespace partita::runtime {

struct DirectPort {
  enum class Kind { input, output, channel };
  Kind kind = Kind::input;
  int index = -1; ///< into Plan.inputs, Plan.outputs or Plan.channels
};

/// The slots of a (verified) program for which that holds: in the arena or a
/// frame, filled by one input only and read by instructions only, or used by
/// instructions only and stored to one output, or received on one channel only,
/// always with a release, and read by instructions only. Not those that a
/// library call updates in place of another slot.
std::map<int, DirectPort> findDirectPorts(const abi::Program &program);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_DIRECTPORTS_H
