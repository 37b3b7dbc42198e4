//===- Conversion.h - Elements of files to those of inputs ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_CONVERSION_H
#define PARTITA_RUNTIME_DATA_CONVERSION_H

#include "runtime/data/Dataset.h"

namespace partita::data {

/// What becomes of a number x: (x / divide - mean) / std, each operation
/// rounded to the type of the input, as PyTorch's ToTensor and Normalize do it.
struct Scale {
  double divide = 1;
  double mean = 0;
  double std = 1;

  bool operator==(const Scale &) const = default;
};

/// How elements of a dataset become elements of an input of the model:
///
///   from                        to         how
///   integers, bool              f32, f64   rounded to nearest, then scaled
///   integers, bool              i32, i64   must fit
///   any type                    the same   copied
///   f32, f64                    the same   scaled
///
/// Nothing else is converted.
class Conversion {
public:
  /// Fails for other types, for a scale whose target has no fractions, and for
  /// one that is not finite or divides by 0. The message begins with what is
  /// wrong, e.g. "int64 cannot become float16".
  static runtime::Expected<Conversion> create(abi::DType from, abi::DType to,
                                              const Scale &scale);

  /// Whether elements stay as they are.
  bool isCopy() const { return kernel == nullptr; }

  /// Converts `count` elements, which must not overlap. Returns the first one
  /// that does not fit, or -1; the ones behind it are not converted. Must not
  /// be called if `isCopy()`.
  int64_t convert(const uint8_t *from, uint8_t *to, int64_t count) const {
    return kernel(from, to, count, scale);
  }

private:
  using Kernel = int64_t (*)(const uint8_t *from, uint8_t *to, int64_t count,
                             const Scale &scale);
  friend struct Kernels;

  Kernel kernel = nullptr;
  Scale scale;
};

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_CONVERSION_H
