//===- KernelLibrary.h - Compiled kernels of an artifact --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_KERNELLIBRARY_H
#define PARTITA_RUNTIME_DEVICE_CPU_KERNELLIBRARY_H

#include "runtime/abi/artifact.h"
#include "runtime/abi/kernel.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace partita::runtime {

/// A shared object in memory and the CPU level it was compiled for.
struct KernelObject {
  abi::CpuLevel level = abi::CpuLevel::none;
  const void *data = nullptr;
  size_t bytes = 0;
};

/// The kernels of the best object this processor can run, found by name once.
class KernelLibrary {
public:
  /// Loads, of `objects`, that of the highest level that this processor has
  /// and that is at most `max_level`, and finds `names` in it. No names: loads
  /// nothing.
  static Expected<std::shared_ptr<const KernelLibrary>>
  load(const std::vector<KernelObject> &objects,
       const std::vector<std::string> &names, int max_level);
  ~KernelLibrary();

  /// The function of `names[index]`.
  partita_kernel_fn kernel(int index) const { return kernels[index]; }

private:
  KernelLibrary() = default;
  void *handle = nullptr;
  int file = -1;
  std::vector<partita_kernel_fn> kernels;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_KERNELLIBRARY_H
