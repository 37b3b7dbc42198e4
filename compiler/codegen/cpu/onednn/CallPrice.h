//===- CallPrice.h - A library call, as it is measured ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLPRICE_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLPRICE_H

#include "compiler/codegen/Backend.h"

namespace partita::codegen::onednn {

/// See codegen::Backend. Products, convolutions, pools and attention are
/// measured.
std::optional<CallWork> getCallWork(llvm::ArrayRef<mlir::Operation *> ops,
                                    analysis::Rates &rates, int64_t lanes);

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLPRICE_H
