//===- Followers.cpp - Gradients and updates stay with their nodes --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/phases/Followers.h"

#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/phases/StateHomes.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/grad/GradientAttr.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace partita::pipeline {
namespace {

using dist::Phase;

class LeaderFinder {
public:
  LeaderFinder(const PartitionGraph &graph, const Phases &phases)
      : graph(graph), phases(phases), gathered(findGathered(graph.function)),
        leaders(graph.nodes.size(), -1) {}

  std::vector<int> find() {
    for (bool ofModel : {false, true})
      for (auto [index, node] : llvm::enumerate(graph.nodes))
        if (phaseOf(node) == Phase::forward && ofModel != isLoss(node))
          last = static_cast<int>(index);
    findWholes();
    for (auto [index, node] : llvm::enumerate(graph.nodes))
      if (phaseOf(node) == Phase::forward && !isGathered(node))
        addForward(static_cast<int>(index), node);
    for (size_t index = graph.nodes.size(); index-- > 0;)
      if (isGathered(graph.nodes[index]))
        addGathered(static_cast<int>(index), graph.nodes[index]);
    bringGradients();
    for (size_t index = graph.nodes.size(); index-- > 0;)
      if (movesForward(graph.nodes[index]))
        moved.push_back(static_cast<int>(index));
    for (const ClusterNode &node : graph.nodes)
      if (phaseOf(node) == Phase::update)
        addUpdates(node);
    for (auto [index, node] : llvm::enumerate(graph.nodes))
      if (phaseOf(node) != Phase::forward && leaders[index] < 0)
        leaders[index] = findLeader(node);
    // The values of forward that gradients read lie on their stage already, or
    // are sent there as they are. They are transposed there, not sent twice.
    for (int index : moved)
      leaders[index] = std::max(leaders[index], latestUser(graph.nodes[index]));
    // What has no name goes with what it is made from, and zeros with what is
    // added to them.
    for (size_t index = 0; index < leaders.size(); ++index)
      if (leaders[index] < 0)
        leaders[index] = fromOperands(graph.nodes[index]);
    for (size_t index = leaders.size(); index-- > 0;)
      if (leaders[index] < 0)
        leaders[index] = fromUsers(graph.nodes[index]);
    // A loss that depends on parameters alone has nothing in forward.
    if (!leaders.empty() && leaders[last] < 0)
      leaders[last] = last;
    for (int &leader : leaders)
      leader = leaders[leader < 0 ? last : leader];
    return leaders;
  }

private:
  Phase phaseOf(const ClusterNode &node) const {
    return phases.get(node.ops.front());
  }

  /// Whether a cluster is no node's. What counts labels needs nothing of the
  /// model, and must not go elsewhere than the rest of the loss.
  bool isLoss(const ClusterNode &node) const {
    return llvm::all_of(node.ops, isOfLoss) && !isEarly(node);
  }

  /// Whether it belongs to a node that comes later, and decides for itself.
  bool isEarly(const ClusterNode &node) const {
    return phases.isEarly(node.ops.front());
  }

  /// Whether a cluster of backward only moves elements that forward has made.
  bool movesForward(const ClusterNode &node) const {
    return phaseOf(node) == Phase::backward &&
           llvm::all_of(node.ops, [&](Operation *op) {
             if (!isa<nn::ViewOpInterface>(op))
               return false;
             Operation *producer = op->getOperand(0).getDefiningOp();
             auto made = graph.nodeOf.find(producer);
             return llvm::is_contained(node.ops, producer) ||
                    (made != graph.nodeOf.end() &&
                     phases.get(producer) == Phase::forward);
           });
  }

  /// Of clusters that read a value, through views as well, the one that
  /// backward comes to first.
  int latestUser(const ClusterNode &node) const {
    int found = -1;
    SmallVector<Operation *> left(node.ops.begin(), node.ops.end());
    while (!left.empty())
      for (Operation *user : left.pop_back_val()->getUsers())
        if (auto it = graph.nodeOf.find(user); it != graph.nodeOf.end())
          found = std::max(found, leaders[it->second]);
        else if (isa<nn::ViewOpInterface>(user))
          left.push_back(user);
    return found;
  }

  /// The node of the model to which most of a cluster belongs, or "".
  StringRef nodeOf(const ClusterNode &node) const {
    auto names = getNodeNames(node.heaviest->getLoc());
    return names.empty() || isLoss(node) || isEarly(node) ? StringRef()
                                                          : names.front();
  }

  /// Whether a cluster reads one of forward that comes after `first`, and is
  /// not of its own node.
  bool readsBehind(const ClusterNode &node, int first) const {
    SmallVector<Operation *> left(node.ops.begin(), node.ops.end());
    while (!left.empty())
      for (Value operand : left.pop_back_val()->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        auto made = graph.nodeOf.find(producer);
        if (made == graph.nodeOf.end()) {
          if (producer)
            left.push_back(producer);
        } else if (made->second > first &&
                   phases.get(producer) == Phase::forward &&
                   nodeOf(graph.nodes[made->second]) != nodeOf(node)) {
          return true;
        }
      }
    return false;
  }

  /// A node stays whole: its gradients go the other way through its parts. It
  /// is where its first part is, if the others can be there, too.
  void findWholes() {
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      const StringRef name = nodeOf(node);
      if (phaseOf(node) != Phase::forward || isGathered(node) || name.empty())
        continue;
      auto [whole, isNew] = ofWhole.try_emplace(name, index);
      if (!isNew && readsBehind(node, whole->second))
        whole->second = static_cast<int>(index);
    }
  }

  void addForward(int index, const ClusterNode &node) {
    auto whole = ofWhole.find(nodeOf(node));
    leaders[index] = isLoss(node)             ? last
                     : whole == ofWhole.end() ? index
                                              : whole->second;
    if (!isEarly(node))
      addNames(leaders[index], node);
  }

  bool isGathered(const ClusterNode &node) const {
    return phaseOf(node) == Phase::forward &&
           gathered.contains(node.ops.front());
  }

  /// What devices gather of a state goes with the first that reads it. It comes
  /// from no stage, so it could be behind its reader otherwise.
  void addGathered(int index, const ClusterNode &node) {
    int first = index;
    for (Operation *op : node.ops)
      for (Operation *user : op->getUsers())
        if (auto it = graph.nodeOf.find(user);
            it != graph.nodeOf.end() && it->second != index &&
            phases.get(user) == Phase::forward)
          first = first == index ? leaders[it->second]
                                 : std::min(first, leaders[it->second]);
    leaders[index] = first;
    addNames(first, node);
  }

  void addNames(int index, const ClusterNode &node) {
    for (Operation *op : node.ops) {
      const int64_t flops = countFlops(op);
      for (StringRef name : getNodeNames(op->getLoc())) {
        auto [it, isNew] = ofName.try_emplace(name, std::pair(index, flops));
        if (!isNew && flops > it->second.second)
          it->second = {index, flops};
      }
      addParameters(op, index);
    }
  }

  /// Of what an op reads, views and all that is computed once a step included.
  void addParameters(Operation *op, int index) {
    for (StringRef parameter : getParameters(op))
      if (ofParameter.try_emplace(parameter, index).first->second != index)
        shared.insert(parameter);
  }

  SmallVector<StringRef> getParameters(Operation *op) const {
    SmallVector<StringRef> found;
    SmallVector<Operation *> left = {op};
    while (!left.empty())
      for (Value operand : left.pop_back_val()->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (auto parameter = dyn_cast_or_null<nn::ParameterOp>(producer))
          found.push_back(parameter.getWeight());
        else if (producer && !isa<nn::AccumulatorOp>(producer) &&
                 (!graph.nodeOf.count(producer) ||
                  phases.get(producer) == Phase::prologue))
          left.push_back(producer);
      }
    return found;
  }

  /// The gradient of a parameter is made where the parameter is updated. If it
  /// is a sum of several, which belong to nodes that read the parameter, each
  /// is made where its node is.
  void bringGradients() {
    llvm::StringMap<SmallVector<nn::SumMicroBatchesOp, 1>> sums;
    for (const ClusterNode &node : graph.nodes)
      for (Operation *op : node.ops)
        if (auto of = op->getAttrOfType<FlatSymbolRefAttr>(nn::kGradientAttr))
          if (auto sum = dyn_cast<nn::SumMicroBatchesOp>(op))
            sums[of.getValue()].push_back(sum);
    for (auto &[parameter, all] : sums) {
      auto leader = ofParameter.find(parameter);
      auto made = graph.nodeOf.find(all.front().getX().getDefiningOp());
      if (all.size() == 1 && leader != ofParameter.end() &&
          made != graph.nodeOf.end() &&
          phases.get(made->first) == Phase::backward)
        leaders[made->second] = leader->second;
    }
  }

  /// The update of a parameter has a name, too.
  void addUpdates(const ClusterNode &node) {
    for (Operation *op : node.ops)
      for (StringRef parameter : getParameters(op))
        if (auto it = ofParameter.find(parameter); it != ofParameter.end())
          for (StringRef name : getNodeNames(op->getLoc()))
            ofUpdate.try_emplace(name, it->second);
  }

  /// Whether a value of an update is made of inputs alone.
  static bool isOfInputs(Value value) {
    Operation *op = value.getDefiningOp();
    return !op || (!isa<nn::ParameterOp, nn::SumMicroBatchesOp>(op) &&
                   llvm::all_of(op->getOperands(), isOfInputs));
  }

  int findLeader(const ClusterNode &node) const {
    if (phaseOf(node) == Phase::update) {
      for (Operation *op : node.ops)
        if (auto sum = dyn_cast<nn::SumMicroBatchesOp>(op))
          return leaderOf(sum.getX());
      for (Operation *op : node.ops)
        for (Value operand : op->getOperands())
          if (auto parameter = operand.getDefiningOp<nn::ParameterOp>())
            if (auto it = ofParameter.find(parameter.getWeight());
                it != ofParameter.end())
              return it->second;
      // So does what the parameter's update is made of, and what the optimizer
      // keeps. Rates that all updates read do not, nor does the name of a view
      // on the way to several updates. What is no update's goes with its node:
      // a running statistic, which forward does not read.
      const bool onlyViews =
          llvm::all_of(node.ops, llvm::IsaPred<nn::ViewOpInterface>);
      int ofNode = -1;
      for (Operation *op : node.ops)
        if (!llvm::all_of(op->getOperands(), isOfInputs) &&
            (onlyViews || !isa<nn::ViewOpInterface>(op)))
          for (StringRef name : getNodeNames(op->getLoc())) {
            if (auto it = ofUpdate.find(name); it != ofUpdate.end())
              return it->second;
            if (auto it = ofName.find(name); it != ofName.end() && ofNode < 0)
              ofNode = it->second.first;
          }
      if (ofNode >= 0)
        return ofNode;
      return earliestOf(node);
    }
    int found = -1;
    int64_t most = -1;
    if (isa<nn::AccumulatorOp>(node.ops.front()))
      return found; // it goes with what is added to it
    // What one node alone reads stays with it.
    for (Operation *op : node.ops)
      for (StringRef parameter : getParameters(op))
        if (auto it = ofParameter.find(parameter);
            it != ofParameter.end() && !shared.contains(parameter))
          return it->second;
    for (Operation *op : node.ops)
      for (StringRef name : getNodeNames(op->getLoc()))
        if (auto it = ofName.find(name); it != ofName.end())
          if (const int64_t flops = countFlops(op); flops > most) {
            most = flops;
            found = it->second.first;
          }
    return found;
  }

  /// Updates go from the last stage to the first. So what reads updates of
  /// several stages is with the first of them.
  int earliestOf(const ClusterNode &node) const {
    int found = last;
    for (Operation *op : node.ops)
      for (Value operand : op->getOperands())
        if (const int leader = leaderOf(operand);
            leader >= 0 && phases.get(operand.getDefiningOp()) == Phase::update)
          found = std::min(found, leader);
    return found;
  }

  int leaderOf(Value value) const {
    auto it = graph.nodeOf.find(value.getDefiningOp());
    return it == graph.nodeOf.end() ? -1 : leaders[it->second];
  }

  int fromOperands(const ClusterNode &node) const {
    int found = -1;
    for (Operation *op : node.ops)
      for (Value operand : op->getOperands())
        found = std::max(found, leaderOf(operand));
    return found;
  }

  int fromUsers(const ClusterNode &node) const {
    for (Operation *op : node.ops)
      for (Operation *user : op->getUsers())
        if (auto it = graph.nodeOf.find(user);
            it != graph.nodeOf.end() && leaders[it->second] >= 0 &&
            !(isa<nn::AccumulatorOp>(op) && isa<nn::SumMicroBatchesOp>(user)))
          return leaders[it->second];
    return -1;
  }

  const PartitionGraph &graph;
  const Phases &phases;
  const llvm::DenseSet<Operation *> gathered; ///< see findGathered
  std::vector<int> leaders;
  SmallVector<int> moved; ///< clusters that only move elements of forward
  int last = 0;           ///< of the forward clusters
  llvm::StringMap<std::pair<int, int64_t>> ofName; ///< with its operations
  llvm::StringMap<int> ofParameter;                ///< the first that reads it
  llvm::StringSet<> shared;      ///< parameters that several read
  llvm::StringMap<int> ofWhole;  ///< the leader of a node's clusters
  llvm::StringMap<int> ofUpdate; ///< by the name of an update
};

} // namespace

void joinReturning(const PartitionGraph &graph, const Phases &phases,
                   std::vector<int> &leaders) {
  const size_t count = graph.nodes.size();
  auto phaseOf = [&](int node) {
    return phases.get(graph.nodes[node].ops.front());
  };
  std::vector<SmallVector<int>> read(count);
  for (const ClusterValue &value : graph.values)
    if (value.producer >= 0 && phaseOf(value.producer) != Phase::prologue)
      for (int consumer : value.consumers)
        read[consumer].push_back(value.producer);
  // By cluster: the first with which it is joined.
  std::vector<int> first(count);
  for (size_t n = 0; n < count; ++n)
    first[n] = static_cast<int>(n);
  auto join = [&](int from, int to) {
    for (int between = from + 1; between <= to; ++between)
      first[between] = std::min(first[between], from);
  };
  std::vector<bool> returns(count, false);
  for (size_t n = 0; n < count; ++n) { // in topological order
    const Phase phase = phaseOf(static_cast<int>(n));
    for (int from : read[n])
      if (phase == Phase::forward && phaseOf(from) == Phase::forward) {
        join(leaders[n], leaders[from]);
      } else if (phase == Phase::backward) {
        returns[n] = returns[n] || returns[from] || leaders[from] > leaders[n];
        if (returns[from])
          join(leaders[from], leaders[n]);
      }
  }
  for (size_t n = 0; n < count; ++n)
    first[n] = first[first[n]];
  for (int &leader : leaders)
    leader = leaders[first[leader]];
}

llvm::DenseSet<Operation *> findNamed(func::FuncOp function) {
  const SmallVector<Operation *> active =
      getActiveOps(function.getBody().front());
  const Phases phases(function);
  if (!phases.isTrained())
    return {active.begin(), active.end()};
  const llvm::DenseSet<Operation *> gathered = findGathered(function);
  llvm::DenseSet<Operation *> named;
  llvm::DenseMap<Attribute, Operation *> heaviest;
  for (Operation *op : active) {
    if (phases.get(op) != Phase::forward || isOfLoss(op) ||
        gathered.contains(op))
      continue;
    if (Attribute cluster = op->getAttr(nn::kClusterAttr)) {
      Operation *&best = heaviest[cluster];
      if (best && countFlops(op) <= countFlops(best))
        continue;
      named.erase(best);
      best = op;
    }
    named.insert(op);
  }
  return named;
}

std::vector<int> findLeaders(const PartitionGraph &graph,
                             const Phases &phases) {
  return LeaderFinder(graph, phases).find();
}

} // namespace partita::pipeline
