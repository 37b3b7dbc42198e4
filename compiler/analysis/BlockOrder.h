//===- BlockOrder.h - Ops behind what they read -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_BLOCKORDER_H
#define PARTITA_COMPILER_ANALYSIS_BLOCKORDER_H

#include "mlir/IR/Block.h"

namespace partita::analysis {

/// Puts each op of a block behind the ops that it reads. An op that stands
/// behind a reader moves up, just before it, after what it reads itself; all
/// others stay in their order. (MLIR's `sortTopologically` moves readers down
/// instead, and with them all that follows from them: what reads nothing ends
/// up at the front, and is held for long.) The block must have no cycle.
void putBehindOperands(mlir::Block &block);

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_BLOCKORDER_H
