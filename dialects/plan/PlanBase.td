//===- PlanBase.td - The plan dialect ------------------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_PLANBASE_TD
#define PARTITA_DIALECTS_PLAN_PLANBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::partita::plan";
  let summary = "When, and in which bytes: one program per device";
  let description = [{
    The last level of the compiler. It corresponds one to one to
    `runtime/abi/plan.fbs`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Adds the attributes. Their parsers are in PlanAttrs.cpp.
    void registerAttributes();
  }];
}

#endif // PARTITA_DIALECTS_PLAN_PLANBASE_TD
