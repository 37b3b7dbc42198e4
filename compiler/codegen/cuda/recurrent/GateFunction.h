//===- GateFunction.h - The function of a gate ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_RECURRENT_GATEFUNCTION_H
#define PARTITA_COMPILER_CODEGEN_CUDA_RECURRENT_GATEFUNCTION_H

#include "dialects/nn/NNDialect.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::codegen::cuda {

/// The function of a gate, of an f32.
mlir::Value emitGate(mlir::ImplicitLocOpBuilder &b,
                     nn::GateFunctionAttr function, mlir::Value x);

/// A constant of f32.
mlir::Value emitFloat(mlir::ImplicitLocOpBuilder &b, double value);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_RECURRENT_GATEFUNCTION_H
