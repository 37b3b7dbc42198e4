//===- RecurrentKernel.cpp - Recurrent layers on GPUs ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/recurrent/RecurrentKernel.h"

#include "compiler/codegen/cuda/grid/GridSchedule.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace partita::codegen::cuda {

/// The layer, if there are only constants beside it.
static nn::RecurrentOp getOnlyLayer(Block &body) {
  nn::RecurrentOp layer;
  for (Operation &op : body.without_terminator()) {
    auto found = dyn_cast<nn::RecurrentOp>(op);
    if ((!found && !isa<nn::ConstantOp>(op)) || (found && layer))
      return {};
    layer = found ? found : layer;
  }
  return layer;
}

nn::RecurrentOp getRecurrentLayer(nn::ClusterOp cluster) {
  return getOnlyLayer(cluster.getBody().front());
}

nn::RecurrentOp getRecurrentLayer(func::FuncOp kernel) {
  return getOnlyLayer(kernel.getBody().front());
}

int64_t countBlocks(nn::RecurrentOp layer) {
  return layer.getNumDirections() * layer.getX().getType().getDimSize(1);
}

LogicalResult checkRecurrentKernel(nn::ClusterOp cluster,
                                   nn::RecurrentOp layer) {
  auto refuse = [&](const Twine &why) {
    return layer.emitError()
           << "'nn.recurrent' of node '" << nn::getNodeName(cluster)
           << "' has no kernel for CUDA devices: " << why.str()
           << "; compute it on CPU devices";
  };
  if (!layer.getX().getType().getElementType().isF32())
    return refuse("its elements are no f32");
  // The hidden state, that after a reset, the cell's, and the gates' sums.
  const int64_t bytes = (3 + nn::RecurrentOp::getNumGates(layer.getCell())) *
                        layer.getHiddenSize() * 4;
  if (bytes > kMostSharedBytes)
    return refuse("its states are " + Twine(bytes) +
                  " bytes, and shared memory has " + Twine(kMostSharedBytes));
  return success();
}

} // namespace partita::codegen::cuda
