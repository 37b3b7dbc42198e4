//===- Slots.h - Which slots an instruction reads and writes ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_SLOTS_H
#define PARTITA_RUNTIME_BASE_SLOTS_H

#include "runtime/base/Elements.h"

namespace partita::runtime {

/// Part of a slot that an instruction uses: all of it, or the hull of a view.
struct SlotUse {
  int slot;
  const abi::View *view; ///< null: the whole slot; it may be a view of another
                         ///< slot with the same bytes
  bool written;
};

/// Calls `visit(SlotUse)` for each use of an instruction, reads before writes.
/// Skips null views.
template <typename Visit>
void forEachSlot(const abi::Instruction &instruction, Visit visit) {
  if (const abi::Dispatch *dispatch = instruction.work_as_Dispatch()) {
    int64_t count = length(dispatch->operands());
    for (int64_t i = 0; i < count; ++i)
      visit(SlotUse{dispatch->operands()->Get(i), nullptr,
                    i >= count - dispatch->results()});
    return;
  }
  if (const abi::Copy *copy = instruction.work_as_Copy()) {
    visit(SlotUse{copy->source(), nullptr, false});
    visit(SlotUse{copy->destination(), nullptr, true});
    return;
  }
  if (const abi::Slice *slice = instruction.work_as_Slice()) {
    visit(SlotUse{slice->source(), nullptr, false});
    visit(SlotUse{slice->destination(), nullptr, true});
    return;
  }
  const abi::Call *call = instruction.work_as_Call();
  if (!call)
    return;
  auto view = [&](const abi::View *used, bool written) {
    if (used)
      visit(SlotUse{used->slot(), used, written});
  };
  int64_t last = length(call->operands()) - 1;
  for (int64_t i = 0; i < last; ++i)
    view(call->operands()->Get(i), false);
  if (const abi::Conv *conv = call->details_as_Conv())
    view(conv->bias(), false);
  if (const abi::Attention *attention = call->details_as_Attention()) {
    view(attention->mask_mul(), false);
    view(attention->mask_add(), false);
  }
  if (const abi::PackedDot *packed = call->details_as_PackedDot()) {
    view(packed->zeros(), false);
    view(packed->experts(), false);
  }
  if (const abi::Recurrent *recurrent = call->details_as_Recurrent())
    for (const abi::View *used :
         {recurrent->lengths(), recurrent->initial(), recurrent->initial_cell(),
          recurrent->peepholes(), recurrent->hidden_bias()})
      view(used, false);
  for (const abi::PostOp &post : each(call->post_ops())) {
    view(post.view(), false);
    const abi::View *result = last >= 0 ? call->operands()->Get(last) : nullptr;
    if (post.kind() == abi::PostOpKind::sum && result)
      visit(SlotUse{post.before() < 0 ? result->slot() : post.before(), result,
                    false});
  }
  if (last >= 0)
    view(call->operands()->Get(last), true);
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_SLOTS_H
