//===- StageLowering.cpp - The stages of one device as values and work ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/StageLowering.h"

#include "compiler/pipeline/ClusterGraph.h"
#include "compiler/pipeline/Decision.h"

using namespace mlir;

namespace partita::pipeline {

Value getOrigin(Value value) {
  while (auto transfer = value.getDefiningOp<dist::TransferOp>())
    value = transfer.getValue();
  return value;
}

Value StageLowering::getSource(Value value) const {
  Value origin = getOrigin(value);
  Value source = sources.lookup(origin);
  return source ? source : origin;
}

int StageLowering::addValue(LoweredDevice &device, Value value) {
  DeviceValue added;
  added.type = dist::getTensorType(value.getType());
  added.name = nn::getNodeName(value.getLoc());
  device.values.push_back(added);
  return device.values.size() - 1;
}

int StageLowering::addWeight(LoweredDevice &device, FlatSymbolRefAttr weight,
                             Value value) {
  auto [it, isNew] =
      weights.try_emplace({current, weight.getValue().str()},
                          static_cast<int>(device.values.size()));
  if (isNew) {
    addValue(device, value);
    device.values.back().space = plan::Space::weight;
    device.values.back().weight = weight;
  }
  return it->second;
}

FlatSymbolRefAttr StageLowering::addConstant(nn::ConstantOp constant) {
  FlatSymbolRefAttr &symbol = constants[constant.getValue()];
  if (symbol)
    return symbol;
  OpBuilder builder(module.getBody(), module.getBody()->begin());
  auto weight = nn::WeightOp::create(
      builder, constant.getLoc(), "constant", "", constant.getType(),
      StringAttr(), IntegerAttr(), IntegerAttr(), constant.getValue());
  weight->remove();
  symbols.insert(weight, module.getBody()->begin());
  weight.setOrigin(weight.getSymName());
  return symbol = FlatSymbolRefAttr::get(weight.getSymNameAttr());
}

LogicalResult StageLowering::lowerCluster(nn::ClusterOp cluster,
                                          LoweredDevice &device,
                                          LoweredStage &stage,
                                          llvm::DenseMap<Value, int> &ids) {
  Attribute lowering = cluster.getLoweringAttr();
  DeviceWork work;
  work.cluster = cluster;
  work.label = nn::getNodeName(cluster);
  if (!isa_and_nonnull<plan::KernelAttr, plan::CallAttr>(lowering))
    return cluster.emitError() << "'" << work.label
                               << "' has no lowering: run --lower-clusters "
                                  "before";
  bool isLoad = true;
  for (Value operand : cluster.getOperands()) {
    int id = ids.lookup(operand);
    work.inputs.push_back(id);
    const DeviceValue &value = device.values[id];
    isLoad &= value.isLoaded || value.space == plan::Space::weight;
    work.bytes += nn::getByteSize(value.type);
  }
  for (Value result : cluster.getResults()) {
    int id = addValue(device, result);
    ids[result] = id;
    device.values[id].isLoaded = isLoad;
    work.outputs.push_back(id);
    work.bytes += nn::getByteSize(device.values[id].type);
  }
  SmallVector<Operation *> ops;
  for (Operation &op : cluster.getBody().front().without_terminator())
    ops.push_back(&op);
  work.flops = countFlops(ops);
  if (isLoad) {
    device.load.push_back(std::move(work));
    return success();
  }
  for (int id : work.inputs)
    if (device.values[id].isLoaded)
      device.values[id].space = plan::Space::constant;
  stage.flops += work.flops;
  for (int id : work.outputs)
    stage.activationBytes += nn::getByteSize(device.values[id].type);
  int index = stage.work.size();
  for (int id : work.outputs) {
    stage.firstWrite.try_emplace(id, index);
    stage.lastUse[id] = index;
  }
  for (int id : work.inputs)
    stage.lastUse[id] = index;
  stage.work.push_back(std::move(work));
  return success();
}

void StageLowering::price(func::FuncOp function) {
  step.weightBytes = getWeightBytes(function);
  llvm::DenseSet<Value> sources;
  for (Value output :
       function.getBody().front().getTerminator()->getOperands()) {
    sources.insert(getSource(output));
    step.outputBytes += nn::getByteSize(dist::getTensorType(output.getType()));
  }
  step.outputBytes *= getInteger(function, dist::kMicroBatchesAttr, 1);
  OutputIds outputs;
  for (LoweredStage &stage : stages)
    for (auto [result, id] : llvm::zip(stage.op.getOutputs(), stage.results))
      if (sources.contains(getSource(result)))
        outputs.emplace(stage.device, id);
  for (LoweredStage &stage : stages)
    for (const DeviceWork &work : stage.work)
      step.mostBytes =
          std::max(step.mostBytes,
                   work.bytes - countOutputBytes(work, stage.device, outputs));
  // How long work takes depends on how much all of it waits for memory.
  priceAll(outputs);
  priceAll(outputs);
}

int64_t StageLowering::countOutputBytes(const DeviceWork &work, int64_t device,
                                        const OutputIds &outputs) const {
  int64_t bytes = 0;
  for (int id : work.outputs)
    if (outputs.count({device, id}))
      bytes += nn::getByteSize(devices.at(device).values[id].type);
  return bytes;
}

void StageLowering::priceAll(const OutputIds &outputs) {
  ClusterTime total;
  for (LoweredStage &stage : stages) {
    LoweredDevice &device = devices[stage.device];
    stage.ns = machine.getUnitNs();
    for (DeviceWork &work : stage.work) {
      SmallVector<Operation *> ops;
      for (Operation &op : work.cluster.getBody().front().without_terminator())
        ops.push_back(&op);
      auto isConstant = [&](Value value) {
        auto argument = dyn_cast<BlockArgument>(value);
        return argument &&
               device.values[work.inputs[argument.getArgNumber()]].space !=
                   plan::Space::arena;
      };
      work.time = machine.getClusterTime(
          {ops, work.bytes, countOutputBytes(work, stage.device, outputs),
           isConstant},
          step);
      const ClusterTime &time = work.time;
      stage.ns += time.ns;
      total.ratedNs += time.ratedNs;
      total.memoryNs += time.memoryNs;
    }
  }
  step.memoryShare = total.ratedNs > 0 ? total.memoryNs / total.ratedNs : 0;
}

LogicalResult StageLowering::lower(dist::StageOp op, int64_t number) {
  current = number;
  LoweredDevice &device = devices[number];
  LoweredStage stage;
  stage.op = op;
  stage.device = number;
  Block &body = op.getBody().front();
  llvm::DenseMap<Value, int> ids;
  std::map<int, Value> sourceOf; // of what the stage has and others know
  for (auto [argument, input] :
       llvm::zip(body.getArguments(), op.getInputs())) {
    Value source = getSource(input);
    auto key = std::pair(number, source.getAsOpaquePointer());
    auto it = placed.find(key);
    if (it == placed.end())
      it = placed.emplace(key, addValue(device, source)).first;
    sourceOf.try_emplace(it->second, source);
    ids[argument] = it->second;
    stage.arguments.push_back(it->second);
  }
  std::set<int> parameters;
  for (Operation &part : body.without_terminator()) {
    if (auto parameter = dyn_cast<nn::ParameterOp>(part)) {
      int id = addWeight(device, parameter.getWeightAttr(), part.getResult(0));
      ids[part.getResult(0)] = id;
      if (parameters.insert(id).second)
        stage.parameterBytes += nn::getByteSize(part.getResult(0).getType());
    } else if (auto constant = dyn_cast<nn::ConstantOp>(part)) {
      ids[constant.getResult()] =
          addWeight(device, addConstant(constant), constant.getResult());
    } else if (auto reshape = dyn_cast<nn::ReshapeOp>(part)) {
      ids[reshape.getResult()] = ids.lookup(reshape.getX());
    } else if (auto cluster = dyn_cast<nn::ClusterOp>(part)) {
      if (failed(lowerCluster(cluster, device, stage, ids)))
        return failure();
    } else {
      return part.emitError() << "'" << nn::getNodeName(&part)
                              << "' is in no cluster: run --fuse-clusters and "
                                 "--form-clusters before";
    }
  }
  for (auto [value, result] :
       llvm::zip(op.getYield().getValues(), op.getOutputs())) {
    int id = ids.lookup(value);
    if (device.values[id].isLoaded)
      device.values[id].space = plan::Space::constant;
    auto [it, isNew] = sourceOf.try_emplace(id, result);
    if (isNew)
      placed[{number, result.getAsOpaquePointer()}] = id;
    else
      sources[result] = it->second;
    stage.results.push_back(id);
  }
  device.stages.push_back(stages.size());
  stages.push_back(std::move(stage));
  return success();
}

} // namespace partita::pipeline
