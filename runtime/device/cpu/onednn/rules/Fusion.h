//===- Fusion.h - Post-ops that oneDNN computes rightly ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// oneDNN 2.6 accepts more post-ops than it computes correctly. For example, a
// convolution that adds a vector along the width gives wrong numbers without an
// error. So a call has only the post-ops of one table. A test computes every
// entry of it against loops of our own (test/unit/runtime/FusionTest.cpp). The
// compiler fuses nothing else, and the CPU device refuses a plan that does.
//
//   dot    result [6, 40], operand [1, 40]         channel: shown right
//   conv   result [2, 8, 5, 7], operand [1,1,1,7]  other: stays a kernel
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_RULES_FUSION_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_RULES_FUSION_H

#include "runtime/abi/plan_generated.h"

#include <cstdint>
#include <span>

namespace partita::rules {

/// The layout of the second operand of a binary post-op, compared with the
/// call's result. Dimensions of size 1 do not count.
enum class OperandForm {
  one,       ///< one value
  channel,   ///< one value per channel, contiguous. The channels of a
             ///< convolution are its second dimension, of a product its last
  row,       ///< one value per row of a product, contiguous
  broadcast, ///< dense in the call's order of dimensions, but broadcast along
             ///< some of them; the result is dense in that order, too
  whole,     ///< has the result's dimensions and strides
  other
};

/// The shape and strides of an operand or a result, in the call's order of
/// dimensions. Strides are in elements, and 0 where the operand is broadcast.
struct Strided {
  std::span<const int64_t> shape, strides;
};

/// `operand` must have as many dimensions as `result`, each of the same size or
/// of size 1.
OperandForm getOperandForm(abi::CallKind call, const Strided &result,
                           const Strided &operand);

/// Whether the table has the post-op for this call. `form` is the form of its
/// second operand, if it has one.
bool mayFuse(abi::CallKind call, abi::PostOpKind kind,
             OperandForm form = OperandForm::one);

/// Whether a call may have `second` somewhere after `first`. It may not have
/// relu and leaky_relu: both are oneDNN's eltwise_relu, and its code computes
/// the second of them with the slope of the first where one slope is 0.
bool mayFollow(abi::PostOpKind first, abi::PostOpKind second);

/// Whether the library turns NaN into a number in this post-op. Its
/// instructions for the larger or the smaller of two values give the second one
/// if either is NaN.
bool losesNan(abi::PostOpKind kind);

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_RULES_FUSION_H
