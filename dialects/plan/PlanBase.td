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

    Discardable attributes of this dialect:

    | attribute | on | meaning |
    | --- | --- | --- |
    | `plan.target` | a module, `dist.stage`, `dist.mesh`, `plan.program` | kind of the devices, and their architecture, e.g. `cuda:sm_90`; without it, CPUs |
    | `plan.keeps_nan` | the module | NaN that is computed must stay NaN |
    | `plan.entry` | the module | what its plan is for (Plan.entry in plan.fbs) |
    | `plan.training` | the module | how it is trained, as JSON (Plan.training) |
    | `plan.dimensions` | the module | dimensions for whose sizes an artifact has several plans, with the sizes of this one |
    | `plan.mask` | the module | input that is 0 where samples are padded to those sizes |
    | `plan.memory_parts` | `plan.program` that learns | bytes of its states, of those on the host, and of what is in the arena when most is needed: sums of gradients, what outlives its unit, the rest |
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif // PARTITA_DIALECTS_PLAN_PLANBASE_TD
