//===- Cotangents.h - What has been added up so far -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_COTANGENTS_H
#define PARTITA_COMPILER_AUTODIFF_COTANGENTS_H

#include "dialects/nn/NNDialect.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <array>

namespace partita::autodiff {

/// A cotangent of a value, or a part of it; none if `value` is null.
struct Cotangent {
  mlir::Value value;
  /// Of a value that is the same on all replicas: each has a share, and the
  /// cotangent is their sum (dist::DifferentiableOpInterface).
  bool isShare = false;
};

/// Adds up the parts that the uses of values give. Shares of replicas are added
/// up as late as possible: a sum between devices is dear, and all that follows
/// is linear.
class Cotangents {
public:
  explicit Cotangents(mlir::ImplicitLocOpBuilder &builder) : b(builder) {}

  /// Parts that are products, as the steps of a recurrent layer give them to
  /// its weights, are added up when the value's is taken: see `joinProducts`.
  void add(mlir::Value value, Cotangent part);

  /// Adds the cotangent of a slice of a value. Those that lie side by side are
  /// put together when the value's is taken: one tensor of the value's size for
  /// each of them would be too much for the steps of a recurrent layer. False
  /// if the slice has elements that are no neighbours.
  bool addSlice(nn::SliceOp slice, Cotangent part);

  /// The cotangent of a value whose uses are all done.
  Cotangent take(mlir::Value value);

  /// The same, whole. `what`: for whoever wonders why replicas add up.
  Cotangent makeWhole(Cotangent cotangent, const llvm::Twine &what);

  /// That of several values of which one is a copy of the other, whole.
  mlir::Value takeWhole(llvm::ArrayRef<mlir::Value> copies,
                        const llvm::Twine &what);

private:
  struct Sum {
    mlir::Value whole, shares;
  };
  struct Part {
    nn::SliceOp slice;
    mlir::Value cotangent; ///< of its result
  };

  void addTo(mlir::Value &sum, mlir::Value part);
  void addSum(mlir::Value value, Cotangent part);
  void addProducts(mlir::Value value, llvm::ArrayRef<mlir::Value> parts,
                   bool areShares);
  mlir::Value joinProducts(llvm::ArrayRef<mlir::Value> parts);
  mlir::Value stack(llvm::ArrayRef<mlir::Value> values);
  void join(mlir::Value value, llvm::SmallVector<Part> parts, bool areShares);
  Sum takeSum(mlir::Value value);
  mlir::Value makeWhole(Sum sum, const llvm::Twine &what);

  mlir::ImplicitLocOpBuilder &b;
  llvm::DenseMap<mlir::Value, Sum> sums;
  /// Of values, to be joined: what is whole, and shares.
  llvm::DenseMap<mlir::Value, std::array<llvm::SmallVector<mlir::Value>, 2>>
      products;
  llvm::DenseMap<mlir::Value, std::array<llvm::SmallVector<Part>, 2>> slices;
};

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_COTANGENTS_H
