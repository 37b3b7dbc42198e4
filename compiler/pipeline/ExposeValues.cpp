//===- ExposeValues.cpp - Inner values as outputs -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"
#include "compiler/pipeline/Decision.h"
#include "compiler/pipeline/ModelNodes.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/GlobPattern.h"

namespace partita::pipeline {
#define GEN_PASS_DEF_EXPOSEVALUESPASS
#include "compiler/pipeline/Passes.h.inc"
} // namespace partita::pipeline

using namespace mlir;

namespace partita::pipeline {
namespace {

/// The node that an op finishes: the last of those it computes.
StringAttr getLastNode(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : llvm::reverse(fused.getLocations()))
      if (StringAttr name = getLastNode(part))
        return name;
  return {};
}

class Exposer {
public:
  Exposer(ModuleOp module, func::FuncOp function, const std::string &pattern)
      : module(module), function(function), pattern(pattern) {}

  LogicalResult run() {
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(pattern, 64);
    if (!glob)
      return emitError(function.getLoc())
             << "--expose " << pattern
             << " is no pattern: " << llvm::toString(glob.takeError());
    findTensors();
    const ModelNodes all(function);
    llvm::DenseSet<StringRef> named;
    for (int node : all.match(*glob))
      named.insert(all.getNames()[node]);
    // A node's tensor is what its last op makes, and others read.
    llvm::MapVector<StringAttr, Value> found;
    llvm::MapVector<StringAttr, bool> nodes;
    for (Operation *op : getActiveOps(function.getBody().front())) {
      StringAttr node = getLastNode(op->getLoc());
      if (!node || !tensors.count(node) || !named.contains(node.getValue()))
        continue;
      nodes.insert({node, true});
      if (op->getNumResults() == 1 && isFinal(op, node) && leavesCluster(op))
        found[node] = op->getResult(0);
    }
    if (nodes.empty())
      return emitError(function.getLoc())
             << "--expose " << pattern
             << " names no node that is computed in a step";
    expose(found.takeVector());
    int64_t inside = nodes.size() - exposed;
    emitRemark(function.getLoc())
        << exposed << " inner values are outputs; " << inside
        << " nodes' results exist only within a kernel or library call, or are "
           "outputs already";
    return success();
  }

private:
  void findTensors() {
    auto nodes = module->getAttrOfType<ArrayAttr>(kNodesAttr);
    auto names = module->getAttrOfType<ArrayAttr>(kNodeOutputsAttr);
    if (!nodes || !names)
      return;
    for (auto [node, name] : llvm::zip(nodes, names))
      if (!cast<StringAttr>(name).empty())
        tensors[cast<StringAttr>(node)] = cast<StringAttr>(name);
  }

  /// Whether none of the op's readers goes on with the same node.
  static bool isFinal(Operation *op, StringAttr node) {
    return llvm::none_of(op->getUsers(), [&](Operation *user) {
      return getLastNode(user->getLoc()) == node;
    });
  }

  static bool leavesCluster(Operation *op) {
    auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr);
    return !cluster || llvm::any_of(op->getUsers(), [&](Operation *user) {
      return user->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr) != cluster;
    });
  }

  void expose(ArrayRef<std::pair<StringAttr, Value>> found) {
    Operation *end = function.getBody().front().getTerminator();
    SmallVector<Value> results(end->getOperands());
    SmallVector<DictionaryAttr> attributes;
    for (unsigned i = 0; i < results.size(); ++i)
      attributes.push_back(function.getResultAttrDict(i)
                               ? function.getResultAttrDict(i)
                               : DictionaryAttr::get(function.getContext()));
    Builder b(function.getContext());
    int64_t port = results.size();
    const analysis::Samples samples(function);
    std::string ignored;
    for (auto [node, value] : found) {
      if (llvm::is_contained(results, value))
        continue;
      ++exposed;
      NamedAttrList attrs;
      attrs.set(nn::kNameAttr, tensors[node]);
      attrs.set("nn.node", node);
      attrs.set("nn.port", b.getI64IntegerAttr(port++));
      if (samples.find(value))
        if (std::optional<int64_t> axis =
                samples.getResultAxis(value, "", ignored))
          attrs.set(nn::kBatchAxisAttr, b.getI64IntegerAttr(*axis));
      attributes.push_back(attrs.getDictionary(b.getContext()));
      results.push_back(value);
    }
    end->setOperands(results);
    function.removeResAttrsAttr();
    function.setFunctionType(
        b.getFunctionType(function.getArgumentTypes(),
                          llvm::to_vector(ValueRange(results).getTypes())));
    function.setAllResultAttrs(attributes);
  }

  ModuleOp module;
  func::FuncOp function;
  const std::string &pattern;
  llvm::DenseMap<StringAttr, StringAttr> tensors; // by node
  int64_t exposed = 0;
};

struct ExposeValuesPass : impl::ExposeValuesPassBase<ExposeValuesPass> {
  using ExposeValuesPassBase::ExposeValuesPassBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getModelFunction(getOperation());
    if (failed(function) ||
        failed(Exposer(getOperation(), *function, nodes).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::pipeline
