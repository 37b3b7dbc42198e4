//===- PlanDialect.h - The plan dialect -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_PLANDIALECT_H
#define PARTITA_DIALECTS_PLAN_PLANDIALECT_H

#include "dialects/nn/NNDialect.h"
#include "dialects/plan/AbiEnums.h"
#include "dialects/plan/Fields.h"
#include "runtime/abi/Actions.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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
