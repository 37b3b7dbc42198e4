//===- Targets.h - The backends for a model's devices -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes on the whole model ask here for whom they rewrite it: the IR says it,
// by `plan.target` of the module, or by `dist.targets` of the function, where
// devices are of several kinds.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_TARGETS_H
#define PARTITA_COMPILER_CODEGEN_TARGETS_H

#include "compiler/codegen/Backend.h"

namespace partita::codegen {

/// The target of the devices at each place along the axis "stage", an array of
/// strings (compiler/model/Decision.h).
inline constexpr llvm::StringLiteral kPlaceTargetsAttr = "dist.targets";

/// Whether all backends for which a function is compiled say so.
inline bool allBackends(mlir::Operation *function,
                        llvm::function_ref<bool(const Backend &)> says) {
  auto targets = function->getAttrOfType<mlir::ArrayAttr>(kPlaceTargetsAttr);
  if (!targets)
    return says(getBackend(function));
  return llvm::all_of(
      targets.getAsValueRange<mlir::StringAttr>(), [&](llvm::StringRef target) {
        const Backend *backend = findBackend(splitTarget(target).first);
        return backend && says(*backend);
      });
}

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_TARGETS_H
