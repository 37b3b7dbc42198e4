//===- LibraryCalls.cpp - Library calls, prepared at load -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/LibraryCalls.h"

#include "runtime/abi/PostOps.h"
#include "runtime/device/cpu/onednn/rules/Fusion.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

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

namespace {

bool isWinograd(const abi::LibraryCall &call, const Extents &operands) {
  return call.winograd() && call.kind() == abi::CallKind::conv &&
         operands[0].size() == 4;
}

/// What the plan has for the weights of this call in an order of the library's
/// own; compiler/pipeline/DeviceMemory counts the same.
int64_t packedRoom(const ResolvedCall &resolved, const Extents &operands) {
  const abi::LibraryCall &call = *resolved.call;
  const bool conv = call.kind() == abi::CallKind::conv;
  if (!conv && call.kind() != abi::CallKind::dot &&
      call.kind() != abi::CallKind::recurrent)
    return 0;
  const Operand &weights = resolved.operands[1];
  const std::vector<int64_t> &dims = weights.dims;
  if (!weights.constant)
    return 0;
  if (elementBytes(weights.type) == 1)
    return conv ? rules::packedIntegerFilterRoom(dims, call.groups())
                : rules::packedIntegerMatrixRoom(dims);
  if (isWinograd(call, operands)) {
    const std::vector<int64_t> &result = resolved.operands.back().dims;
    const rules::WindowedImages images = {result[0],
                                          resolved.operands[0].dims[1],
                                          result[1], result[2], result[3]};
    return std::max(rules::winogradFilterRoom(images),
                    rules::packedFilterRoom(dims, call.groups()));
  }
  if (conv)
    return rules::packedFilterRoom(dims, call.groups());
  if (call.kind() == abi::CallKind::dot)
    return rules::packedMatrixRoom(dims);
  const bool resets =
      call.recurrent()->cell() == abi::Cell::gru && !resolved.hidden_bias;
  return rules::packedRecurrentRoom(dims, resets);
}

rules::Strided stridesOf(const abi::View &view) {
  return {{view.shape()->data(), view.shape()->size()},
          {view.strides()->data(), view.strides()->size()}};
}

/// The plan's verifier takes any post-op whose operand fits; this library may
/// compute it wrongly without an error.
Status checkPostOps(const abi::LibraryCall &call) {
  const int64_t count = length(call.post_ops());
  for (int64_t i = 0; i < count; ++i) {
    const abi::PostOp &post = *call.post_ops()->Get(i);
    auto form = rules::OperandForm::one;
    if (abi::isBinary(post.kind())) {
      const abi::View &result =
          *call.operands()->Get(call.operands()->size() - 1);
      form = rules::getOperandForm(call.kind(), stridesOf(result),
                                   stridesOf(*post.view()));
    }
    if (!rules::mayFuse(call.kind(), post.kind(), form))
      return Status::error("post-op " + std::to_string(i) + " (" +
                           abi::EnumNamePostOpKind(post.kind()) +
                           ") is one that the library is not known to compute "
                           "rightly");
  }
  return Status();
}

} // namespace

int64_t workspaceRoom(const abi::LibraryCall &call, const Extents &operands,
                      bool constant_weights) {
  if (isWinograd(call, operands))
    return rules::winogradRoom({operands[2][0], operands[0][1], operands[2][1],
                                operands[2][2], operands[2][3]});
  switch (call.kind()) {
  case abi::CallKind::attention:
    return rules::attentionScoreRoom(operands[0][2], operands[1][2]);
  case abi::CallKind::recurrent:
    return rules::recurrentRoom(operands[0][1], operands[1][2], operands[0][3]);
  case abi::CallKind::conv:
    return constant_weights
               ? 0
               : rules::repackedFilterRoom(operands[1], call.groups());
  default:
    return 0;
  }
}

Expected<std::unique_ptr<Task>> prepareCall(ResolvedCall call,
                                            OnednnContext &context,
                                            const ThreadTeam &team, bool pack) {
  if (Status status = checkPostOps(*call.call); !status.ok())
    return status;
  Extents operands;
  for (const Operand &operand : call.operands)
    operands.push_back(operand.dims);
  const bool constant = call.operands.size() > 1 && call.operands[1].constant;
  context.beginCall(pack ? packedRoom(call, operands) : 0,
                    workspaceRoom(*call.call, operands, constant));
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
