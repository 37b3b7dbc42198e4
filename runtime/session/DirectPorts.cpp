//===- DirectPorts.cpp - Values used where they come from -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/DirectPorts.h"

#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"

#include <set>
#include <utility>
#include <vector>

namespace partita::runtime {
namespace {

/// Of a slot.
struct Uses {
  std::set<std::pair<DirectPort::Kind, int>> ports;
  bool written = false; ///< by an instruction
  bool other = false;   ///< something that needs the slot's own bytes
};

} // namespace

std::map<int, DirectPort> findDirectPorts(const abi::Program &program) {
  using Kind = DirectPort::Kind;
  std::vector<Uses> uses(static_cast<size_t>(length(program.slots())));
  std::set<std::pair<int, int>> released; // channel, micro-batch
  for (int64_t i = 0; i < length(program.actions()); ++i)
    if (const abi::ProgramAction action = actionOf(program, i);
        action.kind == abi::ActionKind::release)
      released.insert({action.subject, action.micro_batch});
  for (int64_t i = 0; i < length(program.actions()); ++i) {
    const abi::ProgramAction action = actionOf(program, i);
    if (action.slot < 0)
      continue;
    Uses &use = uses[static_cast<size_t>(action.slot)];
    if (action.kind == abi::ActionKind::load_input)
      use.ports.insert({Kind::input, action.subject});
    else if (action.kind == abi::ActionKind::store_output)
      use.ports.insert({Kind::output, action.subject});
    else if (action.kind == abi::ActionKind::recv &&
             released.count({action.subject, action.micro_batch}))
      use.ports.insert({Kind::channel, action.subject});
    else
      use.other = true;
  }
  auto visit = [&](const abi::Instruction &instruction) {
    forEachSlot(instruction, [&](const SlotUse &use) {
      uses[static_cast<size_t>(use.slot)].written |= use.written;
    });
    const abi::Call *call = instruction.work_as_Call();
    if (!call)
      return;
    // The result begins as what another slot left in the same bytes.
    int result = at(call->operands(), length(call->operands()) - 1).slot();
    for (const abi::PostOp &post : each(call->post_ops()))
      if (post.kind() == abi::PostOpKind::sum && post.before() >= 0 &&
          post.before() != result)
        for (int slot : {result, post.before()})
          uses[static_cast<size_t>(slot)].other = true;
  };
  forEachInstruction(program, /*with_load=*/false, visit);
  for (const abi::Instruction &instruction : each(program.load()))
    forEachSlot(instruction, [&](const SlotUse &use) {
      uses[static_cast<size_t>(use.slot)].other = true;
    });
  std::map<int, DirectPort> found;
  for (size_t slot = 0; slot < uses.size(); ++slot) {
    const Uses &use = uses[slot];
    const abi::Slot &described = at(program.slots(), slot);
    const bool isWritable = described.space() == abi::Space::arena ||
                            described.space() == abi::Space::frame;
    if (use.other || !isWritable || described.bytes() == 0 ||
        use.ports.size() != 1)
      continue;
    auto [kind, index] = *use.ports.begin();
    if (use.written == (kind == Kind::output))
      found[static_cast<int>(slot)] = {kind, index};
  }
  return found;
}

} // namespace partita::runtime
