//===- Winograd.cpp - Which convolutions are computed so ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/Winograd.h"

#include "dialects/nn/NNDialect.h"

using namespace mlir;

namespace partita::codegen::onednn {
namespace {

// With fewer channels, or less to do, the direct method is faster.
constexpr int64_t kLeastChannels = 32;
constexpr double kLeastFlops = 1e8;

/// Whether the elements of a value are made integers: sums of integers are
/// exact, but not by Winograd's method.
bool becomesInteger(Value value) {
  SmallVector<Value> same = {value}; // but for their order
  for (size_t i = 0; i < same.size(); ++i)
    for (Operation *user : same[i].getUsers()) {
      auto view = dyn_cast<nn::ViewOpInterface>(user);
      if (view && view.keepsElements())
        same.push_back(user->getResult(0));
      else if (isa<nn::CastOp>(user) && isa<IntegerType>(getElementTypeOrSelf(
                                            user->getResult(0).getType())))
        return true;
    }
  return false;
}

bool suitsWinograd(nn::ConvOp conv) {
  auto isOne = [](int64_t value) { return value == 1; };
  auto weights = cast<RankedTensorType>(conv.getWeights().getType());
  RankedTensorType y = conv.getType();
  if (y.getRank() != 4 || !y.getElementType().isF32() ||
      conv.getGroups() != 1 || weights.getDimSize(2) != 3 ||
      weights.getDimSize(3) != 3 || !llvm::all_of(conv.getStrides(), isOne) ||
      !llvm::all_of(conv.getDilations(), isOne))
    return false;
  const int64_t outputs = weights.getDimSize(0), inputs = weights.getDimSize(1);
  const double flops = 2.0 * 9 * inputs * y.getNumElements();
  return inputs >= kLeastChannels && outputs >= kLeastChannels &&
         flops >= kLeastFlops;
}

} // namespace

/// Only with weights that are known when loading, and nothing but functions
/// behind it.
void markWinograd(ArrayRef<Operation *> ops, analysis::Rates &rates) {
  nn::ConvOp conv;
  for (Operation *op : ops) {
    if (auto found = dyn_cast<nn::ConvOp>(op))
      conv = found;
    else if (llvm::any_of(op->getOperands(), [&](Value operand) {
               return !llvm::is_contained(ops, operand.getDefiningOp()) &&
                      !rates.isLoad(operand);
             }))
      return;
  }
  if (conv && suitsWinograd(conv) && rates.isLoad(conv.getWeights()) &&
      !becomesInteger(conv.getResult()))
    conv->setAttr(nn::kWinogradAttr, UnitAttr::get(conv.getContext()));
}

} // namespace partita::codegen::onednn
