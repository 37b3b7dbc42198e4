//===- GpuUses.cpp - What a plan asks of its kernels for GPUs -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/GpuUses.h"

#include "runtime/abi/plan_generated.h"

namespace partita::abi {
namespace {

template <typename List, typename Fn> void each(const List *list, Fn fn) {
  for (unsigned i = 0; list && i < list->size(); ++i)
    fn(*list->Get(i));
}

/// Null: there is no such entry.
template <typename List>
auto at(const List *list, int64_t index) -> decltype(list->Get(0)) {
  return list && index >= 0 && index < int64_t(list->size())
             ? list->Get(static_cast<unsigned>(index))
             : nullptr;
}

} // namespace

std::string gpuUses(const Plan &plan) {
  std::string uses;
  auto say = [&](int64_t number) { uses += ' ' + std::to_string(number); };
  each(plan.kernels(), [&](const Kernel &kernel) {
    const Launch *launch = kernel.launch();
    if (!launch)
      return;
    uses += "kernel ";
    uses += kernel.name() ? kernel.name()->str() : "";
    if (const auto *blocks = launch->blocks())
      for (int size : *blocks)
        say(size);
    say(launch->threads());
    say(launch->shared_bytes());
    uses += '\n';
  });
  each(plan.programs(), [&](const Program &program) {
    auto sayUse = [&](const Instruction &instruction) {
      const Dispatch *dispatch = instruction.work_as_Dispatch();
      const Kernel *kernel =
          dispatch ? at(plan.kernels(), dispatch->kernel()) : nullptr;
      if (!kernel || !kernel->launch())
        return;
      say(dispatch->kernel());
      say(dispatch->extent());
      say(dispatch->results());
      if (const auto *operands = dispatch->operands())
        for (int operand : *operands) {
          const Slot *slot = at(program.slots(), operand);
          say(slot ? slot->bytes() : -1);
        }
      uses += '\n';
    };
    each(program.load(), sayUse);
    each(program.units(),
         [&](const Unit &unit) { each(unit.instructions(), sayUse); });
  });
  return uses;
}

} // namespace partita::abi
