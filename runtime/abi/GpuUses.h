//===- GpuUses.h - What a plan asks of its kernels for GPUs -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel reads and writes as many bytes as it was compiled for, whatever the
// plan says. The compiler writes the hash of what its plan asks of the kernels
// into the PTX. A device starts nothing for a plan that asks for something
// else. (A kernel for CPUs has a table of its own, see kernel.h.)
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_GPUUSES_H
#define PARTITA_RUNTIME_ABI_GPUUSES_H

#include <string>

namespace partita::abi {

struct Plan;

/// The launches of the plan's kernels for GPUs, and of each of their dispatches
/// the kernel, extent, results, and bytes of the operands. The plan is a valid
/// flatbuffer.
std::string gpuUses(const Plan &plan);

/// What stands in the PTX, behind its last line, before the hash (XXH3, 16
/// hexadecimal digits) of `gpuUses`.
inline constexpr char kGpuUsesMark[] = "\n// uses ";

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_GPUUSES_H
