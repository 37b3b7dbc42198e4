//===- Fusion.h - Post-ops that oneDNN computes rightly ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// oneDNN 2.6 takes more post-ops than it computes rightly: a convolution that
// adds a vector along the width gives wrong numbers without an error. So a call
// has only the post-ops of one table, whose every entry a test computes against
// loops of our own (test/unit/runtime/FusionTest.cpp). The compiler fuses
// nothing else, and the CPU device refuses a plan that does.
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

/// How the second operand of a binary post-op lies beside the call's result.
/// Dimensions of one element say nothing.
enum class OperandForm {
  one,       ///< one value
  channel,   ///< one value a channel, side by side: of a convolution its second
             ///< dimension, of a product its last
  row,       ///< one value a row of a product, side by side
  broadcast, ///< without gaps, in the order of dimensions that the call has,
             ///< some of them left out; beside a result that lies so, too
  whole,     ///< of the result's dimensions and strides
  other
};

/// Shape and strides (elements; 0 where the operand is broadcast) of an operand
/// or a result, in the order of dimensions that the call has.
struct Strided {
  std::span<const int64_t> shape, strides;
};

/// `operand` has as many dimensions as `result`, each as long or of one
/// element.
OperandForm getOperandForm(abi::CallKind call, const Strided &result,
                           const Strided &operand);

/// Whether the table has the post-op for this call; `form` is that of its
/// second operand, if it has one.
bool mayFuse(abi::CallKind call, abi::PostOpKind kind,
             OperandForm form = OperandForm::one);

/// Whether the library makes a number of NaN there: its instructions for the
/// larger or the smaller of two values give the second one if either is NaN.
bool losesNan(abi::PostOpKind kind);

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_RULES_FUSION_H
