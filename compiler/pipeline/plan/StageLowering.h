//===- StageLowering.h - A device's stages as values and work ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_STAGELOWERING_H
#define PARTITA_COMPILER_PIPELINE_PLAN_STAGELOWERING_H

#include "compiler/cost/CostModels.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace partita::pipeline {

/// A value of a device, with bytes of its own. Values that are reshapes of each
/// other are one value.
struct DeviceValue {
  mlir::RankedTensorType type;
  plan::Space space = plan::Space::arena;
  plan::Span span = plan::Span::micro_batch;
  mlir::FlatSymbolRefAttr weight; ///< if `space` is weight or state
  bool isLoaded = false;          ///< made by the load program
  bool isCarried = false;         ///< a state that each micro-batch writes
  bool isRenewed = false;         ///< a state with what was written
  int64_t lanes = 1;              ///< sums that it is, of which a micro-batch
                                  ///< sees one
  int sum = -1;                   ///< of which this is a lane
  int64_t lane = 0;
  llvm::SmallVector<int> members; ///< gradients that it joins
};

/// A lowered cluster, a `dist.shard`, a collective or a copy, on values of its
/// device.
struct DeviceWork {
  mlir::Operation *op = nullptr; ///< of a copy: what made the copied value
  bool isCopy = false;
  llvm::SmallVector<int> inputs, outputs;
  std::string label;
  int64_t flops = 0;
  int64_t bytes = 0;
  ClusterTime time; ///< predicted when stages were balanced
  /// A collective that adds up at once what others would: these, `op` among
  /// them.
  llvm::SmallVector<mlir::Operation *> joined;
};

struct LoweredStage {
  dist::StageOp op;
  int64_t device = 0;
  llvm::SmallVector<int> arguments, results; ///< values of the device
  std::vector<DeviceWork> work;
  /// By result: the state of which it is the new value; or null.
  llvm::SmallVector<mlir::FlatSymbolRefAttr> newStates;
  std::set<int64_t> sums; ///< results that are sums over micro-batches
  /// The work after which its values are sent. None: they are when it ends.
  std::optional<int> sentAfter;
  double ns = 0;
  int64_t flops = 0;
  int64_t parameterBytes = 0;
  int64_t activationBytes = 0;
};

struct LoweredDevice {
  std::vector<DeviceValue> values;
  std::vector<DeviceWork> load;
  std::vector<int> stages; ///< into the list of all stages, in its order
  /// The values that are lanes, by the sum and their number.
  std::map<std::pair<int, int64_t>, int> lanes;
};

/// Lowers dist.stage ops to values and work, device by device.
class StageLowering {
public:
  StageLowering(mlir::ModuleOp module, const CostModels &models)
      : module(module), symbols(module), models(models) {}

  /// Lowers one stage. Stages must come in a topological order. Fails, with a
  /// diagnostic, if an op is not in a cluster with a lowering.
  mlir::LogicalResult lower(dist::StageOp stage, int64_t device);

  std::vector<LoweredStage> stages;
  std::map<int64_t, LoweredDevice> devices;
  /// By device and source (`getSource` of a placed value or an input): the
  /// device's value that holds it.
  std::map<std::pair<int64_t, void *>, int> placed;

  /// The first placed value, or the input, that has the same bytes. Stages may
  /// pass a value on several times, and with several shapes.
  mlir::Value getSource(mlir::Value value) const;

private:
  int addValue(LoweredDevice &device, mlir::Value value);
  int addWeight(LoweredDevice &device, mlir::FlatSymbolRefAttr weight,
                mlir::Value value, plan::Space space = plan::Space::weight);
  int getLane(LoweredDevice &device, int sum, int64_t lane);
  void writeLanes(LoweredDevice &device, LoweredStage &stage);
  void writeUpon(LoweredDevice &device, LoweredStage &stage, mlir::Value made,
                 int &id, int place, bool isShared);
  /// `at`: the index that the copy has among the stage's work; the last if
  /// none.
  void copy(LoweredDevice &device, LoweredStage &stage, mlir::Value made,
            int from, int to, std::optional<int> at = {});
  mlir::FlatSymbolRefAttr addConstant(nn::ConstantOp constant);
  bool isInPlace(mlir::Operation *op);
  mlir::LogicalResult lowerWork(mlir::Operation *op, LoweredDevice &device,
                                LoweredStage &stage,
                                llvm::DenseMap<mlir::Value, int> &ids);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  const CostModels &models;
  analysis::Rates rates;
  llvm::DenseMap<mlir::Attribute, mlir::FlatSymbolRefAttr> constants;
  std::map<std::pair<int64_t, std::string>, int> weights;
  llvm::DenseMap<mlir::Value, mlir::Value> sources;
  int64_t current = 0; // device
};

/// The stage and its work after which a gradient is complete: a sum over
/// micro-batches, in one lane, or a value of the only micro-batch. Stage -1:
/// the value is none. Of gradients that are joined: where the last of them is.
std::pair<int, int> findComplete(const StageLowering &lowering,
                                 const LoweredDevice &device, int value);

/// Lets replicas add gradients up where they lie, if nobody else needs them,
/// and joins the all_reduces that an update has for them: those of a bucket
/// become one, whose slot has the gradients one after another. Nothing is
/// copied for it.
///
/// A bucket has gradients that are complete one after another, of one element
/// type, along the same axes. Nothing lies between them, so that no byte is
/// sent that is none of theirs: at most one has a size that is no multiple of
/// kAlignment. Numbers are alone. `dist.fusion_bytes` says how many bytes it
/// has at most; a larger gradient is alone. Without it, a bucket is as large as
/// makes the time that a collective needs to begin an eighth of its time: so
/// the first buckets can start early (Li et al., "PyTorch Distributed:
/// Experiences on Accelerating Data Parallel Training", 2020).
void formGradientBuckets(StageLowering &lowering, const CostModels &models);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_STAGELOWERING_H
