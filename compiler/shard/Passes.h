//===- Passes.h - Tensors over meshes ---------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_PASSES_H
#define PARTITA_COMPILER_SHARD_PASSES_H

#include "compiler/model/ModelPass.h"
#include "dialects/dist/DistDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace partita::shard {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/shard/Passes.h.inc"

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_PASSES_H
