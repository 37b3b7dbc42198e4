//===- Loops.h - Loops like those of compiled kernels -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CALIBRATE_LOOPS_H
#define PARTITA_RUNTIME_CALIBRATE_LOOPS_H

#include <cstdint>

namespace partita::runtime {

/// Loops of compiled code, for one instruction-set level.
struct Loops {
  /// y = a * x + b.
  void (*scale)(const float *x, float *y, int64_t count);
  /// y = 1 / x.
  void (*divide)(const float *x, float *y, int64_t count);
  /// y[columns, rows] = x[rows, columns].
  void (*transpose)(const float *x, float *y, int64_t rows, int64_t columns);
  /// Sum of all elements.
  float (*sum)(const float *x, int64_t count);
};

extern const Loops loopsBaseline, loopsV3, loopsV4;

/// The loops of the newest level that the processor can run.
const Loops &getLoops();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_CALIBRATE_LOOPS_H
