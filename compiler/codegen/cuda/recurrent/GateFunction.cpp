//===- GateFunction.cpp - The function of a gate --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/recurrent/GateFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace partita::codegen::cuda {

Value emitFloat(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

Value emitGate(ImplicitLocOpBuilder &b, nn::GateFunctionAttr function,
               Value x) {
  using Kind = nn::GateFunctionKind;
  auto add = [&](Value p, Value q) -> Value {
    return arith::AddFOp::create(b, p, q);
  };
  auto mul = [&](Value p, Value q) -> Value {
    return arith::MulFOp::create(b, p, q);
  };
  auto largest = [&](Value p, Value q) -> Value {
    return arith::MaximumFOp::create(b, p, q);
  };
  auto exp = [&](Value p) -> Value { return math::ExpOp::create(b, p); };
  auto whereNegative = [&](Value p, Value q) -> Value {
    Value negative =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, emitFloat(b, 0));
    return arith::SelectOp::create(b, negative, p, q);
  };
  Value alpha = emitFloat(b, function.getAlpha()),
        beta = emitFloat(b, function.getBeta()), one = emitFloat(b, 1),
        zero = emitFloat(b, 0);
  switch (function.getKind()) {
  case Kind::relu:
    return largest(x, zero);
  case Kind::tanh:
    return math::TanhOp::create(b, x);
  case Kind::logistic:
    return arith::DivFOp::create(b, one,
                                 add(one, exp(arith::NegFOp::create(b, x))));
  case Kind::affine:
    return add(mul(alpha, x), beta);
  case Kind::leaky_relu:
    return whereNegative(mul(alpha, x), x);
  case Kind::thresholded_relu: {
    Value above = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, x, alpha);
    return arith::SelectOp::create(b, above, x, zero);
  }
  case Kind::scaled_tanh:
    return mul(alpha, math::TanhOp::create(b, mul(beta, x)));
  case Kind::hard_sigmoid:
    return arith::MinimumFOp::create(b, largest(add(mul(alpha, x), beta), zero),
                                     one);
  case Kind::elu:
    return whereNegative(mul(alpha, arith::SubFOp::create(b, exp(x), one)), x);
  case Kind::softsign:
    return arith::DivFOp::create(b, x, add(one, math::AbsFOp::create(b, x)));
  case Kind::softplus: {
    Value below = arith::NegFOp::create(b, math::AbsFOp::create(b, x));
    return add(largest(x, zero), math::Log1pOp::create(b, exp(below)));
  }
  }
  return {};
}

} // namespace partita::codegen::cuda
