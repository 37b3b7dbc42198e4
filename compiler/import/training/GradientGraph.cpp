//===- GradientGraph.cpp - What a Gradient differentiates -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A node Gradient names a tensor of its graph, and tensors that this one is
// computed from. These may have any values, and are variables even if they are
// constants elsewhere. So the nodes between them are imported once more. What
// comes out twice is computed once: equal ops become one later.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphImport.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/ScopeExit.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

/// The nodes of a scope that compute `name` from what is bound to another
/// value, in order. `reached`: the bound names that it is computed from.
NodeList GraphImport::findNodesFrom(Scope &scope, StringRef name,
                                    ArrayRef<Binding> bindings,
                                    llvm::StringSet<> &reached) {
  StringMap<const onnx::NodeProto *> producers;
  for (const onnx::NodeProto *node : *scope.nodes)
    for (const std::string &output : node->output())
      if (!output.empty())
        producers[output] = node;
  llvm::StringSet<> bound, changed;
  for (const Binding &binding : bindings) {
    bound.insert(binding.name);
    const ModelValue *known = find(scope, binding.name);
    if (binding.isVariable || !known || known->tensor() != binding.value)
      changed.insert(binding.name);
  }
  llvm::DenseSet<const onnx::NodeProto *> needed;
  std::vector<std::string> open = {name.str()};
  while (!open.empty()) {
    const std::string next = std::move(open.back());
    open.pop_back();
    if (bound.contains(next)) {
      reached.insert(next);
      continue;
    }
    const onnx::NodeProto *producer = producers.lookup(next);
    if (producer && needed.insert(producer).second)
      for (const std::string &read : getReadNames(*producer))
        open.push_back(read);
  }
  NodeList nodes;
  for (const onnx::NodeProto *node : *scope.nodes) {
    if (!needed.contains(node) ||
        none_of(getReadNames(*node), [&](const std::string &read) {
          return changed.contains(read);
        }))
      continue;
    nodes.push_back(node);
    for (const std::string &output : node->output())
      if (!bound.contains(output))
        changed.insert(output);
  }
  return nodes;
}

FailureOr<ModelValue> GraphImport::computeFrom(StringRef name,
                                               ArrayRef<Binding> bindings) {
  const Call &at = *current;
  auto refuse = [&](const Twine &why) -> LogicalResult {
    return emitError(at.loc) << at.node.op_type() << ": " << why;
  };
  if (at.scope.depth >= 32)
    return refuse("gradients are taken of gradients more than 32 deep");
  llvm::StringSet<> reached;
  const NodeList nodes = findNodesFrom(at.scope, name, bindings, reached);
  for (const Binding &binding : bindings)
    if (binding.isVariable && !reached.contains(binding.name))
      return refuse("'" + name + "' does not depend on '" + binding.name +
                    "'; leave it out of `xs`, and its value out of the inputs");
  Scope scope = at.scope.nest();
  scope.isAgain = true;
  for (const Binding &binding : bindings)
    scope.values[binding.name] = binding.value;
  // A node that draws random numbers draws the same, and statistics have been
  // measured by the original.
  const size_t measured = statistics.size();
  llvm::scope_exit restore([&, random = randomNodes] { randomNodes = random; });
  for (const onnx::NodeProto *node : nodes) {
    randomNodes = randomBefore.lookup(node);
    PARTITA_TRY(importNode(*node, scope));
  }
  statistics.truncate(measured);
  return PARTITA_TRY(lookup(scope, name, at.loc));
}

} // namespace partita::import
