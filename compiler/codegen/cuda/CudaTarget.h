//===- CudaTarget.h - The GPUs that are compiled for ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_CUDATARGET_H
#define PARTITA_COMPILER_CODEGEN_CUDA_CUDATARGET_H

#include "compiler/codegen/DeviceSpeeds.h"
#include "runtime/abi/artifact.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace partita::codegen::cuda {

/// An architecture.
struct Gpu {
  llvm::StringLiteral name;
  abi::GpuArchitecture architecture;
  llvm::StringLiteral features; ///< LLVM's: the oldest PTX that knows it
};

/// The architecture of that name, e.g. "sm_90", or null. "" is the oldest,
/// whose kernels run on all later ones.
const Gpu *findGpu(llvm::StringRef name);

/// What the usual GPU of that architecture can do, by its data sheet.
DeviceSpeeds getUsualSpeeds(const Gpu &gpu);

/// What is wrong with an architecture that is not compiled for, and what runs
/// on it.
std::string describeUnknownGpu(llvm::StringRef name);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_CUDATARGET_H
