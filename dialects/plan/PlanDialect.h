//===- PlanDialect.h - The plan dialect -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_PLANDIALECT_H
#define PARTITA_DIALECTS_PLAN_PLANDIALECT_H

#include "dialects/nn/NNDialect.h"
#include "runtime/abi/Actions.h"
#include "runtime/abi/plan_generated.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/Hashing.h"

#include <optional>

namespace partita::plan {

/// On a module: what its plan is for, see Plan.entry in plan.fbs.
inline constexpr llvm::StringLiteral kEntryAttr = "plan.entry";
/// On a module: how it is trained, as JSON, see Plan.training.
inline constexpr llvm::StringLiteral kTrainingAttr = "plan.training";

/// On a program that learns: bytes of its states, of those of them on the host,
/// and of what is in the arena when most is needed: sums of gradients, what
/// outlives its unit, and the rest.
inline constexpr llvm::StringLiteral kMemoryPartsAttr = "plan.memory_parts";

using nn::getByteSize;

// What slots, collectives and library calls are made of is named once, in
// runtime/abi/plan.fbs. The plan dialect's attributes hold those values, and
// print and read their names.

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

/// A double as a parameter: equal if its bits are.
struct Number {
  explicit Number(double value = 0) : value(value) {}
  operator double() const { return value; }

  double value;
};
inline uint64_t bitsOf(const Number &number) {
  return llvm::bit_cast<uint64_t>(number.value);
}
inline llvm::hash_code hash_value(const Number &number) {
  return llvm::hash_value(bitsOf(number));
}
inline bool operator==(const Number &a, const Number &b) {
  return bitsOf(a) == bitsOf(b);
}

} // namespace partita::plan

#include "dialects/plan/PlanDialect.h.inc"
#include "dialects/plan/PlanEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.h.inc"

#include "dialects/plan/PlanInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

namespace partita::plan {

/// Makes an action of a program. `subject` names its unit, channel or
/// collective. `port` is the number of its input or output. Each of `subject`,
/// `port` and `slot` is only used by the kinds of action that have one.
void createAction(mlir::OpBuilder &builder, mlir::Location loc,
                  abi::ActionKind kind, int64_t microBatch,
                  llvm::StringRef subject, int64_t port, mlir::Value slot);

/// The first device that executes a program; null if none does.
DeviceOp getFirstDevice(ProgramOp program);

} // namespace partita::plan

#endif // PARTITA_DIALECTS_PLAN_PLANDIALECT_H
