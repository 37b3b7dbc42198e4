//===- LibraryCalls.cpp - Library calls, prepared at load -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/LibraryCalls.h"

#include "runtime/abi/Calls.h"
#include "runtime/device/cpu/onednn/rules/Fusion.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

namespace partita::runtime {

ResolvedCall
resolveCall(const abi::Call &call,
            const std::function<Operand(const abi::View &)> &resolve) {
  ResolvedCall resolved;
  resolved.call = &call;
  for (const abi::View *view : *call.operands())
    resolved.operands.push_back(resolve(*view));
  auto optional = [&](const abi::View *view, std::optional<Operand> &operand) {
    if (view)
      operand = resolve(*view);
  };
  if (const abi::Conv *conv = call.details_as_Conv())
    optional(conv->bias(), resolved.bias);
  if (const abi::Attention *attention = call.details_as_Attention()) {
    optional(attention->mask_mul(), resolved.mask_mul);
    optional(attention->mask_add(), resolved.mask_add);
  }
  if (const abi::PackedDot *packed = call.details_as_PackedDot()) {
    optional(packed->zeros(), resolved.zeros);
    optional(packed->experts(), resolved.experts);
  }
  if (const abi::Recurrent *layer = call.details_as_Recurrent()) {
    optional(layer->lengths(), resolved.lengths);
    optional(layer->initial(), resolved.initial);
    optional(layer->initial_cell(), resolved.initial_cell);
    optional(layer->peepholes(), resolved.peepholes);
    optional(layer->hidden_bias(), resolved.hidden_bias);
  }
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

void CallTask::visitAddresses(const AddressVisitor &visit) {
  for (Operand &operand : call.operands)
    visit(&operand.data);
  for (std::optional<Operand> *operand :
       {&call.bias, &call.mask_mul, &call.mask_add, &call.zeros, &call.experts,
        &call.lengths, &call.initial, &call.initial_cell, &call.peepholes,
        &call.hidden_bias})
    if (*operand)
      visit(&(*operand)->data);
}

namespace {

rules::CallShape shapeOf(const abi::Call &call,
                         const std::vector<Operand> &operands) {
  rules::CallShape shape;
  shape.kind = call.kind();
  for (const Operand &operand : operands)
    shape.operands.push_back(operand.dims);
  const abi::DType right = operands[operands.size() > 1 ? 1 : 0].type;
  shape.integers = elementBytes(right) == 1;
  shape.halves = right == abi::DType::bf16;
  if (const abi::Conv *conv = call.details_as_Conv()) {
    shape.groups = conv->groups();
    shape.winograd = conv->winograd() && operands[0].rank() == 4;
  }
  if (const abi::Recurrent *layer = call.details_as_Recurrent())
    shape.resets_first =
        layer->cell() == abi::Cell::gru && !layer->hidden_bias();
  if (const abi::PackedDot *packed = call.details_as_PackedDot())
    shape.bits = packed->bits();
  return shape;
}

bool hasConstantWeights(const std::vector<Operand> &operands) {
  return operands.size() > 1 && operands[1].constant;
}

rules::Strided stridesOf(const abi::View &view) {
  return {{view.shape()->data(), view.shape()->size()},
          {view.strides()->data(), view.strides()->size()}};
}

/// The plan's verifier takes any post-op whose operand fits; this library may
/// compute it wrongly without an error.
Status checkPostOps(const abi::Call &call) {
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
    bool isRight = rules::mayFuse(call.kind(), post.kind(), form);
    for (int64_t k = 0; k < i; ++k)
      isRight &= rules::mayFollow(call.post_ops()->Get(k)->kind(), post.kind());
    if (!isRight)
      return Status::error("post-op " + std::to_string(i) + " (" +
                           abi::EnumNamePostOpKind(post.kind()) +
                           ") is one that the library is not known to compute "
                           "rightly");
  }
  return Status();
}

} // namespace

int64_t workspaceRoom(const abi::Call &call,
                      const std::vector<Operand> &operands) {
  return rules::workspaceRoom(shapeOf(call, operands),
                              hasConstantWeights(operands));
}

Expected<std::unique_ptr<Task>> prepareCall(ResolvedCall call,
                                            OnednnContext &context,
                                            const ThreadTeam &team, bool pack) {
  PARTITA_TRY(checkPostOps(*call.call));
  if (elementBytes(call.operands.front().type) == 2 &&
      call.call->kind() != abi::CallKind::update_slice &&
      !(call.call->kind() == abi::CallKind::dot &&
        call.operands.front().type == abi::DType::bf16 &&
        call.post_ops.empty()))
    return Status::error(std::string("the library computes with no ") +
                         abi::EnumNameDType(call.operands.front().type) +
                         ": compile the model for this kind of device");
  // The plan has room for weights that are known now; the compiler counts by
  // the same rules.
  context.beginCall(
      pack && hasConstantWeights(call.operands)
          ? rules::packedRoom(shapeOf(*call.call, call.operands)).value_or(0)
          : 0,
      workspaceRoom(*call.call, call.operands));
  switch (call.call->kind()) {
#define PARTITA_CALL(kind, name)                                               \
  case abi::CallKind::kind:                                                    \
    return prepare##name(std::move(call), context, team, pack);
#include "runtime/device/cpu/onednn/rules/Calls.def"
#undef PARTITA_CALL
  }
  return Status::error("a call of an unknown kind");
}

} // namespace partita::runtime
