//===- Winograd.h - Which convolutions are computed so ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_WINOGRAD_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_WINOGRAD_H

#include "compiler/analysis/Rates.h"

namespace partita::codegen::onednn {

/// Gives the convolution among the ops of a call `nn.winograd`, if it is worth
/// computing by Winograd's method (Lavin and Gray 2016, "Fast Algorithms for
/// Convolutional Neural Networks"): with 2.25 or 4 times fewer multiplications,
/// but with images and filter in forms of their own.
void markWinograd(llvm::ArrayRef<mlir::Operation *> ops,
                  analysis::Rates &rates);

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_WINOGRAD_H
