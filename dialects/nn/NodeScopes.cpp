//===- NodeScopes.cpp - The names of nodes, and their modules -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NodeScopes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::nn {

Location makeNodeLoc(MLIRContext *context, StringRef name, StringRef scope) {
  StringAttr named = StringAttr::get(context, name);
  return scope.empty()
             ? NameLoc::get(named)
             : NameLoc::get(named,
                            NameLoc::get(StringAttr::get(context, scope)));
}

static void visitNames(LocationAttr loc,
                       llvm::function_ref<void(NameLoc)> visit) {
  llvm::TypeSwitch<LocationAttr>(loc)
      .Case([&](NameLoc name) { visit(name); })
      .Case([&](FusedLoc fused) {
        for (Location part : fused.getLocations())
          visitNames(part, visit);
      })
      .Case([&](CallSiteLoc call) { visitNames(call.getCallee(), visit); });
}

SmallVector<StringRef, 2> getNodeNames(Location loc) {
  llvm::SmallSetVector<StringRef, 4> names;
  visitNames(loc, [&](NameLoc name) { names.insert(name.getName()); });
  return SmallVector<StringRef, 2>(names.begin(), names.end());
}

SmallVector<StringRef, 2> getScopes(Location loc) {
  llvm::SmallSetVector<StringRef, 4> scopes;
  visitNames(loc, [&](NameLoc name) {
    if (auto scope = dyn_cast<NameLoc>(name.getChildLoc()))
      scopes.insert(scope.getName());
  });
  return SmallVector<StringRef, 2>(scopes.begin(), scopes.end());
}

std::string getScopeText(Location loc) {
  constexpr size_t kShown = 3;
  SmallVector<StringRef, 2> scopes = getScopes(loc);
  std::string text = llvm::join(ArrayRef(scopes).take_front(kShown), ", ");
  return scopes.size() > kShown ? text + ", ..." : text;
}

std::string inScope(Location loc) {
  std::string text = getScopeText(loc);
  return text.empty() ? "" : " (" + text + ")";
}

} // namespace partita::nn
