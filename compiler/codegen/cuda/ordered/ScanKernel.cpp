//===- ScanKernel.cpp - Long scans on GPUs --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/ordered/ScanKernel.h"

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

} // namespace partita::codegen::cuda
