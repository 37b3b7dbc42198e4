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
resolveCall(const abi::Call &call,
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
  if (const abi::Conv *conv = call.details_as_Conv())
    optional(conv->bias(), resolved.has_bias, resolved.bias);
  if (const abi::Attention *attention = call.details_as_Attention()) {
    optional(attention->mask_mul(), resolved.has_mask_mul, resolved.mask_mul);
    optional(attention->mask_add(), resolved.has_mask_add, resolved.mask_add);
  }
  if (const abi::PackedDot *packed = call.details_as_PackedDot()) {
    optional(packed->zeros(), resolved.has_zeros, resolved.zeros);
    optional(packed->experts(), resolved.has_experts, resolved.experts);
  }
  if (const abi::Recurrent *layer = call.details_as_Recurrent())
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

void CallTask::visitAddresses(const AddressVisitor &visit) {
  for (Operand &operand : call.operands)
    visit(&operand.data);
  for (Operand *operand :
       {&call.bias, &call.mask_mul, &call.mask_add, &call.zeros, &call.experts})
    visit(&operand->data);
  for (std::optional<Operand> *operand :
       {&call.lengths, &call.initial, &call.initial_cell, &call.peepholes,
        &call.hidden_bias})
    if (*operand)
      visit(&(*operand)->data);
}

namespace {

rules::CallShape shapeOf(const abi::Call &call, const Extents &operands,
                         abi::DType right) {
  rules::CallShape shape;
  shape.kind = call.kind();
  shape.operands.assign(operands.begin(), operands.end());
  shape.integers = elementBytes(right) == 1;
  shape.halves = right == abi::DType::bf16;
  if (const abi::Conv *conv = call.details_as_Conv()) {
    shape.groups = conv->groups();
    shape.winograd = conv->winograd() && operands[0].size() == 4;
  }
  if (const abi::Recurrent *layer = call.details_as_Recurrent())
    shape.resets_first =
        layer->cell() == abi::Cell::gru && !layer->hidden_bias();
  if (const abi::PackedDot *packed = call.details_as_PackedDot())
    shape.bits = packed->bits();
  return shape;
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

int64_t workspaceRoom(const abi::Call &call, const Extents &operands,
                      abi::DType right, bool constant_weights) {
  return rules::workspaceRoom(shapeOf(call, operands, right), constant_weights);
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
  Extents operands;
  for (const Operand &operand : call.operands)
    operands.push_back(operand.dims);
  const bool constant = call.operands.size() > 1 && call.operands[1].constant;
  const rules::CallShape shape = shapeOf(
      *call.call, operands,
      call.operands.size() > 1 ? call.operands[1].type : abi::DType::f32);
  // The plan has room for weights that are known now; the compiler counts by
  // the same rules.
  context.beginCall(pack && constant ? rules::packedRoom(shape).value_or(0) : 0,
                    rules::workspaceRoom(shape, constant));
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
