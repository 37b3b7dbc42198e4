//===- GateRows.h - The usual functions of gates, vectorised ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_SIMD_GATEROWS_H
#define PARTITA_RUNTIME_DEVICE_CPU_SIMD_GATEROWS_H

#include <cstdint>

namespace partita::runtime {

/// Replaces `count` values by the function's value. The error is below 3 units
/// in the last place.
using GateRows = void (*)(float *values, int64_t count);

void logisticRowBaseline(float *values, int64_t count);
void logisticRowV3(float *values, int64_t count);
void logisticRowV4(float *values, int64_t count);
void tanhRowBaseline(float *values, int64_t count);
void tanhRowV3(float *values, int64_t count);
void tanhRowV4(float *values, int64_t count);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_SIMD_GATEROWS_H
