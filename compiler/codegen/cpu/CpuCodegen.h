//===- CpuCodegen.h - Kernels to shared objects -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_CPUCODEGEN_H
#define PARTITA_COMPILER_CODEGEN_CPU_CPUCODEGEN_H

#include "compiler/codegen/Codegen.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace partita::codegen {

/// Compiles the kernels for each of the levels.
mlir::FailureOr<std::vector<CompiledObject>>
compileFor(llvm::ArrayRef<abi::CpuLevel> levels, mlir::ModuleOp kernels,
           bool optimize);

/// LLVM's name for the processors of a level, e.g. "x86-64-v4".
llvm::StringRef getCpuName(abi::CpuLevel level);

/// Optimizes a module of the LLVM dialect and compiles it to a relocatable
/// object. Its functions must have this level as their target. A module with
/// `nn.reference` stays scalar.
llvm::Expected<std::vector<char>>
compileObject(mlir::ModuleOp module, abi::CpuLevel level, bool optimize);

/// Links relocatable objects to a shared one. They may only refer to those
/// functions of the C and mathematics libraries that LinkObject.cpp lists.
llvm::Expected<std::vector<char>>
linkObjects(llvm::ArrayRef<std::vector<char>> objects);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CPU_CPUCODEGEN_H
