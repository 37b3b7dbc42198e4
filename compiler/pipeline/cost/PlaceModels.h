//===- PlaceModels.h - Predicted times of each device -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_COST_PLACEMODELS_H
#define PARTITA_COMPILER_PIPELINE_COST_PLACEMODELS_H

#include "compiler/pipeline/cost/MachineModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace partita::pipeline {

/// The target of the devices at a place along the axis "stage": as
/// `dist.targets` of the model's function says, else that of the module.
llvm::StringRef getTargetAt(mlir::func::FuncOp function, int64_t place);

/// The machine models of a model's function. Devices at one place are of one
/// target; those at different places may be of different ones.
class PlaceModels {
public:
  /// See MachineModel::load. Fails with a diagnostic.
  static mlir::FailureOr<PlaceModels>
  load(mlir::func::FuncOp function, llvm::StringRef path, int64_t threads);

  /// The models of the different targets, in the order of their first places.
  llvm::ArrayRef<MachineModel> getAll() const { return models; }
  /// Which of them that of a place is. Places beyond the last that has a target
  /// of its own are like that one.
  size_t getIndex(int64_t place) const;
  const MachineModel &at(int64_t place) const {
    return models[getIndex(place)];
  }

  /// The time to bring a value from a device at one place to one at another.
  double getTransferNs(int64_t from, int64_t to, int64_t bytes) const {
    return at(from).getTransferNs(bytes, at(to));
  }

  /// For people, e.g. "an H100 80GB SXM and AMD EPYC"; empty: a processor in
  /// general.
  std::string getName() const;
  /// As MachineModel's, of the cores among the devices.
  int64_t getThreads() const;
  /// As MachineModel's; empty if there are several models.
  llvm::StringRef getId() const;

private:
  std::vector<MachineModel> models;
  llvm::SmallVector<size_t> indices; ///< by place; never empty
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_COST_PLACEMODELS_H
