//===- ScanKernel.cpp - Long scans on GPUs --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/ordered/ScanKernel.h"

#include "compiler/codegen/cuda/grid/GridSchedule.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace partita::codegen::cuda {

/// Rows that are shorter take few operations for each element.
static constexpr int64_t kLongScan = 128;

bool isLongScan(nn::ScanOp scan) {
  return scan.getType().getDimSize(scan.getDim()) >= kLongScan;
}

static nn::ScanOp getOnlyScan(Block &body) {
  if (!llvm::hasSingleElement(body.without_terminator()))
    return {};
  auto scan = dyn_cast<nn::ScanOp>(body.front());
  return scan && isLongScan(scan) ? scan : nn::ScanOp();
}

nn::ScanOp getLongScan(nn::ClusterOp cluster) {
  return getOnlyScan(cluster.getBody().front());
}

nn::ScanOp getLongScan(func::FuncOp kernel) {
  return kernel.isExternal() ? nn::ScanOp()
                             : getOnlyScan(kernel.getBody().front());
}

int64_t countBlocks(nn::ScanOp scan) {
  RankedTensorType type = scan.getType();
  return type.getNumElements() / type.getDimSize(scan.getDim());
}

func::FuncOp buildScanKernel(OpBuilder &b, nn::ClusterOp cluster,
                             nn::ScanOp scan) {
  Type types[] = {scan.getType(), scan.getType()};
  auto func = func::FuncOp::create(b, cluster.getLoc(), "kernel",
                                   b.getFunctionType(types, types[1]));
  func->setAttr(kGridAttr, b.getDictionaryAttr(b.getNamedAttr(
                               "threads", b.getI64IntegerAttr(kScanThreads))));
  Block *body = func.addEntryBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(body);
  IRMapping values;
  values.map(scan.getX(), body->getArgument(0));
  Operation *copy = inner.clone(*scan, values);
  func::ReturnOp::create(inner, cluster.getLoc(), copy->getResults());
  return func;
}

} // namespace partita::codegen::cuda
