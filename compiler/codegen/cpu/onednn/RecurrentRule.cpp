//===- RecurrentRule.cpp - Recurrent layers by calls of the library -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallRule.h"

using namespace mlir;

namespace partita::codegen::onednn {
namespace {

bool matchRecurrent(CallMatcher &call, Operation *root) {
  auto layer = cast<nn::RecurrentOp>(root);
  call.kind = plan::CallKind::recurrent;
  if (!call.postOps.empty())
    return false;
  for (Value value : {layer.getX(), layer.getWeights()}) {
    std::optional<StridedView> view = call.operand(value);
    if (!view)
      return false;
    call.operands.push_back(*view);
  }
  bool understood = true;
  auto optional = [&](Value value) -> plan::ViewAttr {
    if (!value)
      return {};
    std::optional<StridedView> view = call.operand(value);
    understood &= view.has_value();
    return call.toAttr(view);
  };
  MLIRContext *context = layer.getContext();
  SmallVector<int64_t> reversed(layer.getReversed().begin(),
                                layer.getReversed().end());
  SmallVector<plan::GateFunctionAttr> functions;
  for (auto function : layer.getFunctions().getAsRange<nn::GateFunctionAttr>())
    functions.push_back(plan::GateFunctionAttr::get(
        context,
        *plan::symbolizeGateFunctionKind(
            nn::stringifyGateFunctionKind(function.getKind())),
        plan::Number(function.getAlpha()), plan::Number(function.getBeta())));
  plan::ViewAttr lengths = optional(layer.getLengths()),
                 initial = optional(layer.getInitial()),
                 initialCell = optional(layer.getInitialCell()),
                 peepholes = optional(layer.getPeepholes()),
                 hiddenBias = optional(layer.getHiddenBias());
  call.details = plan::RecurrentAttr::get(
      context, *plan::symbolizeCell(nn::stringifyCell(layer.getCell())),
      reversed, layer.getCoupled(),
      plan::Number(layer.getClip().convertToDouble()), functions, lengths,
      initial, initialCell, peepholes, hiddenBias);
  return understood;
}

bool isRecurrent(Operation *op) { return isa<nn::RecurrentOp>(op); }

bool takesRecurrent(Operation *root, Value value) {
  return value == cast<nn::RecurrentOp>(root).getLengths() || isF32(value);
}

} // namespace

const CallRule kRecurrentRule = {.isRoot = isRecurrent,
                                 .takes = takesRecurrent,
                                 .match = matchRecurrent,
                                 .onlyByLibrary = true,
                                 .counts32 = false};

} // namespace partita::codegen::onednn
