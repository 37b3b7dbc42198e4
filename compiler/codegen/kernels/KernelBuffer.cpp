//===- KernelBuffer.cpp - Tensors of a kernel in memory -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/KernelBuffer.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace partita::codegen {

MemRefType getFlatType(RankedTensorType type, Attribute space) {
  return MemRefType::get({type.getNumElements()}, type.getElementType(),
                         MemRefLayoutAttrInterface(), space);
}

Value declareTable(OpBuilder &b, Location loc, ModuleOp target,
                   const Twine &name, DenseElementsAttr values,
                   Attribute space) {
  auto flat =
      RankedTensorType::get({values.getNumElements()}, values.getElementType());
  MemRefType type = getFlatType(flat, space);
  OpBuilder top = OpBuilder::atBlockBegin(target.getBody());
  auto global = memref::GlobalOp::create(
      top, loc, name.str(), top.getStringAttr("private"), type,
      values.reshape(flat), /*constant=*/true, top.getI64IntegerAttr(64));
  return memref::GetGlobalOp::create(b, loc, type, global.getSymName());
}

KernelBuffer EmitContext::getBuffer(Value tensor) {
  if (auto it = buffers.find(tensor); it != buffers.end())
    return it->second;
  Operation *op = tensor.getDefiningOp();
  if (auto stage = dyn_cast<DestinationStyleOpInterface>(op))
    return getBuffer(stage.getDpsInits()[0]);
  // A view: the schedule cuts no temporary that is viewed.
  KernelBuffer buffer = getBuffer(op->getOperand(0));
  auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
  buffer.strides = computeStrides(shape);
  buffer.rows.assign(shape.size(), -1);
  return buffer;
}

} // namespace partita::codegen
