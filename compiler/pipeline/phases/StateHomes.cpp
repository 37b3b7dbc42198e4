//===- StateHomes.cpp - The device that has a state -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/phases/StateHomes.h"

#include "compiler/analysis/Rates.h"
#include "compiler/analysis/Recomputed.h"
#include "compiler/model/Decision.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/phases/Phases.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace partita::pipeline {

/// The state that a value is; null: it is none.
static nn::ParameterOp getState(Value value) {
  auto parameter = value.getDefiningOp<nn::ParameterOp>();
  return parameter && parameter.getState() ? parameter : nn::ParameterOp();
}

std::map<std::string, int64_t> findStateStages(func::FuncOp function) {
  std::map<std::string, int64_t> stages;
  Block &block = function.getBody().front();
  if (auto known = function->getAttrOfType<DictionaryAttr>(kStateStagesAttr))
    for (NamedAttribute state : known)
      stages[state.getName().str()] =
          cast<IntegerAttr>(state.getValue()).getInt();
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(
            result.getOperandNumber(), nn::kStateAttr))
      if (Operation *update = result.get().getDefiningOp();
          update && getStage(update) >= 0)
        stages.try_emplace(state.getValue().str(), getStage(update));
  for (Operation *op : getActiveOps(block))
    for (Value operand : op->getOperands())
      if (nn::ParameterOp state = getState(operand))
        stages.try_emplace(state.getWeight().str(), getStage(op));
  return stages;
}

std::vector<int> joinStates(func::FuncOp function,
                            const PartitionGraph &graph) {
  const auto count = static_cast<int>(graph.nodes.size());
  std::map<std::string, std::pair<int, int>> spans; // first and last cluster
  auto add = [&](StringRef state, int node) {
    auto [span, isNew] = spans.try_emplace(state.str(), node, node);
    span->second.first = std::min(span->second.first, node);
    span->second.second = std::max(span->second.second, node);
  };
  for (int node = 0; node < count; ++node)
    for (Operation *op : graph.nodes[static_cast<size_t>(node)].ops)
      for (Value operand : op->getOperands())
        if (nn::ParameterOp state = getState(operand);
            state && state->hasAttr(nn::kCarriedAttr))
          add(state.getWeight(), node);
  std::vector<std::pair<std::string, std::string>> exchanged;
  for (OpOperand &result :
       function.getBody().front().getTerminator()->getOpOperands()) {
    auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(
        result.getOperandNumber(), nn::kStateAttr);
    if (!state)
      continue;
    if (nn::ParameterOp source = getState(result.get()))
      exchanged.push_back({state.getValue().str(), source.getWeight().str()});
    else if (auto maker = graph.nodeOf.find(result.get().getDefiningOp());
             maker != graph.nodeOf.end())
      add(state.getValue(), maker->second);
  }
  // What another state has comes from that one's stage.
  for (size_t round = 0; round < exchanged.size(); ++round)
    for (const auto &[to, from] : exchanged)
      if (spans.count(to) && spans.count(from)) {
        auto &a = spans[to], &b = spans[from];
        a = b = {std::min(a.first, b.first), std::max(a.second, b.second)};
      }
  std::vector<int> first(static_cast<size_t>(count));
  bool any = false;
  for (int node = 0; node < count; ++node)
    first[static_cast<size_t>(node)] = node;
  for (const auto &[state, span] : spans)
    for (int node = span.first + 1; node <= span.second; ++node) {
      first[static_cast<size_t>(node)] =
          std::min(first[static_cast<size_t>(node)], span.first);
      any = true;
    }
  if (!any)
    return {};
  for (int &node : first)
    node = first[static_cast<size_t>(node)];
  return first;
}

/// New values that no op of a micro-batch makes come by way of one on the
/// state's stage: those that are the value of another state, an input, or known
/// when the model is loaded.
static void copyExchanged(func::FuncOp function,
                          std::map<std::string, int64_t> &stages) {
  llvm::StringSet<> carried;
  for (auto weight :
       function->getParentOfType<ModuleOp>().getOps<nn::WeightOp>())
    if (weight.isCarried())
      carried.insert(weight.getSymName());
  if (carried.empty())
    return;
  Block &block = function.getBody().front();
  const SmallVector<Operation *> list = getActiveOps(block);
  const llvm::DenseSet<Operation *> active(list.begin(), list.end());
  Operation *end = block.getTerminator();
  OpBuilder b(end);
  struct Copied {
    OpOperand &result;
    std::string target, source; ///< states; the second one may be none
  };
  SmallVector<Copied> copies;
  for (OpOperand &result : end->getOpOperands()) {
    auto target = function.getResultAttrOfType<FlatSymbolRefAttr>(
        result.getOperandNumber(), nn::kStateAttr);
    if (!target || !carried.contains(target.getValue()) ||
        active.contains(result.get().getDefiningOp()))
      continue;
    nn::ParameterOp source = getState(result.get());
    if (!source || source.getWeightAttr() != target)
      copies.push_back({result, target.getValue().str(),
                        source ? source.getWeight().str() : std::string()});
  }
  // A state that nobody reads or computes is where the other one is; those of
  // which that says nothing are on the first stage.
  auto follow = [&](const std::string &state, const std::string &other) {
    if (auto known = stages.find(other); known != stages.end())
      stages.try_emplace(state, known->second);
  };
  for (size_t round = 0; round < copies.size(); ++round)
    for (const Copied &copied : copies) {
      follow(copied.target, copied.source);
      if (!copied.source.empty())
        follow(copied.source, copied.target);
    }
  for (const Copied &each : copies) {
    OpOperand &result = each.result;
    const int64_t stage = stages.try_emplace(each.target, 0).first->second;
    if (!each.source.empty())
      stages.try_emplace(each.source, 0);
    auto type = nn::getTensorType(result.get());
    auto copied =
        nn::ReshapeOp::create(b, result.get().getLoc(), type, result.get());
    copied->setAttr(dist::kStageAttr, b.getI64IntegerAttr(stage));
    result.set(copied);
  }
}

LogicalResult handStatesOn(func::FuncOp function) {
  Block &block = function.getBody().front();
  const SmallVector<int64_t> devices = getDevices(function);
  std::map<std::string, int64_t> stages = findStateStages(function);
  copyExchanged(function, stages);
  const Phases phases(function);
  OpBuilder b(&block, block.begin());
  llvm::DenseMap<Attribute, Value> handed;
  for (Operation *op : getActiveOps(block))
    for (OpOperand &operand : op->getOpOperands()) {
      nn::ParameterOp state = getState(operand.get());
      if (!state)
        continue;
      const int64_t home = stages.at(state.getWeight().str());
      // The stage that writes what a micro-batch leaves hands its value on,
      // also to stages of the same device.
      const bool isCarried = state->hasAttr(nn::kCarriedAttr);
      if (isCarried ? home == getStage(op)
                    : devices[home] == devices[getStage(op)])
        continue;
      if (phases.get(op) == dist::Phase::update)
        return op->emitError()
               << "'" << nn::getNodeName(op) << "' updates something on device "
               << devices[getStage(op)] << " and reads '" << state.getWeight()
               << "', which is updated on device " << devices[home]
               << ": put the nodes that read it on one device, or freeze it "
                  "(--freeze)";
      Value &value = handed[state.getWeightAttr()];
      if (!value) {
        auto loc = NameLoc::get(b.getStringAttr(state.getWeight()));
        auto own = nn::ParameterOp::create(b, loc, state.getType(),
                                           state.getWeightAttr(),
                                           state.getStateAttr());
        if (isCarried)
          own->setAttr(nn::kCarriedAttr, b.getUnitAttr());
        auto hand = nn::ReshapeOp::create(b, loc, state.getType(), own);
        hand->setAttr(dist::kStageAttr, b.getI64IntegerAttr(home));
        value = hand;
      }
      operand.set(value);
    }
  return success();
}

llvm::DenseSet<Operation *> findGathered(func::FuncOp function) {
  llvm::DenseSet<Operation *> gathered;
  if (getInteger(function, dist::kZeroAttr, 0) < 3)
    return gathered;
  const SmallVector<Operation *> active =
      getActiveOps(function.getBody().front());
  analysis::Rates rates;
  llvm::DenseSet<Attribute> others; // clusters that make anything else
  for (size_t before = 1; before != others.size();) {
    before = others.size();
    gathered.clear();
    for (Operation *op : active) {
      const Attribute cluster = op->getAttr(nn::kClusterAttr);
      if (rates.getRate(op) == analysis::Rate::micro_batch &&
          isMemoryEffectFree(op) && !others.contains(cluster) &&
          llvm::all_of(op->getOperands(), [&](Value operand) {
            return rates.getRate(operand) <= analysis::Rate::step ||
                   gathered.contains(operand.getDefiningOp());
          }))
        gathered.insert(op);
      else if (cluster)
        others.insert(cluster);
    }
  }
  return gathered;
}

namespace {

/// Gives each unit its own ops that make what devices gather of states. Where
/// one unit has a forward and its backward, the last of the forward may be the
/// first of the backward: a classifier's weights, or a table that is one.
class Gatherer {
public:
  Gatherer(func::FuncOp function, int64_t turningStage)
      : block(function.getBody().front()), phases(function),
        gathered(findGathered(function)), turningStage(turningStage) {}

  void run() {
    SmallVector<Operation *> readers;
    for (Operation *op : getActiveOps(block)) {
      nextCluster = std::max(nextCluster, numberOf(op) + 1);
      if (!gathered.contains(op))
        readers.push_back(op);
    }
    for (Operation *op : readers)
      for (OpOperand &operand : op->getOpOperands())
        if (gathered.contains(operand.get().getDefiningOp())) {
          if (keyOf(op).first == turningStage)
            noteReader(op, operand.get().getDefiningOp());
          operand.set(make(operand.get(), keyOf(op), op));
        }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (gathered.contains(&op) && op.use_empty())
        op.erase();
  }

private:
  /// A stage, and whether it is for gradients.
  using Key = std::pair<int64_t, bool>;

  Key keyOf(Operation *op) const {
    return {getStage(op), op->hasAttr(analysis::kRecomputedAttr) ||
                              phases.get(op) == dist::Phase::backward};
  }

  /// Notes what the forward of the turning stage gathered last, and hands it to
  /// the backward, if that reads it before it gathers anything else.
  void noteReader(Operation *reader, Operation *op) {
    const Key key = keyOf(reader);
    if (copies.contains({op, key}))
      return;
    llvm::SmallDenseSet<Operation *> needed;
    collect(op, needed);
    if (key.second)
      for (Operation *part : needed)
        if (last.contains(part))
          copies[{part, key}] = copies.at({part, Key{key.first, false}});
    last.clear();
    if (!key.second)
      last = std::move(needed);
  }

  /// The op, and what is gathered for it.
  void collect(Operation *op, llvm::SmallDenseSet<Operation *> &ops) const {
    if (ops.insert(op).second)
      for (Value operand : op->getOperands())
        if (gathered.contains(operand.getDefiningOp()))
          collect(operand.getDefiningOp(), ops);
  }

  static int64_t numberOf(Operation *op) {
    auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr);
    return cluster ? cluster.getNumber() : -1;
  }

  /// The value as the unit `key` makes it, before its first reader.
  Value make(Value value, Key key, Operation *reader) {
    Operation *op = value.getDefiningOp();
    Operation *&made = copies[{op, key}];
    if (!made) {
      OpBuilder b(reader);
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(gathered.contains(operand.getDefiningOp())
                               ? make(operand, key, reader)
                               : operand);
      made = b.clone(*op);
      made->setOperands(operands);
      made->setAttr(dist::kStageAttr, b.getI64IntegerAttr(key.first));
      if (key.second)
        made->setAttr(analysis::kRecomputedAttr, b.getUnitAttr());
      if (auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr)) {
        auto [it, isNew] =
            numbers.try_emplace({cluster.getNumber(), key}, nextCluster);
        nextCluster += isNew;
        made->setAttr(nn::kClusterAttr,
                      nn::ClusterAttr::get(b.getContext(), it->second,
                                           cluster.getKind()));
      }
    }
    return made->getResult(cast<OpResult>(value).getResultNumber());
  }

  Block &block;
  const Phases phases;
  const llvm::DenseSet<Operation *> gathered;
  const int64_t turningStage;            ///< -1: none
  llvm::SmallDenseSet<Operation *> last; ///< for the last reader of forward
  std::map<std::pair<Operation *, Key>, Operation *> copies;
  std::map<std::pair<int64_t, Key>, int64_t> numbers; ///< of clusters
  int64_t nextCluster = 0;
};

} // namespace

void gatherAgain(func::FuncOp function, int64_t turningStage) {
  Gatherer(function, turningStage).run();
}

void repeatSums(func::FuncOp function) {
  SmallVector<nn::SumMicroBatchesOp> sums(
      function.getOps<nn::SumMicroBatchesOp>());
  for (nn::SumMicroBatchesOp sum : sums) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : sum.getResult().getUses())
      if (getStage(use.getOwner()) == getStage(sum))
        uses.push_back(&use);
    for (OpOperand *use : uses) {
      if (sum.getResult().hasOneUse())
        break;
      OpBuilder b(sum);
      use->set(b.clone(*sum)->getResult(0));
    }
  }
}

} // namespace partita::pipeline
