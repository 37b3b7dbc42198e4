//===- Passes.h - Passes that make clusters ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_FUSE_PASSES_H
#define PARTITA_COMPILER_FUSE_PASSES_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Pass/Pass.h"

namespace partita::fuse {

/// Of which ops --fuse-clusters decides, by what has been done to the model.
enum class FusePlace {
  any,         ///< of all
  before_cuts, ///< tensors are whole: of functions with `dist.reproducible`
  behind_cuts, ///< tensors are those of one device: of all others
  own_targets  ///< stages are formed: of those with a target of their own
};

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/fuse/Passes.h.inc"

} // namespace partita::fuse

#endif // PARTITA_COMPILER_FUSE_PASSES_H
