//===- DirectPorts.cpp - Values used where they come from -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/DirectPorts.h"

#include "runtime/base/Slots.h"

#include <set>
#include <utility>
#include <vector>

namespace partita::runtime {
namespace {

class PortFinder {
public:
  explicit PortFinder(const abi::Device &device)
      : device(device), uses(static_cast<size_t>(length(device.slots()))) {}

  std::map<int, DirectPort> find() {
    for (int64_t i = 0; i < length(device.program()); ++i) {
      const abi::Step &step = *device.program()->Get(static_cast<unsigned>(i));
      if (step.kind() == abi::StepKind::release)
        released.insert({step.channel(), step.micro_batch()});
    }
    for (int64_t i = 0; i < length(device.program()); ++i)
      visit(*device.program()->Get(static_cast<unsigned>(i)));
    for (int64_t i = 0; i < length(device.load()); ++i)
      forEachSlot(*device.load()->Get(static_cast<unsigned>(i)),
                  [&](const SlotUse &use) {
                    uses[static_cast<size_t>(use.slot)].other = true;
                  });
    std::map<int, DirectPort> found;
    for (size_t slot = 0; slot < uses.size(); ++slot) {
      const Uses &use = uses[slot];
      const abi::Slot &described =
          *device.slots()->Get(static_cast<unsigned>(slot));
      if (use.other || described.space() != abi::Space::arena ||
          described.bytes() == 0 || use.ports.size() != 1)
        continue;
      auto [kind, index] = *use.ports.begin();
      if (use.written == (kind == Kind::output))
        found[static_cast<int>(slot)] = {kind, index};
    }
    return found;
  }

private:
  using Kind = DirectPort::Kind;
  struct Uses {
    std::set<std::pair<Kind, int>> ports;
    bool written = false; ///< by an instruction
    bool other = false;   ///< something that needs the slot's own bytes
  };

  Uses *at(int slot) {
    return slot < 0 ? nullptr : &uses[static_cast<size_t>(slot)];
  }

  void visit(const abi::Step &step) {
    if (step.kind() == abi::StepKind::run) {
      const abi::Unit &unit =
          *device.units()->Get(static_cast<unsigned>(step.unit()));
      for (int64_t i = 0; i < length(unit.instructions()); ++i)
        visit(*unit.instructions()->Get(static_cast<unsigned>(i)), step);
      return;
    }
    Uses *use = at(step.slot());
    if (!use)
      return;
    if (step.kind() == abi::StepKind::load_input)
      use->ports.insert({Kind::input, step.io()});
    else if (step.kind() == abi::StepKind::store_output)
      use->ports.insert({Kind::output, step.io()});
    else if (step.kind() == abi::StepKind::recv &&
             released.count({step.channel(), step.micro_batch()}))
      use->ports.insert({Kind::channel, step.channel()});
    else
      use->other = true;
  }

  void visit(const abi::Instruction &instruction, const abi::Step &step) {
    auto bound = [&](int slot) {
      const abi::Slot &described =
          *device.slots()->Get(static_cast<unsigned>(slot));
      return described.space() == abi::Space::argument
                 ? step.bindings()->Get(
                       static_cast<unsigned>(described.offset()))
                 : slot;
    };
    forEachSlot(instruction, [&](const SlotUse &use) {
      at(bound(use.slot))->written |= use.written;
    });
    const abi::LibraryCall *call = instruction.work_as_LibraryCall();
    if (!call)
      return;
    // The result begins as what another slot left in the same bytes.
    int result =
        bound(call->operands()
                  ->Get(static_cast<unsigned>(length(call->operands()) - 1))
                  ->slot());
    for (int64_t i = 0; i < length(call->post_ops()); ++i) {
      const abi::PostOp &post =
          *call->post_ops()->Get(static_cast<unsigned>(i));
      if (post.kind() != abi::PostOpKind::sum)
        continue;
      if (post.before() < 0 || bound(post.before()) == result)
        continue;
      at(result)->other = true;
      at(bound(post.before()))->other = true;
    }
  }

  const abi::Device &device;
  std::vector<Uses> uses;
  std::set<std::pair<int, int>> released; // channel, micro-batch
};

} // namespace

std::map<int, DirectPort> findDirectPorts(const abi::Device &device) {
  return PortFinder(device).find();
}

} // namespace partita::runtime
