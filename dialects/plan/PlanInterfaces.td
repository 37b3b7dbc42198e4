//===- PlanInterfaces.td - What checks ask of a plan's ops ---*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_PLANINTERFACES_TD
#define PARTITA_DIALECTS_PLAN_PLANINTERFACES_TD

include "mlir/IR/OpBase.td"

def Plan_ScheduleStepOpInterface : OpInterface<"ScheduleStepOpInterface"> {
  let cppNamespace = "::partita::plan";
  let description = [{
    An entry of a device's program: which slots it reads and writes, on which
    queue it runs, and for how long.
  }];
  let methods = [
    InterfaceMethod<"The micro-batch it belongs to.", "int64_t", "getStepMicroBatch">,
    InterfaceMethod<"Slots of the device that hold what it needs before it begins.",
      "::llvm::SmallVector<::mlir::Value>", "getReadSlots">,
    InterfaceMethod<"Slots of the device that it writes.",
      "::llvm::SmallVector<::mlir::Value>", "getWrittenSlots">,
    InterfaceMethod<"What it occupies: `compute`, `communication` or `host`.",
      "::partita::plan::Queue", "getQueue">,
    InterfaceMethod<"Predicted duration in nanoseconds; 0 if it only waits.",
      "int64_t", "getStepDurationNs">
  ];
}

def Plan_InstructionOpInterface : OpInterface<"InstructionOpInterface"> {
  let cppNamespace = "::partita::plan";
  let description = [{
    A piece of work of a unit. Everything it reads is read before it writes, as
    far as bytes are shared between a read and a written slot.
  }];
  let methods = [
    InterfaceMethod<"Slots it reads.", "::mlir::ValueRange", "getInstructionReads">,
    InterfaceMethod<"Slots it writes.", "::mlir::ValueRange", "getInstructionWrites">
  ];
}

#endif // PARTITA_DIALECTS_PLAN_PLANINTERFACES_TD
