//===- IntegerProduct.h - Exact products of 8-bit integers ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the processor has no instruction that sums four products of 8 bits in
// 32 (VNNI), the library's code adds pairs of them in 16 bits, and saturates.
// These here widen both sides to 16 bits a few rows at a time, and are exact:
// about the speed of f32 products, any strides, no room but scratch.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_OWN_INTEGERPRODUCT_H
#define PARTITA_RUNTIME_DEVICE_CPU_OWN_INTEGERPRODUCT_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// Whether the call multiplies integers of 8 bits.
bool multipliesIntegers(const ResolvedCall &call);
/// Whether the library does that exactly.
bool hasExactIntegers();

Expected<std::unique_ptr<Task>> prepareIntegerDot(ResolvedCall call,
                                                  OnednnContext &context,
                                                  const ThreadTeam &team);
Expected<std::unique_ptr<Task>> prepareIntegerConv(ResolvedCall call,
                                                   OnednnContext &context,
                                                   const ThreadTeam &team);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_INTEGERPRODUCT_H
