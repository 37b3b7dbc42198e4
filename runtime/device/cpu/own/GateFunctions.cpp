//===- GateFunctions.cpp - Functions of gates of recurrent layers ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/own/GateFunctions.h"

#include "runtime/base/BestLevel.h"
#include "runtime/device/cpu/simd/GateRows.h"

#include <algorithm>
#include <cmath>

namespace partita::runtime {

template <typename Fn> static void map(float *values, int64_t count, Fn fn) {
  for (int64_t i = 0; i < count; ++i)
    values[i] = fn(values[i]);
}

void applyGate(const GateFunction &function, float *values, int64_t count) {
  using Kind = abi::GateFunctionKind;
  static const GateRows logisticRow = atBestLevel(logisticRowBaseline,
                                                  logisticRowV3, logisticRowV4),
                        tanhRow =
                            atBestLevel(tanhRowBaseline, tanhRowV3, tanhRowV4);
  float alpha = function.alpha, beta = function.beta;
  switch (function.kind) {
  case Kind::relu:
    return map(values, count, [](float x) { return std::max(x, 0.0f); });
  case Kind::tanh:
    return tanhRow(values, count);
  case Kind::logistic:
    return logisticRow(values, count);
  case Kind::affine:
    return map(values, count, [=](float x) { return alpha * x + beta; });
  case Kind::leaky_relu:
    return map(values, count, [=](float x) { return x < 0 ? alpha * x : x; });
  case Kind::thresholded_relu:
    return map(values, count, [=](float x) { return x > alpha ? x : 0.0f; });
  case Kind::scaled_tanh:
    return map(values, count,
               [=](float x) { return alpha * std::tanh(beta * x); });
  case Kind::hard_sigmoid:
    return map(values, count, [=](float x) {
      return std::clamp(alpha * x + beta, 0.0f, 1.0f);
    });
  case Kind::elu:
    return map(values, count,
               [=](float x) { return x < 0 ? alpha * (std::exp(x) - 1) : x; });
  case Kind::softsign:
    return map(values, count, [](float x) { return x / (1 + std::fabs(x)); });
  case Kind::softplus:
    return map(values, count, [](float x) {
      return std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x)));
    });
  }
}

} // namespace partita::runtime
