//===- Winograd.h - Choosing Winograd convolutions --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_WINOGRAD_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_WINOGRAD_H

#include "compiler/analysis/Rates.h"

namespace partita::codegen::onednn {

/// Sets `nn.winograd` on the convolution among the ops of a call, if Winograd's
/// method is worth while for it (Lavin and Gray 2016, "Fast Algorithms for
/// Convolutional Neural Networks"). The method needs 2.25 or 4 times fewer
/// multiplications, but it must transform the images and the filter.
void markWinograd(llvm::ArrayRef<mlir::Operation *> ops,
                  analysis::Rates &rates);

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_WINOGRAD_H
