//===- IntegerProduct.h - Exact products of 8-bit integers ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// VNNI instructions sum four products of 8-bit integers in 32 bits. On a
// processor without them the library's code adds pairs of products in 16 bits,
// and saturates. The tasks of this file are exact: they widen both sides to 16
// bits, a few rows at a time. They are about as fast as f32 products, take any
// strides, and need no memory except scratch.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_OWN_INTEGERPRODUCT_H
#define PARTITA_RUNTIME_DEVICE_CPU_OWN_INTEGERPRODUCT_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// Whether the call multiplies integers of 8 bits.
bool multipliesIntegers(const ResolvedCall &call);
/// Whether the library's products of such integers are exact on this processor.
bool hasExactIntegers();

Expected<std::unique_ptr<Task>> prepareIntegerDot(ResolvedCall call,
                                                  OnednnContext &context,
                                                  const ThreadTeam &team);
Expected<std::unique_ptr<Task>> prepareIntegerConv(ResolvedCall call,
                                                   OnednnContext &context,
                                                   const ThreadTeam &team);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_INTEGERPRODUCT_H
