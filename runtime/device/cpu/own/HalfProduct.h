//===- HalfProduct.h - Products of bf16 without instructions ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processors with AVX512_BF16 or AMX multiply bf16 faster than f32. On others
// the library has no such products, or slow ones. There bf16 is widened, a tile
// at a time, and multiplied as f32.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_OWN_HALFPRODUCT_H
#define PARTITA_RUNTIME_DEVICE_CPU_OWN_HALFPRODUCT_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// Whether this processor has instructions that multiply bf16.
bool hasBrainProducts();

/// lhs[B.., M, K] . rhs[B.., K, N] = result[B.., M, N], all of bf16 and of any
/// strides. Sums are f32.
Expected<std::unique_ptr<Task>> prepareBrainDot(ResolvedCall call,
                                                OnednnContext &context,
                                                const ThreadTeam &team);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_HALFPRODUCT_H
