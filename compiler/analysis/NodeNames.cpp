//===- NodeNames.cpp - The ONNX nodes of an op ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/NodeNames.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace partita::analysis {

SmallVector<StringRef, 2> getNodeNames(Location loc) {
  SmallVector<StringRef, 2> names;
  if (auto named = dyn_cast<NameLoc>(loc)) {
    names.push_back(named.getName());
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      for (StringRef name : getNodeNames(part))
        if (!llvm::is_contained(names, name))
          names.push_back(name);
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    return getNodeNames(call.getCallee());
  }
  return names;
}

} // namespace partita::analysis
