//===- ElementEmitter.h - How an op writes one of its elements --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op that moves or combines elements emits the computation of one element of
// its result. It asks for elements of its operands, at other positions:
//
//   transpose [1, 0] at (d0, d1)   -> x at (d1, d0)
//   slice from 3 by 2 at (d0)      -> x at (d0 * 2 + 3)
//
// A code generator derives from `ElementEmitter`. It knows where tensors are
// stored, and how loops and branches are emitted.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_EMIT_ELEMENTEMITTER_H
#define PARTITA_DIALECTS_NN_EMIT_ELEMENTEMITTER_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"

namespace partita::nn {

/// A position along one dimension: an affine expression of the loops, or, if
/// `expr` is null, an index value.
struct Index {
  mlir::AffineExpr expr;
  mlir::Value value;
};

/// A window along one dimension of a tensor of `size` elements.
struct Window {
  int64_t stride = 1, dilation = 1, low = 0, high = 0, size = 1;
};

class ElementEmitter {
public:
  using EmitFn = llvm::function_ref<mlir::Value(mlir::OpBuilder &)>;

  explicit ElementEmitter(mlir::MLIRContext *context) : context(context) {}
  virtual ~ElementEmitter() = default;

  /// Emits the scalar (of the signless type) of `value` at `position`, which
  /// has one index per dimension. Returns null, with an error, for an unknown
  /// op.
  virtual mlir::Value evaluate(mlir::OpBuilder &b, mlir::Value value,
                               llvm::ArrayRef<Index> position) = 0;
  /// Emits a branch: `then` if `condition` holds, else `otherwise`. Only the
  /// one that is taken is evaluated.
  virtual mlir::Value guard(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value condition, mlir::Type scalar,
                            EmitFn then, EmitFn otherwise) = 0;
  virtual mlir::Value toValue(mlir::OpBuilder &b, Index index) = 0;

  /// Arithmetic on positions.
  Index constant(int64_t value);
  Index add(mlir::OpBuilder &b, Index x, int64_t addend);
  Index add(mlir::OpBuilder &b, Index x, Index y);
  Index mul(mlir::OpBuilder &b, Index x, int64_t factor);
  /// Emits the test `tested` and low <= x < high. `tested` may be null.
  mlir::Value inRange(mlir::OpBuilder &b, mlir::Value tested, Index x,
                      int64_t low, int64_t high);
  /// The position out * stride + inner * dilation - low under a window. If the
  /// window can reach beyond the border, adds a test to `inside`.
  Index windowed(mlir::OpBuilder &b, Index out, Index inner,
                 const Window &window, mlir::Value &inside);
  /// The other way round: the position of the window that has x at `inner`.
  /// Adds to `inside` a test whether there is one. `window.size` counts
  /// windows.
  Index unwindowed(mlir::OpBuilder &b, Index x, Index inner,
                   const Window &window, mlir::Value &inside);
  /// An index that counts from the end if it is negative, clamped to the size.
  Index wrapped(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index,
                int64_t size);

private:
  mlir::MLIRContext *context;
};

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_EMIT_ELEMENTEMITTER_H
