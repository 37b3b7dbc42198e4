//===- Calls.h - What each kind of call has ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_CALLS_H
#define PARTITA_RUNTIME_ABI_CALLS_H

#include "runtime/abi/plan_generated.h"

namespace partita::abi {

/// The table of details that a kind of call has.
constexpr CallDetails detailsOf(CallKind kind) {
  switch (kind) {
  case CallKind::dot:
  case CallKind::update_slice:
  case CallKind::expert_dot:
  case CallKind::expert_outer:
    return CallDetails::NONE;
  case CallKind::conv:
  case CallKind::conv_dx:
  case CallKind::conv_dw:
    return CallDetails::Conv;
  case CallKind::pool_max:
  case CallKind::pool_avg:
    return CallDetails::Pool;
  case CallKind::attention:
    return CallDetails::Attention;
  case CallKind::recurrent:
    return CallDetails::Recurrent;
  case CallKind::top_k:
    return CallDetails::TopK;
  case CallKind::scan:
  case CallKind::scatter:
    return CallDetails::Combination;
  case CallKind::packed_dot:
    return CallDetails::PackedDot;
  }
  return CallDetails::NONE;
}

/// Whether a post-op of a call has a second operand, `PostOp.view`.
constexpr bool isBinary(PostOpKind kind) {
  return kind >= PostOpKind::add && kind <= PostOpKind::div;
}

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_CALLS_H
