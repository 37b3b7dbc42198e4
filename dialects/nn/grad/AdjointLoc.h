//===- AdjointLoc.h - Where derivatives come from ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of a derivative have the location of the op that they differentiate.
// Where tensors are to be compared (--expose), the location says in addition
// that it is a derivative's, and of which nodes the op's result is the
// cotangent: what the loss grows by for each element of their tensor. It is in
// the metadata of a fused location, so that it survives rewrites as the nodes'
// names do:
//
//   fused<["conv1"]>["relu1"]   made by relu1's derivative, for conv1's result
//   fused<[]>["relu1"]          of relu1's derivative, too, and inside of it
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_GRAD_ADJOINTLOC_H
#define PARTITA_DIALECTS_NN_GRAD_ADJOINTLOC_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace partita::nn {

/// The location of a derivative of an op with this location.
mlir::Location makeAdjointLoc(mlir::Location loc);

/// The location of a derivative, whose result is the cotangent of one more
/// node's result.
mlir::Location addCotangent(mlir::Location adjoint, mlir::StringAttr node);

/// What an op finishes: the last of what it computes.
struct LastNode {
  mlir::StringAttr name; ///< null if the location names no node
  /// The nodes whose cotangent the op makes. Null if it is no derivative.
  mlir::ArrayAttr cotangents;
};
LastNode getLastNode(mlir::Location loc);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_GRAD_ADJOINTLOC_H
