//===- RunFunction.h - Compile a function of nn ops and run it --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_NN_RUNFUNCTION_H
#define PARTITA_TEST_UNIT_NN_RUNFUNCTION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

#include <optional>
#include <vector>

namespace partita::nn::test {

/// The dialects and extensions that compilation needs.
mlir::DialectRegistry getCompilerDialects();

/// Compiles the only function of the module and runs it on the inputs. Each op
/// is compiled alone, to scalar loops if loops can compute it. Inputs and
/// results are the bytes of row-major tensors. If compilation or the run fails,
/// this fails the test and returns nothing.
std::optional<std::vector<std::vector<char>>>
runFunction(mlir::ModuleOp module,
            const std::vector<std::vector<char>> &inputs);

} // namespace partita::nn::test

#endif // PARTITA_TEST_UNIT_NN_RUNFUNCTION_H
