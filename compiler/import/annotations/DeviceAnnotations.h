//===- DeviceAnnotations.h - What the nodes say of devices ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model names configurations (`ModelProto.configuration`), each a number of
// devices. Under a configuration, a node may name its pipeline stage, and how
// tensors that it reads or makes lie on devices
// (`NodeProto.device_configurations`). This checks all of that which does not
// depend on other nodes.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_ANNOTATIONS_DEVICEANNOTATIONS_H
#define PARTITA_COMPILER_IMPORT_ANNOTATIONS_DEVICEANNOTATIONS_H

#include "compiler/import/graph/Import.h"
#include "compiler/import/graph/ModelValue.h"

#include "dialects/dist/Annotations.h"

#include "onnx/onnx_pb.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace partita::import {

class DeviceAnnotations {
public:
  /// Chooses the configuration that the options name, or the only one. Emits an
  /// error if there is none of that name, or if there are several and none is
  /// named.
  static mlir::FailureOr<DeviceAnnotations>
  choose(const onnx::ModelProto &model, const ImportOptions &options,
         mlir::Location loc);

  /// The pipeline stage that a node names, if it names one.
  mlir::FailureOr<std::optional<int64_t>> getStage(const onnx::NodeProto &node,
                                                   mlir::Location loc) const;

  /// How the node's tensors lie on devices. `lookup` gives the value of a
  /// tensor that the node reads or makes; none if the node's output has none.
  mlir::FailureOr<std::vector<dist::TensorAnnotation>>
  getTensors(const onnx::NodeProto &node, mlir::Location loc,
             llvm::function_ref<ModelValue(llvm::StringRef)> lookup) const;

  /// The chosen configuration; null if the model has none, or if something else
  /// says how it is split.
  const onnx::DeviceConfigurationProto *getConfiguration() const {
    return chosen;
  }

private:
  mlir::FailureOr<const onnx::NodeDeviceConfigurationProto *>
  find(const onnx::NodeProto &node, mlir::Location loc) const;
  llvm::LogicalResult readDevices(const onnx::ShardingSpecProto &spec,
                                  mlir::Location loc,
                                  dist::TensorAnnotation &tensor) const;
  std::string listConfigurations() const;

  const onnx::ModelProto *model = nullptr;
  const onnx::DeviceConfigurationProto *chosen = nullptr;
  bool ignored = false; ///< something else says how the model is split
};

/// What of the IR a value is; its name and shape. Nothing is said of devices.
dist::TensorAnnotation describeTensor(llvm::StringRef name, mlir::Value value);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_ANNOTATIONS_DEVICEANNOTATIONS_H
