//===- ChooseZero.h - What replicas share, chosen ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_CHOOSE_CHOOSEZERO_H
#define PARTITA_COMPILER_DRIVER_CHOOSE_CHOOSEZERO_H

#include "compiler/driver/Compile.h"

namespace partita::driver {

/// The levels of `--zero` of which `auto` takes one, as it found them.
struct ZeroChoice {
  int level = 0;
  std::vector<pipeline::TriedPlan> tried; ///< in their order
};

/// Plans the model that learns with every level, and takes the one with the
/// shortest predicted step whose devices have room; of equal ones, that which
/// needs less memory. If none has room, it takes the one that needs least, so
/// that the error of its plan says what would fit. Emits nothing.
ZeroChoice chooseZero(mlir::MLIRContext &context, const CompileOptions &learns,
                      const std::vector<std::string> &targets);

/// The lowest level above the one of the options whose devices have room; none
/// where there is none, or nothing is shared. For advice: emits nothing.
std::optional<int> findZeroThatFits(mlir::MLIRContext &context,
                                    const CompileOptions &learns,
                                    const std::vector<std::string> &targets);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_CHOOSE_CHOOSEZERO_H
