//===- KernelUse.h - What kernels were compiled for -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_KERNELUSE_H
#define PARTITA_RUNTIME_DEVICE_CPU_KERNELUSE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <vector>

namespace partita::abi {
struct Plan;
}

namespace partita::runtime {

/// Compares each dispatch of the plan with the table of its kernel, which is
/// described in runtime/abi/kernel.h. `uses` has one for each of Plan.kernels;
/// null: the kernel is for another kind of device. The plan is verified.
Status checkKernelUses(const abi::Plan &plan,
                       const std::vector<const int64_t *> &uses);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_KERNELUSE_H
