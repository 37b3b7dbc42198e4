//===- StageLowering.cpp - The stages of one device as values and work ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/StageLowering.h"

#include "compiler/model/Decision.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::pipeline {

Value StageLowering::getSource(Value value) const {
  while (auto transfer = value.getDefiningOp<dist::TransferOp>())
    value = transfer.getValue();
  Value source = sources.lookup(value);
  return source ? source : value;
}

int StageLowering::addValue(LoweredDevice &device, Value value) {
  device.values.push_back({.type = dist::getTensorType(value.getType())});
  return device.values.size() - 1;
}

int StageLowering::addWeight(LoweredDevice &device, FlatSymbolRefAttr weight,
                             Value value, plan::Space space) {
  auto [it, isNew] =
      weights.try_emplace({current, weight.getValue().str()},
                          static_cast<int>(device.values.size()));
  if (isNew) {
    addValue(device, value);
    device.values.back().space = space;
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
      StringAttr(), IntegerAttr(), IntegerAttr(), constant.getValue(),
      /*state=*/false, /*part=*/TypeAttr());
  symbols.insert(weight);
  weight.setOrigin(weight.getSymName());
  return symbol = FlatSymbolRefAttr::get(weight.getSymNameAttr());
}

namespace {

/// The states of which a placed value is the new value.
struct NewStates {
  explicit NewStates(Value placed) {
    for (OpOperand &use : placed.getUses()) {
      auto end = dyn_cast<func::ReturnOp>(use.getOwner());
      auto state = end ? cast<func::FuncOp>(end->getParentOp())
                             .getResultAttrOfType<FlatSymbolRefAttr>(
                                 use.getOperandNumber(), nn::kStateAttr)
                       : FlatSymbolRefAttr();
      if (state)
        states.push_back(state);
      else
        isRead = true;
    }
  }

  SmallVector<FlatSymbolRefAttr, 1> states;
  bool isRead = false; ///< it is something else besides
};

} // namespace

/// The accumulator of which a value is the zeros; null if it is of none.
static nn::AccumulatorOp findAccumulator(Value value) {
  auto cluster = value.getDefiningOp<nn::ClusterOp>();
  return cluster ? cluster.getBody()
                       .front()
                       .getTerminator()
                       ->getOperand(cast<OpResult>(value).getResultNumber())
                       .getDefiningOp<nn::AccumulatorOp>()
                 : nn::AccumulatorOp();
}

/// The price that stands on an op; none of what is copied and the like.
static ClusterTime getPrice(Operation *op) {
  ClusterTime time;
  if (auto price = op->getAttrOfType<DenseF64ArrayAttr>(kPriceAttr);
      price && price.size() == 2) {
    time.ns = price[0];
    time.modelledNs = price[1];
  }
  time.key = getInteger(op, kWorkKeyAttr, 0);
  return time;
}

/// Whether a collective may leave its result in the bytes of its operand, which
/// nothing else reads.
bool StageLowering::isInPlace(Operation *op) {
  return isa<dist::AllReduceOp>(op) && op->getOperand(0).hasOneUse() &&
         op->getOperand(0).getDefiningOp<nn::ClusterOp>() &&
         !rates.isLoad(op->getOperand(0));
}

LogicalResult StageLowering::lowerWork(Operation *op, LoweredDevice &device,
                                       LoweredStage &stage,
                                       llvm::DenseMap<Value, int> &ids) {
  DeviceWork work;
  work.op = op;
  work.label = nn::getNodeName(op);
  auto cluster = dyn_cast<nn::ClusterOp>(op);
  if (cluster && !cluster.getLoweringAttr())
    return op->emitError() << "'" << work.label
                           << "' has no lowering: run --lower-clusters before";
  const bool isLoad = rates.isLoad(op);
  for (Value operand : op->getOperands()) {
    const int id = ids.lookup(operand);
    work.inputs.push_back(id);
    work.bytes += nn::getByteSize(device.values[id].type);
  }
  for (Value result : op->getResults()) {
    int id = isInPlace(op) ? work.inputs[0] : addValue(device, result);
    ids[result] = id;
    device.values[id].isLoaded = isLoad;
    work.outputs.push_back(id);
    work.bytes += nn::getByteSize(device.values[id].type);
  }
  if (cluster) {
    SmallVector<Operation *> ops;
    for (Operation &part : cluster.getBody().front().without_terminator())
      ops.push_back(&part);
    work.flops = countFlops(ops);
  }
  if (isLoad) {
    device.load.push_back(std::move(work));
    return success();
  }
  for (int id : work.inputs)
    if (device.values[id].isLoaded)
      device.values[id].space = plan::Space::constant;
  work.time = getPrice(op);
  stage.ns += work.time.ns;
  stage.flops += work.flops;
  for (int id : work.outputs)
    stage.activationBytes += nn::getByteSize(device.values[id].type);
  stage.work.push_back(std::move(work));
  return success();
}

void StageLowering::copy(LoweredDevice &device, LoweredStage &stage, Value made,
                         int from, int to, std::optional<int> at) {
  DeviceWork work;
  work.op = made.getDefiningOp();
  work.isCopy = true;
  work.label = nn::getNodeName(made.getLoc());
  work.inputs = {from};
  work.outputs = {to};
  work.bytes = 2 * nn::getByteSize(device.values[to].type);
  const int index = at.value_or(static_cast<int>(stage.work.size()));
  stage.work.insert(stage.work.begin() + index, std::move(work));
}

/// Lets a result of the stage, which has the bytes `id`, be written into
/// `place` instead: where it is made, if nobody reads `place` afterwards and
/// the work may write what it reads; else by a copy, as soon as it is made and
/// `place` has been read. `isShared`: the stage has several such results. What
/// a micro-batch writes of a state that is carried, others may read there.
void StageLowering::writeUpon(LoweredDevice &device, LoweredStage &stage,
                              Value made, int &id, int place, bool isShared) {
  const int from = id;
  id = place;
  if (from == place)
    return;
  auto maker = llvm::find_if(stage.work, [&](const DeviceWork &work) {
    return llvm::is_contained(work.outputs, from);
  });
  auto cluster = maker == stage.work.end()
                     ? nn::ClusterOp()
                     : dyn_cast_or_null<nn::ClusterOp>(maker->op);
  // Others may read the value, and the value may be handed on twice.
  bool isOwn = cluster && !maker->isCopy && !isShared &&
               llvm::count(stage.results, from) == 0;
  SmallVector<int> readers;
  for (auto work = stage.work.begin(); work != stage.work.end(); ++work) {
    if (llvm::is_contained(work->inputs, from)) {
      readers.push_back(static_cast<int>(work - stage.work.begin()));
      isOwn &= device.values[place].isCarried && work > maker &&
               isa_and_nonnull<nn::ClusterOp>(work->op);
    }
    isOwn &= work <= maker || !llvm::is_contained(work->inputs, place);
    isOwn &= !llvm::is_contained(work->outputs, place);
  }
  if (isOwn) {
    const auto input = static_cast<unsigned>(llvm::find(maker->inputs, place) -
                                             maker->inputs.begin()),
               output = static_cast<unsigned>(llvm::find(maker->outputs, from) -
                                              maker->outputs.begin());
    const auto pairs = cluster.getLoweringAttr().getInPlacePairs();
    if (const auto reads = llvm::count(maker->inputs, place); reads > 0)
      isOwn = reads == 1 && llvm::is_contained(pairs, std::pair(input, output));
    // What a call adds upon is copied to its result first, so that would be
    // written twice.
    else if (cluster.getLoweringAttr().getClusterKind() ==
             nn::ClusterKind::call)
      isOwn = llvm::none_of(pairs,
                            [&](auto pair) { return pair.second == output; });
  }
  if (!isOwn) {
    int after = 0;
    for (auto [index, work] : llvm::enumerate(stage.work))
      if (llvm::is_contained(work.outputs, from) ||
          llvm::is_contained(work.inputs, place) ||
          llvm::is_contained(work.outputs, place))
        after = static_cast<int>(index) + 1;
    return copy(device, stage, made, from, place, after);
  }
  if (!readers.empty()) {
    place = static_cast<int>(device.values.size());
    device.values.push_back(device.values[id]);
    device.values.back().isRenewed = true;
  }
  llvm::replace(maker->outputs, from, place);
  for (int reader : readers)
    llvm::replace(stage.work[static_cast<size_t>(reader)].inputs, from, place);
}

/// The value that is a lane of a sum.
int StageLowering::getLane(LoweredDevice &device, int sum, int64_t lane) {
  auto [known, isNew] = device.lanes.try_emplace({sum, lane}, 0);
  if (isNew) {
    known->second = static_cast<int>(device.values.size());
    DeviceValue value = device.values[sum];
    value.lanes = 1;
    value.sum = sum;
    value.lane = lane;
    device.values.push_back(std::move(value));
  }
  return known->second;
}

/// What makes accumulators 0 does it for each of their lanes.
void StageLowering::writeLanes(LoweredDevice &device, LoweredStage &stage) {
  const size_t count = stage.work.size();
  for (size_t i = 0; i < count; ++i) {
    int64_t lanes = 1;
    for (int id : stage.work[i].outputs)
      if (device.values[id].span == plan::Span::sum)
        lanes = std::max(lanes, device.values[id].lanes);
    if (lanes == 1)
      continue;
    const DeviceWork work = stage.work[i];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const size_t index = lane == 0 ? i : stage.work.size();
      if (lane > 0)
        stage.work.push_back(work);
      for (auto [number, id] : llvm::enumerate(work.outputs)) {
        int made = id;
        if (device.values[id].lanes > 1) {
          made = getLane(device, id, lane);
        } else if (lane > 0) {
          // What else the work makes is made already.
          made = static_cast<int>(device.values.size());
          DeviceValue again = device.values[id];
          again.span = plan::Span::micro_batch;
          device.values.push_back(std::move(again));
        }
        stage.work[index].outputs[number] = made;
      }
    }
  }
}

LogicalResult StageLowering::lower(dist::StageOp op, int64_t number) {
  current = number;
  LoweredDevice &device = devices[number];
  LoweredStage stage;
  stage.op = op;
  stage.device = number;
  stage.ns = models.at(number).getUnitNs();
  Block &body = op.getBody().front();
  llvm::DenseMap<Value, int> ids;
  std::map<int, Value> sourceOf; // of what the stage has and others know
  for (auto [argument, input] :
       llvm::zip(body.getArguments(), op.getInputs())) {
    Value source = getSource(input);
    auto key = std::pair(number, source.getAsOpaquePointer());
    auto it = placed.find(key);
    if (it == placed.end()) {
      it = placed.emplace(key, addValue(device, source)).first;
      // What comes from another device's prologue lasts for the whole step.
      if (auto maker = source.getDefiningOp<dist::StageOp>();
          maker && maker.getPhase() == dist::Phase::prologue)
        device.values[it->second].span = plan::Span::step;
    }
    sourceOf.try_emplace(it->second, source);
    ids[argument] = it->second;
    stage.arguments.push_back(it->second);
  }
  std::set<int> parameters;
  for (Operation &part : body.without_terminator()) {
    if (auto parameter = dyn_cast<nn::ParameterOp>(part)) {
      int id = addWeight(device, parameter.getWeightAttr(), part.getResult(0),
                         parameter.getState() ? plan::Space::state
                                              : plan::Space::weight);
      ids[part.getResult(0)] = id;
      device.values[id].isCarried = part.hasAttr(nn::kCarriedAttr);
      // Of what is cut, a device has its part.
      if (!llvm::all_of(part.getUsers(), llvm::IsaPred<dist::ShardOp>) &&
          parameters.insert(id).second)
        stage.parameterBytes += nn::getByteSize(part.getResult(0).getType());
    } else if (auto constant = dyn_cast<nn::ConstantOp>(part)) {
      ids[constant.getResult()] =
          addWeight(device, addConstant(constant), constant.getResult());
    } else if (auto reshape = dyn_cast<nn::ReshapeOp>(part)) {
      ids[reshape.getResult()] = ids.lookup(reshape.getX());
    } else if (auto sum = dyn_cast<nn::SumMicroBatchesOp>(part)) {
      const int id = ids.lookup(sum.getX());
      ids[sum.getResult()] =
          sum.getLane() ? getLane(device, id, *sum.getLane()) : id;
    } else if (isa<nn::ClusterOp, dist::ShardOp, dist::CollectiveOpInterface>(
                   part)) {
      PARTITA_TRY(lowerWork(&part, device, stage, ids));
      if (isa<dist::ShardOp>(part) &&
          part.getOperand(0).getDefiningOp<nn::ParameterOp>())
        stage.parameterBytes += nn::getByteSize(part.getResult(0).getType());
    } else {
      return part.emitError() << "'" << nn::getNodeName(&part)
                              << "' is in no cluster: run --fuse-clusters and "
                                 "--form-clusters before";
    }
  }
  // What is summed up over micro-batches lies in its accumulator, and the new
  // value of a state in the state.
  llvm::DenseMap<int64_t, int> placeOf; // by result
  // Likewise, of results that are something else, too, or several states.
  std::map<int64_t, SmallVector<int>> copies;
  if (auto sums = op->getAttrOfType<DenseI64ArrayAttr>(dist::kSumsAttr))
    for (size_t i = 0; i + 1 < sums.asArrayRef().size(); i += 2) {
      placeOf[sums[i]] = stage.arguments[sums[i + 1]];
      stage.sums.insert(sums[i]);
    }
  for (auto [index, result] : llvm::enumerate(op.getOutputs())) {
    const NewStates news(result);
    stage.newStates.push_back(news.states.empty() || news.isRead
                                  ? FlatSymbolRefAttr()
                                  : news.states.front());
    for (FlatSymbolRefAttr state : news.states)
      copies[index].push_back(
          addWeight(device, state, result, plan::Space::state));
    // A value that is nothing but one state lies there.
    if (news.states.size() == 1 && !news.isRead)
      placeOf[index] = copies[index].pop_back_val();
  }
  // What others read of a state that this stage writes is copied before.
  llvm::DenseMap<int, int> olds;
  llvm::DenseMap<int, int> uses; // of values, as results
  for (auto [index, value] : llvm::enumerate(op.getYield().getValues())) {
    const int id = ids.lookup(value);
    ++uses[id];
    auto place = placeOf.find(index);
    if (!device.values[id].isCarried || olds.contains(id) ||
        (place != placeOf.end() && place->second == id))
      continue;
    const int old = olds[id] = addValue(device, value);
    copy(device, stage, value, id, old, 0);
  }
  for (auto [index, value, result] :
       llvm::enumerate(op.getYield().getValues(), op.getOutputs())) {
    int id = ids.lookup(value);
    if (auto place = placeOf.find(index);
        place == placeOf.end() || place->second != id)
      if (auto old = olds.find(id); old != olds.end())
        id = old->second;
    if (device.values[id].isLoaded)
      device.values[id].space = plan::Space::constant;
    if (auto place = placeOf.find(index); place != placeOf.end())
      writeUpon(device, stage, value, id, place->second,
                uses.lookup(ids.lookup(value)) > 1);
    for (int place : copies[index]) {
      int from = id;
      writeUpon(device, stage, value, from, place, /*isShared=*/true);
    }
    if (stage.newStates[index]) {
      // The update hands it to nobody: the next step reads the state.
      stage.results.push_back(id);
      continue;
    }
    // The unit that hands a sum on is the update's, not the one that makes it
    // 0. And no message reads a state.
    if ((device.values[id].span == plan::Span::sum &&
         op.getPhase() == dist::Phase::update) ||
        (device.values[id].space == plan::Space::state &&
         llvm::any_of(result.getUsers(), llvm::IsaPred<dist::TransferOp>))) {
      const int made = addValue(device, result);
      copy(device, stage, value, id, made);
      id = made;
    }
    if (device.values[id].space == plan::Space::arena &&
        device.values[id].span == plan::Span::micro_batch &&
        op.getPhase() == dist::Phase::prologue) {
      nn::AccumulatorOp accumulator = findAccumulator(value);
      device.values[id].span = accumulator ? plan::Span::sum : plan::Span::step;
      if (accumulator)
        device.values[id].lanes = accumulator.getLanes();
    }
    if (stage.sums.count(index)) {
      // The same bytes as before, but what comes later waits for this stage.
      placed[{number, result.getAsOpaquePointer()}] = id;
      stage.results.push_back(id);
      continue;
    }
    auto [it, isNew] = sourceOf.try_emplace(id, result);
    if (isNew)
      placed[{number, result.getAsOpaquePointer()}] = id;
    else
      sources[result] = it->second;
    stage.results.push_back(id);
  }
  if (op.getPhase() == dist::Phase::prologue)
    writeLanes(device, stage);
  device.stages.push_back(stages.size());
  stages.push_back(std::move(stage));
  return success();
}

} // namespace partita::pipeline
