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

SmallVector<int64_t> getDenseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

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
  KernelBuffer buffer;
  if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op)) {
    buffer = getBuffer(generic.getDpsInits()[0]);
  } else if (auto fill = dyn_cast_or_null<linalg::FillOp>(op)) {
    buffer = getBuffer(fill.getDpsInits()[0]);
  } else {
    // A view: the schedule cuts no temporary that is viewed.
    buffer = getBuffer(op->getOperand(0));
    auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
    buffer.strides = getDenseStrides(shape);
    buffer.rows.assign(shape.size(), -1);
  }
  return buffer;
}

} // namespace partita::codegen
