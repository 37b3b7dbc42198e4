//===- ExpandCudaFunctions.cpp - Functions without a library --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Passes.h"

#include "compiler/codegen/cuda/math/DoubleMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::codegen::cuda {

#define GEN_PASS_DEF_EXPANDCUDAFUNCTIONSPASS
#include "compiler/codegen/cuda/Passes.h.inc"

namespace {

/// The value of the op, of f64 operands; null if it is not one of ours.
Value expand(Operation *op, DoubleMath &math, ArrayRef<Value> x) {
  using Unary = Value (DoubleMath::*)(Value);
  auto function =
      TypeSwitch<Operation *, Unary>(op)
          .Case<math::ExpOp>([](auto) { return &DoubleMath::exp; })
          .Case<math::LogOp>([](auto) { return &DoubleMath::log; })
          .Case<math::Log1pOp>([](auto) { return &DoubleMath::log1p; })
          .Case<math::SinOp>([](auto) { return &DoubleMath::sin; })
          .Case<math::CosOp>([](auto) { return &DoubleMath::cos; })
          .Case<math::TanOp>([](auto) { return &DoubleMath::tan; })
          .Case<math::AsinOp>([](auto) { return &DoubleMath::asin; })
          .Case<math::AcosOp>([](auto) { return &DoubleMath::acos; })
          .Case<math::AtanOp>([](auto) { return &DoubleMath::atan; })
          .Case<math::SinhOp>([](auto) { return &DoubleMath::sinh; })
          .Case<math::CoshOp>([](auto) { return &DoubleMath::cosh; })
          .Case<math::TanhOp>([](auto) { return &DoubleMath::tanh; })
          .Case<math::ErfOp>([](auto) { return &DoubleMath::erf; })
          .Case<math::AsinhOp>([](auto) { return &DoubleMath::asinh; })
          .Case<math::AcoshOp>([](auto) { return &DoubleMath::acosh; })
          .Case<math::AtanhOp>([](auto) { return &DoubleMath::atanh; })
          .Default([](auto) { return Unary(); });
  if (function)
    return (math.*function)(x[0]);
  if (isa<math::PowFOp>(op))
    return math.pow(x[0], x[1]);
  // Of f64, LLVM's own is as good as any that fits here.
  if (isa<arith::RemFOp>(op) && getElementTypeOrSelf(op->getResult(0)).isF32())
    return math.rem(x[0], x[1]);
  return {};
}

class ExpandCudaFunctionsPass
    : public impl::ExpandCudaFunctionsPassBase<ExpandCudaFunctionsPass> {
public:
  using ExpandCudaFunctionsPassBase::ExpandCudaFunctionsPassBase;

private:
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<arith::RemFOp>(op) ||
          isa_and_nonnull<math::MathDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      replace(op);
  }

  static void replace(Operation *op) {
    Type type = op->getResult(0).getType(),
         element = getElementTypeOrSelf(type);
    if (!element.isF32() && !element.isF64())
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Type wide = b.getF64Type();
    if (auto vector = dyn_cast<VectorType>(type))
      wide = vector.clone(wide);
    // Nothing is made for ops that stay: they have no code of ours.
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(
          wide == type ? operand
                       : arith::ExtFOp::create(b, wide, operand).getOut());
    DoubleMath math(b, wide);
    Value result = expand(op, math, operands);
    if (!result) {
      for (Value operand : operands)
        if (Operation *made = operand.getDefiningOp(); made && wide != type)
          made->erase();
      return;
    }
    if (wide != type)
      result = arith::TruncFOp::create(b, type, result);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
};

} // namespace
} // namespace partita::codegen::cuda
