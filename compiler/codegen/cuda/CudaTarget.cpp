//===- CudaTarget.cpp - The GPUs that are compiled for --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/CudaTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::codegen::cuda {

using abi::GpuArchitecture;

// A100, H100, B200 and RTX 5090, by their data sheets.
static constexpr Gpu kGpus[] = {
    {"sm_80", GpuArchitecture::sm_80, "+ptx70", 108, 1.41, 2000},
    {"sm_90", GpuArchitecture::sm_90, "+ptx78", 132, 1.755, 3350},
    {"sm_100", GpuArchitecture::sm_100, "+ptx86", 148, 1.85, 8000},
    {"sm_120", GpuArchitecture::sm_120, "+ptx87", 170, 2.4, 1790},
};

llvm::ArrayRef<Gpu> getGpus() { return kGpus; }

const Gpu *findGpu(llvm::StringRef name) {
  if (name.empty())
    return &kGpus[0];
  const Gpu *gpu = llvm::find_if(
      kGpus, [&](const Gpu &known) { return known.name == name; });
  return gpu == std::end(kGpus) ? nullptr : gpu;
}

std::string getGpuNames() {
  return llvm::join(
      llvm::map_range(kGpus, [](const Gpu &gpu) { return gpu.name.str(); }),
      ", ");
}

} // namespace partita::codegen::cuda
