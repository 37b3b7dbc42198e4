//===- AdjointLoc.cpp - Where derivatives come from -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/grad/AdjointLoc.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace partita::nn {

Location makeAdjointLoc(Location loc) {
  Builder b(loc.getContext());
  return FusedLoc::get({loc}, b.getArrayAttr({}), loc.getContext());
}

Location addCotangent(Location adjoint, StringAttr node) {
  auto fused = dyn_cast<FusedLoc>(adjoint);
  auto names =
      fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : nullptr;
  SmallVector<Attribute> all;
  if (names)
    llvm::append_range(all, names);
  all.push_back(node);
  return FusedLoc::get(names ? fused.getLocations() : ArrayRef(adjoint),
                       ArrayAttr::get(adjoint.getContext(), all),
                       adjoint.getContext());
}

LastNode getLastNode(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return {name.getName(), nullptr};
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : llvm::reverse(fused.getLocations()))
      if (LastNode last = getLastNode(part); last.name) {
        if (auto names = dyn_cast_or_null<ArrayAttr>(fused.getMetadata()))
          last.cotangents = names;
        return last;
      }
  return {};
}

} // namespace partita::nn
