//===- Enums.h - Enumerations of the dialect in the artifact ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan dialect and plan.fbs name the same things with the same numbers.
// What one of them has and the other has not, or has elsewhere, does not
// compile.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_EMIT_ENUMS_H
#define PARTITA_COMPILER_EMIT_ENUMS_H

#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/plan_generated.h"

namespace partita::emit {

#define PARTITA_SAME_ENUM(type)                                                \
  static_assert(static_cast<unsigned>(abi::type::MAX) ==                       \
                plan::getMaxEnumValFor##type());                               \
  inline abi::type toAbi(plan::type value) {                                   \
    return static_cast<abi::type>(value);                                      \
  }
#define PARTITA_SAME(type, name)                                               \
  static_assert(static_cast<unsigned>(abi::type::name) ==                      \
                static_cast<unsigned>(plan::type::name))

PARTITA_SAME_ENUM(Space)
PARTITA_SAME(Space, arena);
PARTITA_SAME(Space, frame);
PARTITA_SAME(Space, constant);
PARTITA_SAME(Space, weight);

PARTITA_SAME_ENUM(PostOpKind)
PARTITA_SAME(PostOpKind, relu);
PARTITA_SAME(PostOpKind, tanh);
PARTITA_SAME(PostOpKind, logistic);
PARTITA_SAME(PostOpKind, gelu_erf);
PARTITA_SAME(PostOpKind, gelu_tanh);
PARTITA_SAME(PostOpKind, exp);
PARTITA_SAME(PostOpKind, sqrt);
PARTITA_SAME(PostOpKind, abs);
PARTITA_SAME(PostOpKind, square);
PARTITA_SAME(PostOpKind, log);
PARTITA_SAME(PostOpKind, linear);
PARTITA_SAME(PostOpKind, clip);
PARTITA_SAME(PostOpKind, elu);
PARTITA_SAME(PostOpKind, leaky_relu);
PARTITA_SAME(PostOpKind, swish);
PARTITA_SAME(PostOpKind, hardswish);
PARTITA_SAME(PostOpKind, add);
PARTITA_SAME(PostOpKind, mul);
PARTITA_SAME(PostOpKind, max);
PARTITA_SAME(PostOpKind, min);
PARTITA_SAME(PostOpKind, sub);
PARTITA_SAME(PostOpKind, div);
PARTITA_SAME(PostOpKind, sum);

PARTITA_SAME_ENUM(Cell)
PARTITA_SAME(Cell, rnn);
PARTITA_SAME(Cell, gru);
PARTITA_SAME(Cell, lstm);

PARTITA_SAME_ENUM(GateFunctionKind)
PARTITA_SAME(GateFunctionKind, relu);
PARTITA_SAME(GateFunctionKind, tanh);
PARTITA_SAME(GateFunctionKind, logistic);
PARTITA_SAME(GateFunctionKind, affine);
PARTITA_SAME(GateFunctionKind, leaky_relu);
PARTITA_SAME(GateFunctionKind, thresholded_relu);
PARTITA_SAME(GateFunctionKind, scaled_tanh);
PARTITA_SAME(GateFunctionKind, hard_sigmoid);
PARTITA_SAME(GateFunctionKind, elu);
PARTITA_SAME(GateFunctionKind, softsign);
PARTITA_SAME(GateFunctionKind, softplus);

PARTITA_SAME_ENUM(CallKind)
PARTITA_SAME(CallKind, dot);
PARTITA_SAME(CallKind, conv);
PARTITA_SAME(CallKind, pool_max);
PARTITA_SAME(CallKind, pool_avg);
PARTITA_SAME(CallKind, attention);
PARTITA_SAME(CallKind, recurrent);
PARTITA_SAME(CallKind, top_k);
PARTITA_SAME(CallKind, scan);
PARTITA_SAME(CallKind, scatter);

PARTITA_SAME_ENUM(Combine)
PARTITA_SAME(Combine, replace);
PARTITA_SAME(Combine, sum);
PARTITA_SAME(Combine, prod);
PARTITA_SAME(Combine, max);
PARTITA_SAME(Combine, min);

PARTITA_SAME_ENUM(CollectionKind)
PARTITA_SAME(CollectionKind, sequence);
PARTITA_SAME(CollectionKind, optional_tensor);
PARTITA_SAME(CollectionKind, optional_sequence);

PARTITA_SAME_ENUM(CollectiveKind)
PARTITA_SAME(CollectiveKind, all_reduce);
PARTITA_SAME(CollectiveKind, all_gather);
PARTITA_SAME(CollectiveKind, reduce_scatter);
PARTITA_SAME(CollectiveKind, all_to_all);
PARTITA_SAME(CollectiveKind, broadcast);

PARTITA_SAME_ENUM(Reduction)
PARTITA_SAME(Reduction, sum);
PARTITA_SAME(Reduction, prod);
PARTITA_SAME(Reduction, max);
PARTITA_SAME(Reduction, min);

#undef PARTITA_SAME
#undef PARTITA_SAME_ENUM

} // namespace partita::emit

#endif // PARTITA_COMPILER_EMIT_ENUMS_H
