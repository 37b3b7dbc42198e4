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

bool takesType(Operation *, Value value) { return getType(value).has_value(); }

constexpr CallRule kRule = {isDot, takesType, matchDotViews};

const CallRule *getRule(Operation *op) { return isDot(op) ? &kRule : nullptr; }

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

bool isProduct(Operation *op) { return isDot(op); }

plan::CallAttr matchProduct(ArrayRef<Operation *> ops, ArrayRef<Value> inputs,
                            ArrayRef<Value> results) {
  static constexpr CallLibrary library = {getRule, computes};
  return CallMatcher(library, ops, inputs, results).match();
}

} // namespace partita::codegen::cuda
