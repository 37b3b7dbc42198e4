//===- ScatterKernel.cpp - Sums of rows at given places, on GPUs ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/ordered/ScatterKernel.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::codegen::cuda {

/// Elements of a row that a block has enough to do with, updates that are worth
/// a look of all threads, and elements of a result that fill a GPU.
static constexpr int64_t kLongRow = 32, kManyUpdates = 64,
                         kManyElements = 32 * 1024;
/// Blocks that fill a GPU, several times, and rows of one that are worth it.
static constexpr int64_t kEnoughBlocks = 1024, kMostRows = 64;

static bool isNumber(Value x) {
  auto constant = x.getDefiningOp<nn::ConstantOp>();
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

bool isRowScatter(nn::ScatterOp scatter) {
  RankedTensorType type = scatter.getType();
  const int64_t updates = scatter.getPlaces().getType().getDimSize(0);
  return scatter.getCombine() == nn::ReduceKind::sum &&
         type.getElementTypeBitWidth() >= 32 &&
         type.getDimSize(1) >= kLongRow && updates >= kManyUpdates &&
         updates < std::numeric_limits<int32_t>::max() &&
         type.getNumElements() >= kManyElements;
}

/// The last op of the body, if everything before it is what it adds to.
static nn::ScatterOp getOnlyScatter(Block &body) {
  auto scatter =
      dyn_cast_or_null<nn::ScatterOp>(body.getTerminator()->getPrevNode());
  if (!scatter || !isRowScatter(scatter) ||
      !isa<BlockArgument>(scatter.getPlaces()) ||
      !isa<BlockArgument>(scatter.getUpdates()) ||
      !(isa<BlockArgument>(scatter.getX()) || isNumber(scatter.getX())) ||
      body.getTerminator()->getOperands() != scatter->getResults())
    return {};
  for (Operation &op : body.without_terminator())
    if (&op != scatter && &op != scatter.getX().getDefiningOp())
      return {};
  return scatter;
}

nn::ScatterOp getRowScatter(nn::ClusterOp cluster) {
  return getOnlyScatter(cluster.getBody().front());
}

nn::ScatterOp getRowScatter(func::FuncOp kernel) {
  return kernel.isExternal() ? nn::ScatterOp()
                             : getOnlyScatter(kernel.getBody().front());
}

int64_t countRowsOfBlock(nn::ScatterOp scatter) {
  return std::clamp<int64_t>(scatter.getType().getDimSize(0) / kEnoughBlocks, 1,
                             kMostRows);
}

int64_t countBlocks(nn::ScatterOp scatter) {
  return llvm::divideCeil(scatter.getType().getDimSize(0),
                          countRowsOfBlock(scatter));
}

SmallVector<int64_t> getInPlace(nn::ScatterOp scatter) {
  if (auto upon = dyn_cast<BlockArgument>(scatter.getX()))
    return {upon.getArgNumber(), 0};
  return {};
}

} // namespace partita::codegen::cuda
