//===- SmallFloat.h - Floats of eight bits and less -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small float is stored in a byte. It is converted to f32 before it is used
// in computation. These functions emit the conversion with integer ops on its
// bits, so that it needs no hardware support and vectorizes.
//
// | type         | exponent, mantissa, bias | infinity | NaN       | largest |
// | ---          | ---                      | ---      | ---       | ---     |
// | f8E4M3FN     | 4, 3, 7                  | no       | S1111111  | 448     |
// | f8E4M3FNUZ   | 4, 3, 8                  | no       | 10000000  | 240     |
// | f8E5M2       | 5, 2, 15                 | yes      | as IEEE   | 57344   |
// | f8E5M2FNUZ   | 5, 2, 16                 | no       | 10000000  | 57344   |
// | f8E8M0FNU    | 8, 0, 127, no sign       | no       | 11111111  | 2^127   |
// | f4E2M1FN     | 2, 1, 1                  | no       | none      | 6       |
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_FOLD_SMALLFLOAT_H
#define PARTITA_DIALECTS_NN_FOLD_SMALLFLOAT_H

#include "mlir/IR/Builders.h"

#include <optional>

namespace partita::nn {

struct SmallFloatFormat {
  enum class NaN {
    ieee,         ///< all exponent bits set; infinity has mantissa 0
    allOnes,      ///< all bits but the sign set
    negativeZero, ///< the code of -0, which does not exist
    none
  };
  int exponentBits;
  int mantissaBits;
  int bias;
  NaN nan;
  int maxCode; ///< code of the largest finite value
  bool hasSign = true;

  int getWidth() const { return hasSign + exponentBits + mantissaBits; }
};

/// The format of a small float type, nothing for any other type.
std::optional<SmallFloatFormat> getSmallFloatFormat(mlir::Type type);

/// The f32 value of an i8 code. Exact.
mlir::Value emitSmallFloatToF32(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value code,
                                const SmallFloatFormat &format);

/// The i8 code nearest to an f32 value, halves to even (for f8E8M0FNU: the next
/// power of two upward). A value beyond the range becomes the largest value if
/// `saturate`, or else infinity, or NaN if the type has no infinity. NaN
/// becomes NaN, or -0 if the type has no NaN, as in ONNX's reference vectors.
mlir::Value emitF32ToSmallFloat(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value x, const SmallFloatFormat &format,
                                bool saturate);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_FOLD_SMALLFLOAT_H
