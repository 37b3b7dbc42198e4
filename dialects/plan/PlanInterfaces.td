//===- PlanInterfaces.td - What checks ask of a plan's ops ---*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_PLANINTERFACES_TD
#define PARTITA_DIALECTS_PLAN_PLANINTERFACES_TD

include "mlir/IR/OpBase.td"

def Plan_ActionOpInterface : OpInterface<"ActionOpInterface"> {
  let cppNamespace = "::partita::plan";
  let description = [{
    An action of a program. Its kind is a line of runtime/abi/Actions.def.
  }];
  let methods = [
    InterfaceMethod<"The kind of the action.", "::partita::abi::ActionKind", "getActionKind", (ins), "",
      [{ return ConcreteOp::kActionKind; }]>,
    InterfaceMethod<"The micro-batch it belongs to.", "int64_t", "getActionMicroBatch", (ins), "",
      [{ return $_op.getMicroBatch(); }]>,
    InterfaceMethod<"The symbol of its unit, channel or collective, or the number of its port.",
      "::mlir::Attribute", "getActionSubject">,
    InterfaceMethod<"The slot that it reads or writes itself; null if it has none.",
      "::mlir::Value", "getActionSlot">
  ];
}

def Plan_InstructionOpInterface : OpInterface<"InstructionOpInterface"> {
  let cppNamespace = "::partita::plan";
  let description = [{
    A piece of work of a unit. If a slot that it reads shares bytes with one
    that it writes, it reads them before it writes them.
  }];
  let methods = [
    InterfaceMethod<"Slots it reads: the first operand, unless it says otherwise.", "::mlir::ValueRange",
      "getInstructionReads", (ins), "", "return $_op.getOperation()->getOperands().take_front();">,
    InterfaceMethod<"Slots it writes: the other operands, unless it says otherwise.", "::mlir::ValueRange",
      "getInstructionWrites", (ins), "", "return $_op.getOperation()->getOperands().drop_front();">,
    InterfaceMethod<"Pairs of a read and a written slot that may share their bytes.",
      "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>>", "getInstructionInPlace", (ins), "", "return {};">
  ];
}

#endif // PARTITA_DIALECTS_PLAN_PLANINTERFACES_TD
