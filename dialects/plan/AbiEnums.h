//===- AbiEnums.h - Enumerations of the artifact ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What slots, collectives and library calls are made of is named once, in
// runtime/abi/plan.fbs. The plan dialect's attributes hold those values, and
// print and read their names.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_ABIENUMS_H
#define PARTITA_DIALECTS_PLAN_ABIENUMS_H

#include "runtime/abi/plan_generated.h"

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace partita::plan {

/// The value among `values` with this name, or nothing.
template <typename EnumT, size_t count>
std::optional<EnumT> symbolizeAmong(const EnumT (&values)[count],
                                    const char *(*getName)(EnumT),
                                    llvm::StringRef name) {
  for (EnumT value : values)
    if (name == getName(value))
      return value;
  return std::nullopt;
}

#define PARTITA_ABI_ENUM(type)                                                 \
  using abi::type;                                                             \
  inline llvm::StringRef stringify##type(type value) {                         \
    return abi::EnumName##type(value);                                         \
  }                                                                            \
  inline std::optional<type> symbolize##type(llvm::StringRef name) {           \
    return symbolizeAmong(abi::EnumValues##type(), abi::EnumName##type, name); \
  }

PARTITA_ABI_ENUM(CallKind)
PARTITA_ABI_ENUM(Cell)
PARTITA_ABI_ENUM(CollectionKind)
PARTITA_ABI_ENUM(CollectiveKind)
PARTITA_ABI_ENUM(Combine)
PARTITA_ABI_ENUM(GateFunctionKind)
PARTITA_ABI_ENUM(PostOpKind)
PARTITA_ABI_ENUM(Reduction)
PARTITA_ABI_ENUM(Space)
PARTITA_ABI_ENUM(Span)

#undef PARTITA_ABI_ENUM

} // namespace partita::plan

#endif // PARTITA_DIALECTS_PLAN_ABIENUMS_H
