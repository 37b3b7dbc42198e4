//===- NodeList.cpp - A row for each node of a model ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/NodeList.h"

#include "compiler/analysis/Rates.h"
#include "compiler/cost/CostModel.h"
#include "compiler/model/Decision.h"
#include "compiler/model/ModelNodes.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/nn/NNDialect.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"

#include <map>

using namespace mlir;

namespace partita::pipeline {

/// "float32 [1, 128, 768]".
static std::string formatTensor(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Type element = type.getElementType();
  if (element.isInteger(1))
    os << "bool";
  else if (auto integer = dyn_cast<IntegerType>(element))
    os << (integer.isUnsigned() ? "uint" : "int") << integer.getWidth();
  else if (element.isBF16())
    os << "bfloat16";
  else if (auto number = dyn_cast<FloatType>(element);
           number && number.getWidth() >= 16)
    os << "float" << number.getWidth();
  else
    os << element;
  os << " [";
  llvm::interleaveComma(type.getShape(), os);
  os << "]";
  return text;
}

/// "12.3 us"; the unit grows with the time.
static std::string formatTime(double ns) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ns < 1e6)
    os << llvm::format("%.1f us", ns / 1e3);
  else if (ns < 1e9)
    os << llvm::format("%.2f ms", ns / 1e6);
  else
    os << llvm::format("%.2f s", ns / 1e9);
  return text;
}

static StringRef getFirstName(Operation *op) {
  SmallVector<StringRef, 2> names = getNodeNames(op->getLoc());
  return names.empty() ? StringRef() : names[0];
}

void NodeList::readModel(ModuleOp imported) {
  rows.clear();
  FailureOr<func::FuncOp> function = getModelFunction(imported);
  auto names = imported->getAttrOfType<ArrayAttr>(kNodesAttr);
  auto ops = imported->getAttrOfType<ArrayAttr>(kNodeOpsAttr);
  if (failed(function) || !names || !ops)
    return;
  const ModelNodes nodes(*function);
  llvm::StringMap<size_t> rowOf;
  for (auto [name, op] : llvm::zip(names.getAsRange<StringAttr>(),
                                   ops.getAsRange<StringAttr>())) {
    rowOf.try_emplace(name.getValue(), rows.size());
    NodeRow &row = rows.emplace_back();
    row.name = name.str();
    row.op = op.str();
    row.scope = nodes.getScope(name.getValue()).str();
  }
  for (Operation &op : function->getBody().front().without_terminator()) {
    const StringRef name = getFirstName(&op);
    auto it = rowOf.find(name);
    if (it == rowOf.end() || isa<nn::ParameterOp>(op))
      continue;
    NodeRow &row = rows[it->second];
    row.flops += countFlops(&op);
    for (Value result : op.getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return getFirstName(user) != name;
          }))
        row.outputs.push_back(
            formatTensor(cast<RankedTensorType>(result.getType())));
  }
}

void NodeList::readDecision(ModuleOp decided) {
  FailureOr<func::FuncOp> function = getModelFunction(decided);
  if (failed(function))
    return;
  // The ops that are computed together, by cluster; alone, by op.
  llvm::MapVector<std::pair<int64_t, Operation *>, SmallVector<Operation *>>
      clusters;
  analysis::Rates rates;
  std::map<StringRef, NodeUse> uses;
  for (Operation &op : function->getBody().front().without_terminator()) {
    const NodeUse use =
        rates.isLoad(&op) ? NodeUse::load : NodeUse::micro_batch;
    for (StringRef name : getNodeNames(op.getLoc()))
      if (auto [it, isNew] = uses.try_emplace(name, use);
          !isNew && use == NodeUse::micro_batch)
        it->second = use;
    if (use == NodeUse::load || isa<nn::ParameterOp>(op))
      continue;
    auto cluster = op.getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr);
    clusters[cluster ? std::pair(cluster.getNumber(), (Operation *)nullptr)
                     : std::pair(int64_t(-1), &op)]
        .push_back(&op);
  }
  llvm::StringMap<NodeRow *> rowOf;
  for (NodeRow &row : rows) {
    rowOf[row.name] = &row;
    auto it = uses.find(row.name);
    row.use = it == uses.end() ? NodeUse::folded : it->second;
    row.ns = 0;
    row.with.clear();
  }
  for (auto &[key, ops] : clusters) {
    double ns = 0;
    SmallVector<NodeRow *> together;
    NodeRow *heaviest = nullptr;
    for (Operation *op : ops) {
      if (auto price = op->getAttrOfType<DenseF64ArrayAttr>(kPriceAttr);
          price && !price.empty())
        ns += price[0];
      for (StringRef name : getNodeNames(op->getLoc())) {
        NodeRow *row = rowOf.lookup(name);
        if (!row)
          continue;
        row->block = getBlockName(op).str();
        row->stage = "F" + std::to_string(getStage(op));
        together.push_back(row);
        if (!heaviest || row->flops > heaviest->flops)
          heaviest = row;
      }
    }
    if (!heaviest)
      continue;
    heaviest->ns += ns;
    for (NodeRow *row : together)
      if (row != heaviest && row->with.empty())
        row->with = heaviest->name;
  }
  // What has a time of its own besides is shown with it.
  for (NodeRow &row : rows)
    if (row.ns > 0)
      row.with.clear();
}

void NodeList::print(llvm::raw_ostream &os) const {
  const bool hasScopes =
      llvm::any_of(rows, [](const NodeRow &row) { return !row.scope.empty(); });
  std::vector<std::string> header = {"node", "op"};
  if (hasScopes)
    header.push_back("scope");
  header.insert(header.end(), {"output", "block", ">flops", "time"});
  abi::Table table(std::move(header));
  size_t numFolded = 0;
  for (const NodeRow &row : rows) {
    if (row.use == NodeUse::folded) {
      ++numFolded;
      continue;
    }
    std::vector<std::string> line = {row.name, row.op};
    if (hasScopes)
      line.push_back(row.scope);
    line.push_back(llvm::join(row.outputs, ", "));
    line.push_back(row.block);
    line.push_back(row.flops ? abi::countText(row.flops) : "");
    line.push_back(row.use == NodeUse::load ? "at load"
                   : row.with.empty()       ? formatTime(row.ns)
                                            : "with " + row.with);
    table.add(std::move(line));
  }
  os << table.text();
  os << rows.size() - numFolded << " nodes; " << numFolded
     << " more are constants or other names of values\n";
}

llvm::json::Value NodeList::toJson() const {
  static const char *const uses[] = {"micro_batch", "load", "folded"};
  llvm::json::Array nodes;
  for (const NodeRow &row : rows) {
    llvm::json::Object node{
        {"name", row.name},   {"op", row.op},
        {"scope", row.scope}, {"outputs", llvm::json::Array(row.outputs)},
        {"flops", row.flops}, {"computed", uses[static_cast<int>(row.use)]}};
    if (row.use == NodeUse::micro_batch) {
      node["block"] = row.block;
      node["stage"] = row.stage;
      if (row.with.empty())
        node["duration_ns"] = row.ns;
      else
        node["with"] = row.with;
    }
    nodes.push_back(std::move(node));
  }
  return llvm::json::Object{{"nodes", std::move(nodes)}};
}

} // namespace partita::pipeline
