//===- Enums.h - Enumerations of the dialect in the artifact ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For attributes of its ops, the plan dialect has enumerations of its own. Each
// repeats the members of an enumeration of plan.fbs with the same numbers. A
// member that only one of them has, or that has different numbers, is a compile
// error.
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
