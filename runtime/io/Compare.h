//===- Compare.h - How near two tensors are ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The comparison is numpy.allclose with equal_nan: |actual - expected| <= atol
// + rtol * |expected|. NaNs equal each other. Infinities of the same sign are
// equal. Integers are subtracted exactly. Bools must be equal.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_COMPARE_H
#define PARTITA_RUNTIME_IO_COMPARE_H

#include "runtime/io/Tensor.h"

#include <string>
#include <vector>

namespace partita::runtime {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-7;
};

struct Comparison {
  bool equal = false;
  /// Why the tensors cannot be compared (shape or type); empty if they can.
  std::string obstacle;
  int64_t elements = 0;
  int64_t mismatches = 0;
  double maxAbsolute = 0; ///< infinity if a NaN or an infinity differs
  double maxRelative = 0; ///< over elements whose expected value is not 0
  /// The element that exceeds its tolerance most (if there is a mismatch).
  std::vector<int64_t> worstIndex;
  double worstActual = 0;
  double worstExpected = 0;

  /// One line for people, e.g. "max abs diff 1.2e-06, max rel diff 3.4e-05" or
  /// "12 of 1000 elements differ; worst at [0, 7]: 1.5 instead of 1.25".
  std::string text() const;
};

Comparison compareTensors(const Tensor &actual, const Tensor &expected,
                          const Tolerance &tolerance = {});

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_COMPARE_H
