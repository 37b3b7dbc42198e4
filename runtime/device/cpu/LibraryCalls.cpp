//===- LibraryCalls.cpp - Library calls, prepared at load -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/LibraryCalls.h"

namespace partita::runtime {

ResolvedCall
resolveCall(const abi::LibraryCall &call,
            const std::function<Operand(const abi::View &)> &resolve) {
  ResolvedCall resolved;
  resolved.call = &call;
  for (const abi::View *view : *call.operands())
    resolved.operands.push_back(resolve(*view));
  auto optional = [&](const abi::View *view, bool &present, Operand &operand) {
    present = view != nullptr;
    if (present)
      operand = resolve(*view);
  };
  optional(call.bias(), resolved.has_bias, resolved.bias);
  optional(call.mask_mul(), resolved.has_mask_mul, resolved.mask_mul);
  optional(call.mask_add(), resolved.has_mask_add, resolved.mask_add);
  if (const abi::Recurrent *layer = call.recurrent())
    for (auto [view, to] :
         {std::pair(layer->lengths(), &resolved.lengths),
          std::pair(layer->initial(), &resolved.initial),
          std::pair(layer->initial_cell(), &resolved.initial_cell),
          std::pair(layer->peepholes(), &resolved.peepholes),
          std::pair(layer->hidden_bias(), &resolved.hidden_bias)})
      if (view)
        *to = resolve(*view);
  if (call.post_ops())
    for (const abi::PostOp *post : *call.post_ops()) {
      PostOperation operation;
      operation.kind = post->kind();
      operation.alpha = post->alpha();
      operation.beta = post->beta();
      if (post->view()) {
        operation.operand = resolve(*post->view());
        operation.operand.broadcastTo(resolved.result().dims);
      }
      resolved.post_ops.push_back(std::move(operation));
    }
  return resolved;
}

Expected<std::unique_ptr<Task>> prepareCall(ResolvedCall call,
                                            OnednnContext &context,
                                            const ThreadTeam &team, bool pack) {
  switch (call.call->kind()) {
  case abi::CallKind::dot:
    return prepareDot(std::move(call), context, team, pack);
  case abi::CallKind::conv:
    return prepareConv(std::move(call), context, team, pack);
  case abi::CallKind::pool_max:
  case abi::CallKind::pool_avg:
    return preparePool(std::move(call), context);
  case abi::CallKind::attention:
    return prepareAttention(std::move(call), context, team, pack);
  case abi::CallKind::recurrent:
    return prepareRecurrent(std::move(call), context, pack);
  case abi::CallKind::top_k:
  case abi::CallKind::scan:
  case abi::CallKind::scatter:
    return prepareOrdered(std::move(call), team);
  }
  return Status::error("a library call of an unknown kind");
}

} // namespace partita::runtime
