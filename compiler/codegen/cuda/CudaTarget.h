//===- CudaTarget.h - The GPUs that are compiled for ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_CUDATARGET_H
#define PARTITA_COMPILER_CODEGEN_CUDA_CUDATARGET_H

#include "runtime/abi/artifact.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace partita::codegen::cuda {

/// An architecture, and what its usual GPU can do: by that clusters are priced.
struct Gpu {
  llvm::StringLiteral name;
  abi::GpuArchitecture architecture;
  llvm::StringLiteral features; ///< LLVM's: the oldest PTX that knows it
  int64_t processors;           ///< streaming multiprocessors
  double clock;                 ///< of a processor, GHz
  double bytes;                 ///< of memory, a nanosecond
};

llvm::ArrayRef<Gpu> getGpus();

/// The architecture of that name, e.g. "sm_90", or null. "" is the oldest,
/// whose kernels run on all later ones.
const Gpu *findGpu(llvm::StringRef name);

/// "sm_80, sm_90, ..."
std::string getGpuNames();

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_CUDATARGET_H
