//===- PartitionGraph.cpp - What must stay together, and what flows -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/partition/PartitionGraph.h"

#include "compiler/model/Decision.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/partition/ScheduleFile.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <set>

using namespace mlir;

namespace partita::pipeline {

namespace {

class GraphBuilder {
public:
  GraphBuilder(func::FuncOp function, Block &block, const CostModel &machine)
      : function(function), block(block), machine(machine) {
    graph.function = function;
  }

  FailureOr<PartitionGraph> build() {
    group();
    PARTITA_TRY(sort());
    graph.step.weightBytes = getWeightBytes(function);
    for (ClusterNode &node : graph.nodes)
      graph.step.mostBytes = std::max(
          graph.step.mostBytes, countBytes(node) - countOutputBytes(node));
    for (OpOperand &output : block.getTerminator()->getOpOperands())
      if (isReturned(output))
        graph.step.outputBytes += nn::getByteSize(output.get().getType());
    graph.step.outputBytes *= getMicroBatches();
    // How long clusters take depends on how much all of them wait for memory.
    priceAll();
    priceAll();
    collectValues();
    return std::move(graph);
  }

private:
  /// Those a step has; before that is decided, those it will have if every
  /// device gets work.
  int64_t getMicroBatches() {
    const int64_t devices = std::max<int64_t>(
        getDevices(function).size(), getInteger(function, kDeviceCountAttr, 1));
    const schedule::ScheduleKind *kind = getScheduleKind(function);
    if (!kind)
      return getInteger(function, dist::kMicroBatchesAttr, 1);
    return pipeline::getMicroBatches(
        function, *kind, devices > 1 ? devices * kind->stagesPerDevice : 1,
        devices);
  }

  /// Puts ops into nodes, numbered in the order of their first op.
  void group() {
    std::map<int64_t, int> nodeOfCluster;
    for (Operation *op : getActiveOps(block)) {
      int node = -1;
      if (auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr)) {
        auto [it, isNew] = nodeOfCluster.emplace(
            cluster.getNumber(), static_cast<int>(graph.nodes.size()));
        node = it->second;
        if (isNew)
          graph.nodes.emplace_back().kind = cluster.getKind();
      } else if (isa<nn::ReshapeOp>(op)) {
        Operation *producer = op->getOperand(0).getDefiningOp();
        if (producer && graph.nodeOf.count(producer))
          node = graph.nodeOf[producer];
      }
      if (node < 0)
        node = graph.nodes.size();
      if (node == static_cast<int>(graph.nodes.size()))
        graph.nodes.emplace_back();
      graph.nodes[node].ops.push_back(op);
      graph.nodeOf[op] = node;
    }
    for (Operation &op : block.without_terminator()) {
      auto cluster = op.getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr);
      auto it = cluster ? nodeOfCluster.find(cluster.getNumber())
                        : nodeOfCluster.end();
      if (it != nodeOfCluster.end())
        graph.nodes[it->second].work.push_back(&op);
      else if (auto alone = graph.nodeOf.find(&op);
               alone != graph.nodeOf.end() &&
               !isa<nn::ReshapeOp, nn::SumMicroBatchesOp>(op))
        graph.nodes[alone->second].work.push_back(&op);
    }
  }

  /// Renumbers the nodes topologically; of those that could come next, the one
  /// that begins first in the function.
  LogicalResult sort() {
    size_t count = graph.nodes.size();
    std::vector<std::set<int>> successors(count);
    std::vector<int> waits(count, 0);
    for (auto [index, node] : llvm::enumerate(graph.nodes))
      for (Operation *op : node.ops)
        for (Value operand : op->getOperands())
          if (Operation *producer = operand.getDefiningOp()) {
            auto it = graph.nodeOf.find(producer);
            if (it != graph.nodeOf.end() && it->second != int(index) &&
                successors[it->second].insert(index).second)
              ++waits[index];
          }
    std::set<int> ready;
    for (size_t i = 0; i < count; ++i)
      if (!waits[i])
        ready.insert(i);
    std::vector<ClusterNode> sorted;
    while (!ready.empty()) {
      int node = *ready.begin();
      ready.erase(ready.begin());
      sorted.push_back(std::move(graph.nodes[node]));
      waits[node] = -1;
      for (int successor : successors[node])
        if (--waits[successor] == 0)
          ready.insert(successor);
    }
    if (sorted.size() != count) {
      InFlightDiagnostic diagnostic =
          function.emitError("clusters depend on each other in a cycle; one of "
                             "them holds ");
      for (size_t i = 0; i < count; ++i)
        if (waits[i] > 0) {
          for (Operation *op : ArrayRef(graph.nodes[i].ops).take_front(4))
            diagnostic << "'" << nn::getNodeName(op) << "' ";
          break;
        }
      return diagnostic;
    }
    graph.nodes = std::move(sorted);
    for (auto [index, node] : llvm::enumerate(graph.nodes))
      for (Operation *op : node.ops)
        graph.nodeOf[op] = index;
    return success();
  }

  /// Bytes of an operand that an op reads: of what it gathers from, no more
  /// than it takes.
  static int64_t countRead(Operation *op, Value operand) {
    const int64_t bytes = nn::getByteSize(operand.getType());
    return isa<nn::GatherOp, nn::GatherElementsOp>(op) &&
                   operand == op->getOperand(0)
               ? std::min(bytes, nn::getByteSize(op->getResult(0).getType()))
               : bytes;
  }

  /// Bytes of what the cluster reads and writes in memory. A kernel has
  /// constants in its code.
  int64_t countBytes(ClusterNode &node) {
    llvm::DenseSet<Operation *> inside(node.work.begin(), node.work.end());
    llvm::DenseMap<Value, int64_t> read;
    int64_t bytes = 0;
    for (Operation *op : node.work) {
      for (Value operand : op->getOperands())
        if (!inside.contains(operand.getDefiningOp()) &&
            !(node.kind == nn::ClusterKind::kernel &&
              operand.getDefiningOp<nn::ConstantOp>()))
          read[operand] = std::max(read[operand], countRead(op, operand));
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !inside.contains(user);
            }))
          bytes += nn::getByteSize(result.getType());
    }
    for (const auto &[operand, part] : read)
      bytes += part;
    return bytes;
  }

  void priceAll() {
    ClusterTime total;
    for (ClusterNode &node : graph.nodes) {
      node.time = price(node);
      total.modelledNs += node.time.modelledNs;
      total.memoryNs += node.time.memoryNs;
    }
    graph.step.memoryShare =
        total.modelledNs > 0 ? total.memoryNs / total.modelledNs : 0;
  }

  /// Whether the model returns it, out of a stage or not.
  static bool isReturned(OpOperand &use) {
    Operation *user = use.getOwner();
    if (!isa<dist::YieldOp>(user))
      return isa<func::ReturnOp>(user);
    Value result = user->getParentOp()->getResult(use.getOperandNumber());
    return llvm::any_of(result.getUsers(), llvm::IsaPred<func::ReturnOp>);
  }

  static bool isOutput(Value value) {
    return llvm::any_of(value.getUses(), [](OpOperand &use) {
      Operation *user = use.getOwner();
      return isReturned(use) ||
             (isa<nn::ReshapeOp>(user) && isOutput(user->getResult(0)));
    });
  }

  /// Bytes of the model's outputs among those that a node writes.
  static int64_t countOutputBytes(const ClusterNode &node) {
    int64_t bytes = 0;
    for (Operation *op : node.work)
      for (Value result : op->getResults())
        if (isOutput(result))
          bytes += nn::getByteSize(result.getType());
    return bytes;
  }

  ClusterTime price(ClusterNode &node) {
    std::pair<bool, int64_t> most;
    for (Operation *op : node.ops)
      if (const std::pair own(!isOfLoss(op), countFlops(op));
          !node.heaviest || own > most) {
        most = own;
        node.heaviest = op;
      }
    if (node.work.empty()) // another name for the same bytes
      return {};
    if (auto collective = dyn_cast<dist::CollectiveOpInterface>(node.work[0])) {
      const int64_t devices =
          dist::getGroupSize(function, collective.getCollectiveAxes());
      const double ns =
          machine.getCollectiveNs(collective.getSentBytes(devices), devices);
      return {.ns = ns, .modelledNs = ns};
    }
    return machine.getClusterTime(
        {node.work, node.kind, countBytes(node), countOutputBytes(node), rates},
        graph.step);
  }

  void collectValues() {
    auto add = [&](Value value, int producer) {
      ClusterValue flowing{value, producer, {}};
      for (Operation *user : value.getUsers()) {
        auto it = graph.nodeOf.find(user);
        if (it != graph.nodeOf.end() && it->second != producer)
          flowing.consumers.push_back(it->second);
      }
      llvm::sort(flowing.consumers);
      flowing.consumers.erase(llvm::unique(flowing.consumers),
                              flowing.consumers.end());
      if (!flowing.consumers.empty())
        graph.values.push_back(std::move(flowing));
    };
    for (BlockArgument argument : block.getArguments())
      add(argument, -1);
    for (auto [index, node] : llvm::enumerate(graph.nodes))
      for (Operation *op : node.ops)
        for (Value result : op->getResults())
          add(result, index);
  }

  func::FuncOp function;
  Block &block;
  const CostModel &machine;
  analysis::Rates rates;
  PartitionGraph graph;
};

} // namespace

void PartitionGraph::writePrices() const {
  for (const ClusterNode &node : nodes) {
    if (node.work.empty())
      continue;
    Operation *op = *llvm::find_if(node.ops, [&](Operation *op) {
      return llvm::is_contained(node.work, op);
    });
    Builder b(op->getContext());
    op->setAttr(kPriceAttr,
                b.getDenseF64ArrayAttr({node.time.ns, node.time.modelledNs}));
    if (node.time.key)
      op->setAttr(kWorkKeyAttr, b.getI64IntegerAttr(node.time.key));
  }
}

FailureOr<PartitionGraph> PartitionGraph::build(func::FuncOp function,
                                                const CostModel &machine,
                                                Block *block) {
  return GraphBuilder(function, block ? *block : function.getBody().front(),
                      machine)
      .build();
}

} // namespace partita::pipeline
