//===- GateFunctions.h - Functions of gates of recurrent layers -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_OWN_GATEFUNCTIONS_H
#define PARTITA_RUNTIME_DEVICE_CPU_OWN_GATEFUNCTIONS_H

#include "runtime/abi/plan_generated.h"

namespace partita::runtime {

struct GateFunction {
  abi::GateFunctionKind kind = abi::GateFunctionKind::tanh;
  float alpha = 0;
  float beta = 0;
};

/// Applies the function to `count` elements in place.
void applyGate(const GateFunction &function, float *values, int64_t count);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_GATEFUNCTIONS_H
