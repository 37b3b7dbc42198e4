//===- DistDialect.cpp - The dist dialect ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/DistDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita::dist;

#include "dialects/dist/DistDialect.cpp.inc"
#include "dialects/dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/dist/DistInterfaces.cpp.inc"
#include "dialects/dist/DistTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/dist/DistTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
}

RankedTensorType partita::dist::getTensorType(Type type) {
  if (auto placed = dyn_cast<PlacedType>(type))
    return placed.getTensor();
  return cast<RankedTensorType>(type);
}

LogicalResult MeshOp::verify() {
  llvm::SmallSet<int64_t, 8> seen;
  if (getDevices().empty())
    return emitOpError("(C1) has no devices");
  for (int64_t device : getDevices())
    if (device < 0 || !seen.insert(device).second)
      return emitOpError("(C1) names device ")
             << device << (device < 0 ? ", which is negative" : " twice");
  llvm::SmallSet<StringRef, 4> names;
  int64_t size = 1;
  if (getAxes())
    for (auto axis : getAxes()->getAsRange<AxisAttr>()) {
      if (axis.getSize() < 1 || axis.getSize() > kMostDevices ||
          !names.insert(axis.getName()).second)
        return emitOpError("(C2) has the axis ")
               << axis << (axis.getSize() < 1 ? "" : " twice");
      size *= axis.getSize();
      if (size > kMostDevices)
        break;
    }
  if (size != static_cast<int64_t>(getDevices().size()))
    return emitOpError("(C2) has ")
           << getDevices().size() << " devices, its axes " << size;
  return success();
}

YieldOp StageOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

LogicalResult StageOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr()))
    return emitOpError("(C1) ") << getMeshAttr() << " is not a mesh";
  return success();
}

LogicalResult StageOp::verifyRegions() {
  for (Type type : llvm::concat<Type>(llvm::to_vector(getInputs().getTypes()),
                                      llvm::to_vector(getOutputs().getTypes())))
    if (auto placed = dyn_cast<PlacedType>(type))
      if (placed.getMesh() != getMeshAttr())
        return emitOpError("(C2) stands on ")
               << getMeshAttr() << ", but uses or makes " << type;
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size())
    return emitOpError("(C3) has ")
           << getInputs().size() << " operands, but its block has "
           << block.getNumArguments() << " arguments";
  for (auto [argument, input] : llvm::zip(block.getArguments(), getInputs()))
    if (argument.getType() != getTensorType(input.getType()))
      return emitOpError("(C3) argument ")
             << argument.getArgNumber() << " has type " << argument.getType()
             << ", its operand " << input.getType();
  ValueRange yielded = block.getTerminator()->getOperands();
  if (yielded.size() != getOutputs().size())
    return emitOpError("(C4) has ")
           << getOutputs().size() << " results, but yields " << yielded.size();
  for (auto [index, value] : llvm::enumerate(yielded))
    if (value.getType() != getTensorType(getOutputs()[index].getType()))
      return emitOpError("(C4) result ")
             << index << " has type " << getOutputs()[index].getType()
             << ", yielded is " << value.getType();
  return success();
}

LogicalResult TransferOp::verify() {
  PlacedType from = getValue().getType(), to = getResult().getType();
  if (from.getTensor() != to.getTensor())
    return emitOpError("(C1) makes ")
           << to.getTensor() << " of " << from.getTensor();
  if (from.getMesh() == to.getMesh())
    return emitOpError("(C2) leads from ")
           << from.getMesh() << " to the same mesh";
  return success();
}

LogicalResult TransferOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (FlatSymbolRefAttr mesh :
       {getValue().getType().getMesh(), getResult().getType().getMesh()})
    if (!symbols.lookupNearestSymbolFrom<MeshOp>(*this, mesh))
      return emitOpError("(C2) ") << mesh << " is not a mesh";
  return success();
}
