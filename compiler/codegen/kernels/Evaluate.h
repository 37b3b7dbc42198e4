//===- Evaluate.h - The value of one element --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An evaluator emits the computation of one element of an nn value at a given
// position. It recursively evaluates the operands, down to *leaves*: tensors in
// memory. So ops that only change indices (transpose, broadcast, slice,
// reshape, pad, ...) need no pass over memory: they change the positions at
// which their operands are evaluated.
//
//   softmax's last step   div(exp, broadcast(sum)) at (d0, d1)
//                         -> divf(leaf exp at (d0, d1), leaf sum at (d0))
//
// Leaves have no dimensions of size 1. A leaf that is read at positions linear
// in the loops becomes an operand of the linalg.generic. Any other read
// (gather, the inside of a pad) is a tensor.extract.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_EVALUATE_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_EVALUATE_H

#include "dialects/nn/NNDialect.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <vector>

namespace partita::codegen {

using nn::Index;

/// A tensor in memory that holds an nn value. `element` is its nn element type.
/// It differs from the value's if sums are kept in a wider type.
struct Leaf {
  mlir::Value tensor;
  mlir::Type element;
};

using Leaves = llvm::DenseMap<mlir::Value, Leaf>;

class Evaluator : public nn::ElementEmitter {
public:
  /// An operand of the linalg.generic and the block argument that is its
  /// element.
  struct Operand {
    mlir::Value tensor;
    mlir::AffineMap map;
    mlir::BlockArgument element;
  };

  /// Emits into `body`, the block of a linalg.generic with loops of the given
  /// sizes. Views and constants that it needs are made with `outer`.
  Evaluator(mlir::OpBuilder &outer, Leaves &leaves, mlir::Block &body,
            llvm::ArrayRef<int64_t> sizes)
      : ElementEmitter(outer.getContext()), outer(outer), leaves(leaves),
        body(body), sizes(sizes), memo(1) {}

  mlir::Value evaluate(mlir::OpBuilder &b, mlir::Value value,
                       llvm::ArrayRef<Index> position) override;

  llvm::ArrayRef<Operand> getOperands() const { return operands; }

  mlir::Value toValue(mlir::OpBuilder &b, Index index) override;

  mlir::Value guard(mlir::OpBuilder &b, mlir::Location loc,
                    mlir::Value condition, mlir::Type scalar, EmitFn then,
                    EmitFn otherwise) override;

  /// Runs `emit` inside a conditional branch or a loop. Values that are
  /// computed inside are not reused outside.
  template <typename Fn> auto nested(Fn emit) {
    memo.emplace_back();
    auto result = emit();
    memo.pop_back();
    return result;
  }

private:
  using Key = std::vector<const void *>;

  mlir::Value compute(mlir::OpBuilder &b, mlir::Value value,
                      llvm::ArrayRef<Index> position);
  mlir::Value read(mlir::OpBuilder &b, mlir::Value value, Leaf leaf,
                   llvm::ArrayRef<Index> position);
  mlir::Value evaluateConstant(mlir::OpBuilder &b, nn::ConstantOp constant,
                               llvm::ArrayRef<Index> position);
  /// Makes the reshape of a leaf another leaf.
  bool viewLeaf(nn::ReshapeOp reshape);

  mlir::OpBuilder &outer;
  Leaves &leaves;
  mlir::Block &body;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<Operand> operands;
  llvm::SmallVector<mlir::Value> loopIndices;
  /// What is known outside of all branches and loops, and in each of them.
  std::vector<std::map<Key, mlir::Value>> memo;
};

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_EVALUATE_H
