//===- CallMemory.h - What a library call takes -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLMEMORY_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLMEMORY_H

#include "dialects/plan/PlanDialect.h"

#include <optional>

namespace partita::codegen::onednn {

/// See codegen::Backend.
std::optional<int64_t> getPackedBytes(plan::CallAttr call, unsigned operand,
                                      mlir::Type element);
int64_t getScratchBytes(plan::CallAttr call, bool packed);

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLMEMORY_H
