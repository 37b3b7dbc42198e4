//===- DirectPorts.h - Values that need no copy -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan copies inputs and received values into slots, and outputs out of
// slots. If a slot has no other use, the copy is not needed: instructions can
// read the caller's or the sender's bytes directly, and write results directly
// to the caller's memory.
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

/// The slots of a (verified) program that need no copy. Such a slot is in the
/// arena or a frame. Either one input alone fills it, and only instructions
/// read it. Or only instructions use it, and it is stored to one output. Or it
/// is received on one channel alone, always with a release, and only
/// instructions read it. Slots that a library call updates in place of another
/// slot are excluded.
std::map<int, DirectPort> findDirectPorts(const abi::Program &program);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_DIRECTPORTS_H
