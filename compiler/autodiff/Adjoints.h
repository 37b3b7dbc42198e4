//===- Adjoints.h - Reverse mode over the ops of a block --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In reverse order, each op gives its operands their parts of the cotangent of
// its result:
//
//   %y = nn.mul %x, %w      cotangent of %y: %d
//   ...
//   %p = nn.mul %d, %w      a part of the cotangent of %x
//   %q = nn.mul %d, %x      and of %w
//
// With replicas that share a batch, a value that depends on the samples is each
// replica's own. What it gives to a value that is the same on all, such as a
// parameter, is a share of that value's cotangent.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_ADJOINTS_H
#define PARTITA_COMPILER_AUTODIFF_ADJOINTS_H

#include "compiler/autodiff/Cotangents.h"
#include "dialects/dist/DistDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>

namespace partita::autodiff {

class Adjoints {
public:
  /// Derivatives are built with `b`. Of the active values (Activity.h), those
  /// that are computed from no other are what is differentiated: their
  /// cotangents are kept.
  Adjoints(mlir::ImplicitLocOpBuilder &b,
           llvm::DenseMap<mlir::Value, mlir::Value> active)
      : b(b), active(std::move(active)), cotangents(b) {}

  /// The values that are each replica's own. Without this, what crosses
  /// replicas has no derivative.
  void setOwn(llvm::DenseSet<mlir::Value> values) { own = std::move(values); }

  /// From now on, locations say what is a derivative, and of which node's
  /// result a cotangent is (dialects/nn/grad/AdjointLoc.h).
  void markLocations() { marks = true; }

  bool isActive(mlir::Value value) const { return active.contains(value); }

  /// Adds a part to the cotangent of a value.
  void add(mlir::Value value, mlir::Value part) {
    cotangents.add(value, {part});
  }

  /// Goes through the ops of the block that stand before `end`, the last one
  /// first. Returns one on the way that has no derivative, or null.
  mlir::Operation *run(mlir::Operation *end);

  /// The cotangent of a value whose readers are all done, or of several of
  /// which one is a copy of the other; null if it has none. `what`: see
  /// Cotangents::makeWhole.
  mlir::Value take(llvm::ArrayRef<mlir::Value> copies,
                   const llvm::Twine &what) {
    return cotangents.takeWhole(copies, what);
  }

  /// How an op depends on what is differentiated.
  struct Path {
    mlir::Value from;
    std::string nodes; ///< "conv1 -> ... -> pool -> "
  };
  Path getPath(mlir::Operation *op) const;

private:
  void mark(mlir::Value cotangent, mlir::Operation *op);
  llvm::LogicalResult differentiate(mlir::Operation *op);
  llvm::LogicalResult differentiate(dist::DifferentiableOpInterface op,
                                    Cotangent cotangent);
  bool isOwn(mlir::Value value) const { return own && own->contains(value); }

  mlir::ImplicitLocOpBuilder &b;
  llvm::DenseMap<mlir::Value, mlir::Value> active;
  std::optional<llvm::DenseSet<mlir::Value>> own;
  Cotangents cotangents;
  bool marks = false;
};

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_ADJOINTS_H
