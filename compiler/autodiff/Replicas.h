//===- Replicas.h - Differentiation across replicas -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model's function is the program of each replica (docs/replicas.md). There
// is one loss, that of the whole batch, and all replicas compute the same.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_REPLICAS_H
#define PARTITA_COMPILER_AUTODIFF_REPLICAS_H

#include "dialects/dist/DistDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseSet.h"

namespace partita::autodiff {

/// The values of which each replica has its own: those that depend on its
/// samples or its number. All others are the same on all replicas. Fails, with
/// an error, if devices meet along another axis.
mlir::FailureOr<llvm::DenseSet<mlir::Value>> findOwn(mlir::func::FuncOp model);

/// Adds up what the replicas have, in their order.
mlir::Value sumOverReplicas(mlir::ImplicitLocOpBuilder &builder,
                            mlir::Value value, const llvm::Twine &reason);

/// An output that consists of the samples of all replicas.
struct DealtOutput {
  mlir::Value own; ///< the samples of one replica
  int64_t dim;     ///< along which they stand one after another
  int64_t replicas;

  /// One replica's part of another tensor with the samples of all.
  mlir::Value takeOwn(mlir::ImplicitLocOpBuilder &builder, mlir::Value whole,
                      int64_t dim) const;
};

/// Looks through conversions, whose operand is converted instead.
std::optional<DealtOutput> findDealt(mlir::OpBuilder &builder,
                                     mlir::Value output);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_REPLICAS_H
