//===- NumberBuilder.h - Arithmetic of a thread's numbers -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_GRID_NUMBERBUILDER_H
#define PARTITA_COMPILER_CODEGEN_CUDA_GRID_NUMBERBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::codegen::cuda {

/// Builds what a thread computes with numbers and places, which are integers
/// without sign.
class NumberBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Value = mlir::Value;
  using Predicate = mlir::arith::CmpIPredicate;

  /// A constant of i32, and one of index.
  Value number(int64_t value) {
    return mlir::arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(*this, value);
  }
  Value toIndex(Value x) {
    return mlir::arith::IndexCastUIOp::create(*this, getIndexType(), x);
  }
  Value add(Value x, Value y) {
    return mlir::arith::AddIOp::create(*this, x, y);
  }
  Value sub(Value x, Value y) {
    return mlir::arith::SubIOp::create(*this, x, y);
  }
  Value mul(Value x, Value y) {
    return mlir::arith::MulIOp::create(*this, x, y);
  }
  Value div(Value x, Value y) {
    return mlir::arith::DivUIOp::create(*this, x, y);
  }
  Value rem(Value x, Value y) {
    return mlir::arith::RemUIOp::create(*this, x, y);
  }
  Value min(Value x, Value y) {
    return mlir::arith::MinUIOp::create(*this, x, y);
  }
  Value both(Value x, Value y) {
    return mlir::arith::AndIOp::create(*this, x, y);
  }
  Value compare(Predicate is, Value x, Value y) {
    return mlir::arith::CmpIOp::create(*this, is, x, y);
  }
  Value isEqual(Value x, Value y) { return compare(Predicate::eq, x, y); }
  Value isBelow(Value x, Value y) { return compare(Predicate::ult, x, y); }

  /// What `emit` builds is done where the condition holds.
  template <typename Fn> void when(Value condition, Fn emit) {
    auto branch =
        mlir::scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
    InsertionGuard guard(*this);
    setInsertionPoint(branch.thenBlock()->getTerminator());
    emit();
  }
  /// What `emit` builds is done for each index of [begin, end), `step` apart.
  template <typename Fn>
  void loop(Value begin, Value end, int64_t step, Fn emit) {
    auto op = mlir::scf::ForOp::create(*this, begin, end, index(step));
    InsertionGuard guard(*this);
    setInsertionPoint(op.getBody()->getTerminator());
    emit(op.getInductionVar());
  }
};

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_GRID_NUMBERBUILDER_H
