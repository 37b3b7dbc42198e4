//===- DistEnums.td - Enums of the dist dialect --------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_DIST_DISTENUMS_TD
#define PARTITA_DIALECTS_DIST_DISTENUMS_TD

include "mlir/IR/EnumAttr.td"

def Dist_PlaceholderReduceKind : I32EnumAttr<"PlaceholderReduceKind", "how tensors of replicas are combined", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"prod", 1>, I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>,
    I32EnumAttrCase<"mean", 4>]> {
  let cppNamespace = "::partita::dist";
  let genSpecializedAttr = 0;
}

def Dist_Phase : I32EnumAttr<"Phase", "which part of its stage a unit computes", [
    I32EnumAttrCase<"prologue", 0>, I32EnumAttrCase<"forward", 1>, I32EnumAttrCase<"backward", 2>,
    I32EnumAttrCase<"input_gradients", 3>, I32EnumAttrCase<"weight_gradients", 4>, I32EnumAttrCase<"update", 5>]> {
  let cppNamespace = "::partita::dist";
  let genSpecializedAttr = 0;
}

#endif // PARTITA_DIALECTS_DIST_DISTENUMS_TD
