//===- CudaBackend.h - GPUs of NVIDIA's -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_CUDABACKEND_H
#define PARTITA_COMPILER_CODEGEN_CUDA_CUDABACKEND_H

namespace partita::codegen::cuda {

/// Registers the backend of devices of kind "cuda".
void registerCudaBackend();

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_CUDABACKEND_H
