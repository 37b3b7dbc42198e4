//===- ProductCall.cpp - Products that cuBLASLt computes ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/cublaslt/ProductCall.h"

#include "compiler/codegen/calls/DotViews.h"
#include "runtime/device/cuda/cublaslt/rules/Matmul.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

/// The type as the plan has it, or nothing where the library takes no such
/// numbers.
std::optional<abi::DType> getType(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  if (type.isF32())
    return abi::DType::f32;
  if (type.isF16())
    return abi::DType::f16;
  if (type.isBF16())
    return abi::DType::bf16;
  if (type.isSignlessInteger(8))
    return abi::DType::i8;
  if (type.isSignlessInteger(32))
    return abi::DType::i32;
  return std::nullopt;
}

bool isDot(Operation *op) {
  return isa<nn::DotOp>(op) && getType(op->getOperand(0));
}

/// A convolution that multiplies each pixel's channels by one matrix.
bool isPixelwise(Operation *op) {
  auto conv = dyn_cast<nn::ConvOp>(op);
  if (!conv || conv.getLayout() != nn::ImageLayout::channels_last ||
      conv.getGroups() != 1 || !getType(conv.getX()))
    return false;
  auto all = [](ArrayRef<int64_t> values, int64_t wanted) {
    return llvm::all_of(values, [&](int64_t value) { return value == wanted; });
  };
  ArrayRef<int64_t> weights = nn::getTensorType(conv.getWeights()).getShape();
  return all(weights.drop_front(2), 1) && all(conv.getStrides(), 1) &&
         all(conv.getPadsLow(), 0) && all(conv.getPadsHigh(), 0);
}

/// Pixels [N * spatial.., C] times weights [O, C], transposed.
bool matchPixelwise(CallMatcher &call, Operation *root) {
  auto conv = cast<nn::ConvOp>(root);
  call.kind = plan::CallKind::dot;
  std::optional<StridedView> x = call.operand(conv.getX()),
                             weights = call.operand(conv.getWeights());
  if (!x || !weights)
    return false;
  const int64_t outputs = weights->shape[0], inputs = weights->shape[1],
                pixels = nn::getTensorType(conv.getX()).getNumElements() /
                         std::max<int64_t>(inputs, 1);
  x = x->reshape({pixels, inputs});
  weights = weights->reshape({outputs, inputs});
  if (!x || !weights || !call.reshapeOutput({pixels, outputs}))
    return false;
  call.operands = {*x, weights->permute({1, 0})};
  return true;
}

bool takesType(Operation *, Value value) { return getType(value).has_value(); }

const CallRule *getRule(Operation *op) {
  static constexpr CallRule dot = {isDot, takesType, matchDotViews},
                            conv = {isPixelwise, takesType, matchPixelwise};
  return isDot(op) ? &dot : isPixelwise(op) ? &conv : nullptr;
}

rules::Tensor getTensor(const StridedView &view) {
  return {*getType(view.base), view.shape, view.strides, view.offset};
}

bool computes(const CallMatcher &call) {
  rules::Product product{getTensor(call.operands[0]),
                         getTensor(call.operands[1]),
                         getTensor(call.output),
                         {}};
  for (const PostOpStep &step : call.steps) {
    product.steps.push_back({step.kind, step.alpha, step.beta, {}});
    if (!step.operand)
      continue;
    if (!getType(step.operand->base))
      return false;
    product.steps.back().operand = getTensor(*step.operand);
  }
  rules::Matmul matmul;
  return rules::describeMatmul(product, matmul) == nullptr;
}

} // namespace

bool isProduct(Operation *op) { return getRule(op) != nullptr; }

plan::CallAttr matchProduct(ArrayRef<Operation *> ops, ArrayRef<Value> inputs,
                            ArrayRef<Value> results) {
  static constexpr CallLibrary library = {getRule, computes};
  return CallMatcher(library, ops, inputs, results).match();
}

} // namespace partita::codegen::cuda
