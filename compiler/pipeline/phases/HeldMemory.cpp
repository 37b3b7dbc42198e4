//===- HeldMemory.cpp - What clusters hold on their device ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each node is computed by a unit of its stage. Which one that is, is known
// before stages are: backward is what depends on clusters later in the chain,
// and other stages wait for what clusters before it read.
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/phases/HeldMemory.h"

#include "compiler/codegen/Backend.h"
#include "compiler/model/Decision.h"
#include "compiler/pipeline/phases/StateHomes.h"
#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace mlir;

namespace partita::pipeline {
namespace {

class HeldMemoryEstimator {
public:
  HeldMemoryEstimator(const PartitionGraph &graph, const Phases &phases,
                      const std::vector<int> &placeOf, bool isSplit)
      : graph(graph), phases(phases), placeOf(placeOf), isSplit(isSplit),
        gathered(findGathered(graph.function)) {
    const int count =
        placeOf.empty() ? 0
                        : 1 + *std::max_element(placeOf.begin(), placeOf.end());
    memory.parameters.resize(count);
    memory.lastingOf.resize(count);
    memory.liveBytes.assign(count, 0);
    func::FuncOp function = graph.function;
    microBatches = getInteger(function, dist::kMicroBatchesAttr, 1);
    sequences = getInteger(function->getParentOp(), dist::kSequencesAttr, 1);
    if (codegen::allBackends(function, [](const codegen::Backend &backend) {
          return backend.reachesHost();
        }))
      for (auto weight :
           function->getParentOfType<ModuleOp>().getOps<nn::WeightOp>())
        if (weight->hasAttr(nn::kOnHostAttr))
          onHost.insert(weight.getSymName());
  }

  BalanceMemory estimate(const schedule::HeldMicroBatches &held) {
    memory.copies = {held.untilValues, held.untilWeights,
                     held.betweenGradients};
    findUnits();
    addParameters();
    for (const auto &[root, each] : collectExchanged())
      add(each);
    addAlive();
    return std::move(memory);
  }

private:
  /// Units of a stage, in their order.
  enum class Unit { prologue, forward, backward, weights, update };

  /// Spans of BalanceMemory.
  enum Span { untilValues, untilWeights, betweenGradients };

  /// What clusters exchange, reshaped or not.
  struct Exchanged {
    int producer = -1; ///< -1: an input
    std::set<int> consumers;
    int64_t bytes = 0;
  };

  //===--------------------------------------------------------------------===//
  // Units
  //===--------------------------------------------------------------------===//

  void findUnits() {
    const int count = static_cast<int>(graph.nodes.size());
    std::vector<std::vector<int>> readers(count), read(count);
    for (const ClusterValue &value : graph.values)
      if (value.producer >= 0)
        for (int consumer : value.consumers) {
          readers[value.producer].push_back(consumer);
          read[consumer].push_back(value.producer);
        }
    for (int n = 0; n < count; ++n) // in topological order
      unitOf.push_back(getUnit(n, read[n]));
    for (int n = count; isSplit && n-- > 0;)
      if (unitOf[n] == Unit::backward &&
          llvm::none_of(readers[n], [&](int reader) {
            return unitOf[reader] == Unit::backward ||
                   (placeOf[reader] < placeOf[n] && isOfMicroBatch(reader));
          }))
        unitOf[n] = Unit::weights;
  }

  Unit getUnit(int node, ArrayRef<int> read) const {
    const dist::Phase phase = phases.get(graph.nodes[node].ops.front());
    if (phase == dist::Phase::prologue)
      return Unit::prologue;
    if (phase == dist::Phase::update)
      return Unit::update;
    const bool comesBack =
        phase == dist::Phase::backward && llvm::any_of(read, [&](int from) {
          return unitOf[from] == Unit::backward ||
                 (isOfMicroBatch(from) && placeOf[from] > placeOf[node]);
        });
    return comesBack ? Unit::backward : Unit::forward;
  }

  bool isOfMicroBatch(int node) const {
    return unitOf[node] != Unit::prologue && unitOf[node] != Unit::update;
  }

  //===--------------------------------------------------------------------===//
  // What is there for all micro-batches
  //===--------------------------------------------------------------------===//

  void addParameters() {
    std::map<const void *, int> known;
    for (auto [index, node] : llvm::enumerate(graph.nodes))
      for (Operation *op : node.ops)
        for (Value operand : op->getOperands())
          if (std::optional<Value> parameter = getParameter(operand, node)) {
            auto named = parameter->getDefiningOp<nn::ParameterOp>();
            if (named && onHost.contains(named.getWeight()))
              continue;
            auto [it, isNew] = known.try_emplace(getKey(*parameter), -1);
            // Each micro-batch has what it carries, for each sequence.
            const int64_t copies = named && named->hasAttr(nn::kCarriedAttr)
                                       ? microBatches * sequences
                                       : 1;
            if (isNew)
              it->second =
                  makeHeld(copies * nn::getByteSize(parameter->getType()));
            hold(it->second, static_cast<int>(index));
          }
  }

  /// A weight may be named by several ops.
  static const void *getKey(Value parameter) {
    if (auto named = parameter.getDefiningOp<nn::ParameterOp>())
      return named.getWeightAttr().getAsOpaquePointer();
    return parameter.getAsOpaquePointer();
  }

  /// Whether each reader repeats it rather than that anybody holds it.
  static bool isFree(Operation *op) {
    auto costed = dyn_cast<nn::CostOpInterface>(op);
    return costed && costed.getCost().free;
  }

  /// What is held of an operand that does not depend on the inputs: itself, or
  /// what it repeats or is a view of.
  std::optional<Value> getParameter(Value value,
                                    const ClusterNode &reader) const {
    Operation *op = value.getDefiningOp();
    if (!op || graph.nodeOf.count(op))
      return std::nullopt;
    while (op && op->getNumOperands() == 1 &&
           (isFree(op) || nn::getByteSize(op->getOperand(0).getType()) ==
                              nn::getByteSize(value.getType()))) {
      value = op->getOperand(0);
      op = value.getDefiningOp();
    }
    // A kernel has constants in its code.
    if (isa_and_nonnull<nn::ConstantOp>(op) &&
        reader.kind == nn::ClusterKind::kernel)
      return std::nullopt;
    return value;
  }

  int makeHeld(int64_t bytes) {
    memory.parameterBytes.push_back(bytes);
    return static_cast<int>(memory.parameterBytes.size()) - 1;
  }

  void hold(int what, int node) {
    auto &list = memory.parameters[placeOf[node]];
    if (!llvm::is_contained(list, what))
      list.push_back(what);
  }

  //===--------------------------------------------------------------------===//
  // What clusters exchange
  //===--------------------------------------------------------------------===//

  /// What has the same bytes.
  static Value getRoot(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (auto sum = dyn_cast<nn::SumMicroBatchesOp>(op))
        value = sum.getX();
      else if (isa<nn::ReshapeOp>(op))
        value = op->getOperand(0);
      else
        break;
    }
    return value;
  }

  llvm::MapVector<Value, Exchanged> collectExchanged() const {
    llvm::MapVector<Value, Exchanged> all;
    for (const ClusterValue &value : graph.values) {
      const Value root = getRoot(value.value);
      Exchanged &each = all[root];
      each.producer = producerOf(root);
      each.bytes = nn::getByteSize(root.getType());
      each.consumers.insert(value.consumers.begin(), value.consumers.end());
    }
    return all;
  }

  int producerOf(Value value) const {
    auto it = graph.nodeOf.find(value.getDefiningOp());
    return it == graph.nodeOf.end() ? -1 : it->second;
  }

  /// The sums that an accumulator is; 0: the node is none.
  int64_t countLanes(int node) const {
    auto accumulator =
        dyn_cast<nn::AccumulatorOp>(graph.nodes[node].ops.front());
    return accumulator ? static_cast<int64_t>(accumulator.getLanes()) : 0;
  }

  /// Whether a node adds upon a sum over micro-batches, which is another one's.
  bool addsUpon(int node, int64_t bytes) const {
    return llvm::any_of(graph.nodes[node].ops, [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value operand) {
        return operand.getDefiningOp<nn::AccumulatorOp>() &&
               nn::getByteSize(operand.getType()) == bytes;
      });
    });
  }

  void add(const Exchanged &each) {
    const int producer = each.producer;
    const Unit made = producer < 0 ? Unit::forward : unitOf[producer];
    const int64_t lanes = producer < 0 ? 0 : countLanes(producer);
    if (made == Unit::prologue || lanes > 0) {
      const int what = makeHeld(each.bytes * std::max<int64_t>(lanes, 1));
      hold(what, producer);
      for (int consumer : each.consumers)
        hold(what, consumer);
      return;
    }
    // A sum of one micro-batch is its gradient, until the update.
    if (producer >= 0 && made != Unit::update && reads(each, {Unit::update}) &&
        !addsUpon(producer, each.bytes))
      hold(makeHeld(each.bytes), producer);
    if (producer >= 0 && gathered.contains(graph.nodes[producer].ops.front())) {
      alive.push_back(each);
      // For gradients it is gathered again.
      std::erase_if(alive.back().consumers, [&](int consumer) {
        return phases.get(graph.nodes[consumer].ops.front()) ==
               dist::Phase::backward;
      });
      return;
    }
    const bool returns = reads(each, {Unit::backward, Unit::weights});
    if (made == Unit::forward && returns)
      last(each, reads(each, {Unit::weights}) ? untilWeights : untilValues,
           {Unit::backward, Unit::weights});
    else if (made == Unit::backward && reads(each, {Unit::weights}))
      last(each, betweenGradients, {Unit::weights});
    else
      alive.push_back(each);
  }

  bool reads(const Exchanged &each, ArrayRef<Unit> units) const {
    return llvm::any_of(each.consumers, [&](int consumer) {
      return llvm::is_contained(units, unitOf[consumer]);
    });
  }

  /// It is held where it is read.
  void last(const Exchanged &each, Span span, ArrayRef<Unit> readers) {
    // One unit has no two halves between which anything lasts.
    if (!isSplit && span == untilValues)
      span = untilWeights;
    const int what = static_cast<int>(memory.lasting.size());
    memory.lasting.push_back({each.bytes, span});
    for (int consumer : each.consumers)
      if (llvm::is_contained(readers, unitOf[consumer])) {
        auto &list = memory.lastingOf[placeOf[consumer]];
        if (!llvm::is_contained(list, what))
          list.push_back(what);
      }
  }

  //===--------------------------------------------------------------------===//
  // What is alive within a unit
  //===--------------------------------------------------------------------===//

  /// All units go along the chain, backward ones from its end.
  void addAlive() {
    const int count = static_cast<int>(graph.nodes.size());
    std::vector<int> order(count), positionOf(count);
    for (int n = 0; n < count; ++n)
      order[n] = n;
    llvm::stable_sort(order, [&](int a, int b) {
      auto key = [&](int n) {
        const bool returns =
            unitOf[n] == Unit::backward || unitOf[n] == Unit::weights;
        return std::tuple(unitOf[n], returns ? -placeOf[n] : placeOf[n], n);
      };
      return key(a) < key(b);
    });
    for (int i = 0; i < count; ++i)
      positionOf[order[i]] = i;
    std::vector<int64_t> bytesAt(count + 1, 0);
    for (const Exchanged &each : alive) {
      const Unit unit =
          each.producer < 0 ? Unit::forward : unitOf[each.producer];
      int first = count, end = -1;
      auto meet = [&](int node) {
        if (node < 0 || unitOf[node] != unit)
          return;
        first = std::min(first, positionOf[node]);
        end = std::max(end, positionOf[node]);
      };
      meet(each.producer);
      for (int consumer : each.consumers)
        meet(consumer);
      if (end < 0)
        continue;
      bytesAt[first] += each.bytes;
      bytesAt[end + 1] -= each.bytes;
    }
    int64_t bytes = 0;
    for (int i = 0; i < count; ++i) {
      bytes += bytesAt[i];
      const int n = order[i];
      int64_t &most = memory.liveBytes[placeOf[n]];
      most = std::max(most, bytes + getOwnBytes(n));
    }
  }

  /// Results that are the model's. States are written where they are.
  int64_t getOwnBytes(int n) const {
    int64_t own = 0;
    if (unitOf[n] != Unit::update)
      for (Operation *op : graph.nodes[n].ops)
        for (Value result : op->getResults())
          if (llvm::any_of(result.getUsers(), llvm::IsaPred<func::ReturnOp>))
            own += nn::getByteSize(result.getType());
    return own;
  }

  const PartitionGraph &graph;
  const Phases &phases;
  const std::vector<int> &placeOf;
  const bool isSplit;
  const llvm::DenseSet<Operation *> gathered;
  int64_t microBatches = 1; ///< of a step
  int64_t sequences = 1;
  llvm::StringSet<> onHost; ///< states
  BalanceMemory memory;
  std::vector<Unit> unitOf; ///< by node
  std::vector<Exchanged> alive;
};

} // namespace

BalanceMemory estimateHeldMemory(const PartitionGraph &graph,
                                 const Phases &phases,
                                 const std::vector<int> &placeOf,
                                 const schedule::HeldMicroBatches &held,
                                 bool isSplit) {
  return HeldMemoryEstimator(graph, phases, placeOf, isSplit).estimate(held);
}

} // namespace partita::pipeline
