//===- Decision.h - Attributes of the partition's decision ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_DECISION_H
#define PARTITA_COMPILER_MODEL_DECISION_H

#include "compiler/schedule/Registry.h"
#include "dialects/dist/DistDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita {

/// On the function, besides the attributes of the dist dialect: the blocks of
/// each stage, an array of arrays of strings. Absent if no stages are named.
inline constexpr llvm::StringLiteral kStageBlocksAttr = "dist.stage_blocks";
/// On the function: the names of the blocks in their order, if no stages are
/// named.
inline constexpr llvm::StringLiteral kBlockOrderAttr = "dist.block_order";
/// On the function: how blocks become stages, `same_as_device` or
/// `auto_increment`.
inline constexpr llvm::StringLiteral kAutoStageAttr = "dist.auto_stage";
/// On the function: the number of devices. `dist.devices`, in contrast, has one
/// entry per stage.
inline constexpr llvm::StringLiteral kDeviceCountAttr = "dist.device_count";

/// On the function, if devices are of several kinds: the target of those at
/// each place along the axis "stage", an array of strings. `plan.target` says
/// it of stages and programs then, where it is not that of the module.
inline constexpr llvm::StringLiteral kTargetsAttr = "dist.targets";

/// On the module, if they are given: the machine file (partita-run --calibrate)
/// by which times are predicted, and the cores of a device.
inline constexpr llvm::StringLiteral kMachineAttr = "dist.machine";
inline constexpr llvm::StringLiteral kThreadsAttr = "dist.threads";

/// On the function: the number of stages into which the planner cuts the model.
inline constexpr llvm::StringLiteral kStageCountAttr = "dist.stage_count";

/// The number of the planner's last try to make stages fit the memory of a
/// device.
inline constexpr int kLastMemoryTry = 8;

/// On the function, if its schedule is a file: the text of the file, whose path
/// is the schedule's name (partition/ScheduleFile.h).
inline constexpr llvm::StringLiteral kOrdersAttr = "dist.orders";

/// On the function: the stages of states as another plan of the artifact has
/// them, a dictionary by the weights' symbols (phases/StateHomes.h).
inline constexpr llvm::StringLiteral kStateStagesAttr = "dist.state_stages";

/// On the function, and later on `plan.model`: bytes that a device has room
/// for.
inline constexpr llvm::StringLiteral kMemoryAttr = "dist.memory";

/// On the function, and later on `plan.model`, if something is computed again
/// for gradients: what that saves and costs in a micro-batch. `nodes`; `work`,
/// in percent of the rest; `kept` and `all`: bytes that are kept for gradients,
/// and those that would be without it.
inline constexpr llvm::StringLiteral kRecomputationAttr = "dist.recomputation";

/// On the function: what one device would take for the whole model, `[ns of a
/// micro-batch, ns of a step besides]`, predicted by its rates
/// (partition/AloneTime.h).
inline constexpr llvm::StringLiteral kAloneAttr = "dist.alone_ns";

/// On the first op of a cluster, and later on the cluster: its predicted time,
/// `[ns, ns by rates alone]`. If a machine was measured, `dist.work_key` is the
/// key of its work (ProcessorCosts.cpp).
inline constexpr llvm::StringLiteral kPriceAttr = "dist.price";
inline constexpr llvm::StringLiteral kWorkKeyAttr = "dist.work_key";

/// On the module, if it is an imported model: the names of all its nodes, in
/// the order in which they are computed, including those that folded away.
inline constexpr llvm::StringLiteral kNodesAttr = "nn.nodes";

/// On the module, if an exporter has said it: the scopes of those nodes
/// (dialects/nn/NodeScopes.h), empty where a node has none.
inline constexpr llvm::StringLiteral kNodeScopesAttr = "nn.node_scopes";

/// On the module, with --expose: for each of those nodes the name of its
/// output, empty if it has several.
inline constexpr llvm::StringLiteral kNodeOutputsAttr = "nn.node_outputs";

/// On the module, with --list-nodes: the ops of those nodes, as ONNX calls
/// them.
inline constexpr llvm::StringLiteral kNodeOpsAttr = "nn.node_ops";

/// On the module, before it is a plan: the dimensions for whose sizes an
/// artifact has several plans, with the sizes of this one, and the input that
/// is 0 where samples are padded to them. `plan.model` has them later.
inline constexpr llvm::StringLiteral kDimensionsAttr = "plan.dimensions";
inline constexpr llvm::StringLiteral kMaskAttr = "plan.mask";

/// On the function: how weights and inputs are cut, a dictionary of shardings
/// by their names.
inline constexpr llvm::StringLiteral kShardsAttr = "dist.shards";

inline int64_t getStage(mlir::Operation *op) {
  auto stage = op->getAttrOfType<mlir::IntegerAttr>(dist::kStageAttr);
  return stage ? stage.getInt() : -1;
}

inline llvm::StringRef getBlockName(mlir::Operation *op) {
  auto block = op->getAttrOfType<mlir::StringAttr>(dist::kBlockAttr);
  return block ? block.getValue() : llvm::StringRef();
}

inline int64_t getInteger(mlir::Operation *op, llvm::StringRef name,
                          int64_t otherwise) {
  auto value = op->getAttrOfType<mlir::IntegerAttr>(name);
  return value ? value.getInt() : otherwise;
}

inline llvm::StringRef getString(mlir::Operation *op, llvm::StringRef name,
                                 llvm::StringRef otherwise) {
  auto value = op->getAttrOfType<mlir::StringAttr>(name);
  return value ? value.getValue() : otherwise;
}

inline llvm::SmallVector<int64_t> getDevices(mlir::Operation *function) {
  auto devices =
      function->getAttrOfType<mlir::DenseI64ArrayAttr>(dist::kDevicesAttr);
  return devices ? llvm::SmallVector<int64_t>(devices.asArrayRef())
                 : llvm::SmallVector<int64_t>{};
}

/// The schedule that the function names, or the default one; `kFromFile`, if it
/// is a file. Null, after an error, if there is none of that name.
const schedule::ScheduleKind *getScheduleKind(mlir::Operation *function);

/// The schedule of a plan that evaluates what the function trains: the same,
/// or the default one, if that is for gradients or from a file.
std::string getEvaluationSchedule(mlir::Operation *function);

/// What a person names for the fastest schedule that fits. The driver finds it,
/// by making a plan of each.
inline constexpr llvm::StringLiteral kAutoSchedule = "auto";

/// The most that replicas can share of a training, and the level that a person
/// calls `auto`, for which the driver does the same.
inline constexpr int kMostZero = 3, kAutoZero = -2;

/// The text of an error about a name that a person cannot give a schedule.
std::string describeUnknownSchedule(llvm::StringRef name);

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_DECISION_H
