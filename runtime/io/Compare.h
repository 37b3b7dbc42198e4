//===- Compare.h - How near two tensors are ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element of a float tensor agrees if
//
//   |actual - expected| <= atol + max(rtol * |expected|, range * size),
//
// where `size` is the median of |expected| over the elements that are finite
// and not 0. The first two terms are those of numpy.allclose. The third allows
// for cancellation: an element near 0 is often a sum of large terms that
// cancel. Its rounding error is proportional to those terms and not to the sum.
// The tensor's other elements show how large such terms are. The median stays
// small if a few elements are very large, such as the -3.4e38 of a mask.
//
//   expected   1000   500   0.001     size 500, allowed beside atol:
//   allowed       1   0.5   0.005     (rtol 1e-3, range 1e-5)
//
// How much is allowed depends on the type (`Tolerances::of`). NaNs are equal to
// each other. Infinities of the same sign are equal. Integers are subtracted
// exactly and have no range. Bools must be equal.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_COMPARE_H
#define PARTITA_RUNTIME_IO_COMPARE_H

#include "runtime/io/Tensor.h"

#include <optional>
#include <string>
#include <vector>

namespace partita::runtime {

struct Tolerance {
  double rtol = 1e-3;  ///< relative to the element
  double atol = 1e-7;  ///< absolute
  double range = 1e-5; ///< relative to `size` above; 0: numpy.allclose
};

/// What somebody asked for. The rest is what rounding in a type explains:
///
/// | type | rtol | atol | range |
/// | --- | --- | --- | --- |
/// | f16 | 2^-6 | 1e-7 | 2^-6 |
/// | bf16 | 2^-3 | 1e-7 | 2^-3 |
/// | all others | 1e-3 | 1e-7 | 1e-5 |
///
/// So halves may differ by 16 steps of a number just above a power of two.
struct Tolerances {
  std::optional<double> rtol, atol, range;

  Tolerance of(abi::DType dtype) const;
};

struct Comparison {
  bool equal = false;
  /// Why the tensors cannot be compared (shape or type); empty if they can.
  std::string obstacle;
  int64_t elements = 0;
  int64_t mismatches = 0;
  /// Elements that would differ if Tolerance.range were 0.
  int64_t byRange = 0;
  double size = 0;        ///< the median above; 0: no element counts
  double maxAbsolute = 0; ///< infinity if a NaN or an infinity differs
  double maxRelative = 0; ///< over elements whose expected value is not 0
  /// Statistics over the elements that are finite in both tensors. The first
  /// two are the root mean squares of the differences and of the expected
  /// values. The third is the cosine of the angle between the tensors as
  /// vectors (1 if both are 0, 0 if one is).
  double rmsDifference = 0;
  double rmsExpected = 0;
  double cosine = 1;
  /// The largest difference in steps of the float type. The step of an element
  /// is the distance of its neighbours, or that of the neighbours of `size`
  /// where it is larger. 0 for integers, and for floats of a byte.
  double maxSteps = 0;
  /// If each element that differs does so by whole steps of quantisation: the
  /// size of one, and the most of them. 0: they do not. Integers of up to 8
  /// bits have steps of 1. Floats have steps if the expected elements are
  /// multiples of one number that is not whole itself, and are at least six
  /// different ones within 255 steps, as `DequantizeLinear` gives them.
  double quantum = 0;
  int64_t maxQuanta = 0;
  /// What was allowed.
  Tolerance tolerance;
  abi::DType dtype = abi::DType::f32;
  /// The element that exceeds its tolerance most, if there is a mismatch.
  std::vector<int64_t> worstIndex;
  double worstActual = 0;
  double worstExpected = 0;

  /// One line of text, e.g. "max abs diff 1.2e-06, max rel diff 3.4e-05, rms
  /// diff 2e-07 of 0.83, cosine 0.99999987". If elements differ, it begins with
  /// e.g. "12 of 1000 elements differ; worst at [0, 7]: 1.5 instead of 1.25; ",
  /// or "12 of 1000 elements differ, each by one step of quantisation (0.25);
  /// ...".
  std::string text() const;
};

Comparison compareTensors(const Tensor &actual, const Tensor &expected,
                          const Tolerance &tolerance);
/// The same with what is allowed by default.
Comparison compareTensors(const Tensor &actual, const Tensor &expected);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_COMPARE_H
