//===- EmitStage.h - The loops of one stage ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITSTAGE_H
#define PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITSTAGE_H

#include "compiler/codegen/kernels/KernelBuffer.h"

namespace partita::codegen {

/// Emits the loops of one stage.
void emitStage(mlir::OpBuilder &b, EmitContext &context,
               const StageSchedule &stage);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITSTAGE_H
