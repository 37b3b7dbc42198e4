//===- CpuBackend.h - CPUs: oneDNN, and kernels by LLVM ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_CPUBACKEND_H
#define PARTITA_COMPILER_CODEGEN_CPU_CPUBACKEND_H

#include "llvm/ADT/StringRef.h"

namespace partita::codegen {

/// Registers the backend of CPUs under the name of a kind of device.
void registerCpuBackend(llvm::StringRef kind = "cpu");

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CPU_CPUBACKEND_H
