//===- ModelNodes.cpp - What the nodes of a model are called --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/ModelNodes.h"

#include "compiler/model/Decision.h"
#include "compiler/model/NodeNames.h"

#include "dialects/nn/NodeScopes.h"

using namespace mlir;

namespace partita {

/// The names and the scopes in a location; those of one name, together.
static void forEachNode(Location loc,
                        llvm::function_ref<void(StringRef, StringRef)> visit) {
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      forEachNode(part, visit);
    return;
  }
  SmallVector<StringRef, 2> names = getNodeNames(loc);
  if (names.empty())
    return;
  SmallVector<StringRef, 2> scopes = nn::getScopes(loc);
  visit(names.front(), scopes.empty() ? StringRef() : scopes.front());
}

ModelNodes::ModelNodes(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  auto all = module->getAttrOfType<ArrayAttr>(kNodesAttr);
  auto modules = module->getAttrOfType<ArrayAttr>(kNodeScopesAttr);
  if (all)
    for (auto [i, name] : llvm::enumerate(all.getAsRange<StringAttr>()))
      add(name.getValue(), modules && i < modules.size()
                               ? cast<StringAttr>(modules[i]).getValue()
                               : StringRef());
  function.getBody().front().walk([&](Operation *op) {
    forEachNode(op->getLoc(),
                [&](StringRef name, StringRef scope) { add(name, scope); });
  });
  // Messages propose nodes before modules.
  for (StringRef name : names)
    keys.push_back(name);
  for (size_t node = 0; node < names.size(); ++node) {
    const StringRef scope = scopes[node];
    if (scope.empty())
      continue;
    for (size_t end = scope.find('.'); end != StringRef::npos;
         end = scope.find('.', end + 1))
      call(scope.take_front(end), static_cast<int>(node));
    call(scope, static_cast<int>(node));
    call((scope + "." + names[node]).str(), static_cast<int>(node));
  }
}

void ModelNodes::add(StringRef name, StringRef scope) {
  const int node = static_cast<int>(names.size());
  if (!indices.try_emplace(name, node).second)
    return;
  names.push_back(name);
  scopes.push_back(scope);
  called[name].push_back(node);
  hasScopes |= !scope.empty();
}

void ModelNodes::call(StringRef key, int node) {
  auto [it, isNew] = called.try_emplace(key);
  if (isNew)
    keys.push_back(it->first());
  std::vector<int> &nodes = it->second;
  auto at = llvm::lower_bound(nodes, node);
  if (at == nodes.end() || *at != node)
    nodes.insert(at, node);
}

StringRef ModelNodes::getScope(StringRef name) const {
  auto it = indices.find(name);
  return it == indices.end() ? StringRef() : scopes[it->second];
}

ArrayRef<int> ModelNodes::find(StringRef key) const {
  auto it = called.find(key);
  return it == called.end() ? ArrayRef<int>() : ArrayRef<int>(it->second);
}

std::vector<int> ModelNodes::match(const llvm::GlobPattern &glob) const {
  std::vector<int> nodes;
  for (StringRef key : keys)
    if (glob.match(key)) {
      ArrayRef<int> matched = find(key);
      nodes.insert(nodes.end(), matched.begin(), matched.end());
    }
  llvm::sort(nodes);
  nodes.erase(llvm::unique(nodes), nodes.end());
  return nodes;
}

} // namespace partita
