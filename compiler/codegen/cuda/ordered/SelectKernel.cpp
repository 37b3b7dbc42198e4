//===- SelectKernel.cpp - The few largest elements, on GPUs ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/ordered/SelectKernel.h"

using namespace mlir;

namespace partita::codegen::cuda {

bool isSelected(nn::TopKOp topK) {
  const int64_t columns = topK.getX().getType().getDimSize(1),
                count = topK.getType().getDimSize(1);
  return columns >= kSelectThreads && columns <= (int64_t(1) << 30) &&
         count * (columns + kPassElements) < columns * columns;
}

static nn::TopKOp getOnlySelection(Block &body) {
  if (!llvm::hasSingleElement(body.without_terminator()))
    return {};
  auto topK = dyn_cast<nn::TopKOp>(body.front());
  return topK && isSelected(topK) ? topK : nn::TopKOp();
}

nn::TopKOp getSelection(nn::ClusterOp cluster) {
  return getOnlySelection(cluster.getBody().front());
}

nn::TopKOp getSelection(func::FuncOp kernel) {
  return kernel.isExternal() ? nn::TopKOp()
                             : getOnlySelection(kernel.getBody().front());
}

int64_t countBlocks(nn::TopKOp topK) {
  return topK.getX().getType().getDimSize(0);
}

} // namespace partita::codegen::cuda
