//===- CostModels.h - Predicted times of each device ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_COST_COSTMODELS_H
#define PARTITA_COMPILER_COST_COSTMODELS_H

#include "compiler/cost/CostModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace partita {

/// The target of the devices at a place along the axis "stage": as
/// `dist.targets` of the model's function says, else that of the module.
llvm::StringRef getTargetAt(mlir::func::FuncOp function, int64_t place);

/// The cost models of the devices of a model's function. Devices at one place
/// are of one target; those at different places may be of different ones.
class CostModels {
public:
  /// Those of the function's mesh and targets, by the machine file and the
  /// cores of a device that the module names. They are made once, and belong to
  /// the context. Fails with a diagnostic.
  static mlir::FailureOr<const CostModels *> get(mlir::func::FuncOp function);
  /// Those of a device of each target with as many cores and nobody beside it.
  static mlir::FailureOr<const CostModels *>
  getAlone(mlir::func::FuncOp function);

  /// The models of the different targets, in the order of their first places.
  llvm::ArrayRef<std::unique_ptr<const CostModel>> getAll() const {
    return models;
  }
  /// Which of them that of a place is. Places beyond the last that has a target
  /// of its own are like that one.
  size_t getIndex(int64_t place) const;
  const CostModel &at(int64_t place) const { return *models[getIndex(place)]; }

  /// The time to bring a value from a device at one place to one at another.
  double getTransferNs(int64_t from, int64_t to, int64_t bytes) const {
    return at(from).getTransferNs(bytes, at(to));
  }

  /// For people, e.g. "an H100 80GB SXM and AMD EPYC"; empty: a processor in
  /// general.
  std::string getName() const;
  /// As CostModel's, of the cores among the devices.
  int64_t getThreads() const;
  /// As CostModel's; empty if there are several models.
  llvm::StringRef getId() const;

private:
  static mlir::FailureOr<const CostModels *>
  make(mlir::func::FuncOp function, int64_t devices, int64_t threads);

  std::vector<std::unique_ptr<const CostModel>> models;
  llvm::SmallVector<size_t> indices; ///< by place; never empty
};

} // namespace partita

#endif // PARTITA_COMPILER_COST_COSTMODELS_H
