//===- KernelLibrary.h - Compiled kernels of an artifact --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_KERNELLIBRARY_H
#define PARTITA_RUNTIME_DEVICE_CPU_KERNELLIBRARY_H

#include "runtime/abi/kernel.h"
#include "runtime/base/Status.h"

#include <memory>
#include <vector>

namespace partita::runtime {

class Artifact;

/// The kernels of the best object that this processor can run. They are looked
/// up by name once.
class KernelLibrary {
public:
  /// Loads the object of the highest level that this processor has, but at most
  /// `max_level`, and looks up the plan's kernels in it. Loads nothing for a
  /// plan without kernels for CPUs.
  static Expected<std::shared_ptr<const KernelLibrary>>
  load(const Artifact &artifact, int max_level);
  ~KernelLibrary();

  /// The function of Plan.kernels[index], which has no launch.
  partita_kernel_fn kernel(int index) const { return kernels[index]; }

private:
  KernelLibrary() = default;
  Status open(const Artifact &artifact, int max_level);

  void *handle = nullptr;
  int file = -1;
  std::vector<partita_kernel_fn> kernels;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_KERNELLIBRARY_H
