//===- ExposeValues.cpp - Inner values as outputs -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"
#include "compiler/model/Decision.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/model/ModelNodes.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/grad/AdjointLoc.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_EXPOSEVALUESPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

/// What may become an output: the tensor of a node, or its cotangent.
using Tensor = std::pair<StringAttr, int>;
enum : int { itself, cotangent };

/// The tensors that an op finishes.
SmallVector<Tensor, 1> getTensors(Operation *op) {
  const nn::LastNode last = nn::getLastNode(op->getLoc());
  if (!last.name)
    return {};
  if (!last.cotangents)
    return {{last.name, itself}};
  SmallVector<Tensor, 1> tensors;
  for (Attribute node : last.cotangents)
    tensors.push_back({cast<StringAttr>(node), cotangent});
  return tensors;
}

class Exposer {
public:
  Exposer(ModuleOp module, func::FuncOp function, const std::string &pattern)
      : module(module), function(function), pattern(pattern), samples(function),
        results(function.getBody().front().getTerminator()->getOperands()) {
    for (unsigned i = 0; i < results.size(); ++i) {
      attributes.push_back(function.getResultAttrDict(i)
                               ? function.getResultAttrDict(i)
                               : DictionaryAttr::get(function.getContext()));
      values.insert(results[i]);
      if (auto name = attributes.back().getAs<StringAttr>(nn::kNameAttr))
        taken.insert(name);
    }
  }

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
    llvm::MapVector<Tensor, Value> found;
    llvm::DenseSet<Tensor> computed;
    for (Operation *op : getActiveOps(function.getBody().front()))
      for (const Tensor &tensor : getTensors(op)) {
        if (!names.count(tensor.first) ||
            !named.contains(tensor.first.getValue()))
          continue;
        computed.insert(tensor);
        if (op->getNumResults() == 1 && isFinal(op, tensor) &&
            leavesCluster(op))
          found[tensor] = op->getResult(0);
      }
    if (computed.empty())
      return emitError(function.getLoc())
             << "--expose " << pattern
             << " names no node that is computed in a step";
    for (auto [tensor, value] : found)
      add(tensor, value);
    setResults(function, results, attributes);
    const size_t inside = computed.size() - exposed;
    emitRemark(function.getLoc())
        << exposed << " inner values are outputs; " << inside
        << " nodes' results exist only within a kernel or library call, or are "
           "outputs already";
    return success();
  }

private:
  void findTensors() {
    auto nodes = module->getAttrOfType<ArrayAttr>(kNodesAttr);
    auto outputs = module->getAttrOfType<ArrayAttr>(kNodeOutputsAttr);
    if (!nodes || !outputs)
      return;
    for (auto [node, name] : llvm::zip(nodes, outputs))
      if (!cast<StringAttr>(name).empty())
        names[cast<StringAttr>(node)] = cast<StringAttr>(name);
  }

  /// Whether none of the op's readers goes on with the same tensor.
  static bool isFinal(Operation *op, const Tensor &tensor) {
    return llvm::none_of(op->getUsers(), [&](Operation *user) {
      return llvm::is_contained(getTensors(user), tensor);
    });
  }

  static bool leavesCluster(Operation *op) {
    auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr);
    return !cluster || llvm::any_of(op->getUsers(), [&](Operation *user) {
      return user->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr) != cluster;
    });
  }

  void add(const Tensor &tensor, Value value) {
    Builder b(function.getContext());
    StringAttr name = names.lookup(tensor.first);
    if (tensor.second == cotangent)
      name = b.getStringAttr(name.getValue() + ".grad");
    // One value may be several tensors, and a trained parameter a node's.
    if (taken.contains(name) || !values.insert(value).second)
      return;
    taken.insert(name);
    ++exposed;
    NamedAttrList attrs;
    attrs.set(nn::kNameAttr, name);
    attrs.set("nn.node", tensor.first);
    attrs.set("nn.port", b.getI64IntegerAttr(results.size()));
    std::string ignored;
    if (samples.find(value))
      if (std::optional<int64_t> axis =
              samples.getResultAxis(value, "", ignored))
        attrs.set(nn::kBatchAxisAttr, b.getI64IntegerAttr(*axis));
    attributes.push_back(attrs.getDictionary(b.getContext()));
    results.push_back(value);
  }

  ModuleOp module;
  func::FuncOp function;
  const std::string &pattern;
  const analysis::Samples samples;
  llvm::DenseMap<StringAttr, StringAttr> names; // of tensors, by node
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> attributes; // of results
  llvm::DenseSet<Value> values;           // that are results
  llvm::DenseSet<StringAttr> taken;       // names of results
  size_t exposed = 0;
};

struct ExposeValuesPass : impl::ExposeValuesPassBase<ExposeValuesPass> {
  using ExposeValuesPassBase::ExposeValuesPassBase;

  LogicalResult run(func::FuncOp function) override {
    return Exposer(getOperation(), function, nodes).run();
  }
};

} // namespace
} // namespace partita::pipeline
