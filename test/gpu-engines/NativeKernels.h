//===- NativeKernels.h - Kernels for GPUs on this processor -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's IR that PTX is written from, compiled for this processor. LLVM's
// improvements have been run for the GPU. Only the target changes: pointers of
// all address spaces are alike, shared memory is memory that all threads of a
// block see, and intrinsics of GPUs are calls (Block.h).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUENGINES_NATIVEKERNELS_H
#define PARTITA_TEST_GPUENGINES_NATIVEKERNELS_H

#include "llvm/ADT/StringSet.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <memory>
#include <string>
#include <vector>

namespace partita::test {

class NativeKernels {
public:
  static llvm::Expected<NativeKernels>
  compile(std::unique_ptr<llvm::Module> module,
          std::unique_ptr<llvm::LLVMContext> context);

  /// Computes all blocks of a kernel, one after another. Shared memory holds
  /// NaN before each.
  llvm::Error run(const std::string &kernel, uint32_t blocks, uint32_t threads,
                  std::vector<void *> arguments);

private:
  struct Shared {
    std::string name;
    size_t bytes;
  };

  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<Shared> shared;
  llvm::StringSet<> waiting; ///< kernels whose threads wait for each other
};

} // namespace partita::test

#endif // PARTITA_TEST_GPUENGINES_NATIVEKERNELS_H
