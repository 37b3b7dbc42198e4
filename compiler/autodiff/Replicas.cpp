//===- Replicas.cpp - Differentiation across replicas ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Replicas.h"

using namespace mlir;

namespace partita::autodiff {

static ArrayAttr getReplicaAxes(MLIRContext *context) {
  return Builder(context).getStrArrayAttr(dist::kReplicaAxis);
}

FailureOr<llvm::DenseSet<Value>> findOwn(func::FuncOp model) {
  llvm::DenseSet<Value> own;
  const ArrayAttr axes = getReplicaAxes(model.getContext());
  for (Operation &op : model.getBody().front()) {
    auto meets = dyn_cast<dist::DifferentiableOpInterface>(op);
    if (meets && meets.getGroupAxes() != axes)
      return op.emitError()
             << "'" << nn::getNodeName(&op) << "' joins devices along "
             << meets.getGroupAxes()
             << ": only what joins replicas has a derivative (axis \""
             << dist::kReplicaAxis << "\")";
    const bool differs =
        meets ? !meets.isSameOnAllDevices()
              : llvm::any_of(op.getOperands(),
                             [&](Value value) { return own.contains(value); });
    if (differs)
      own.insert_range(op.getResults());
  }
  return own;
}

Value sumOverReplicas(ImplicitLocOpBuilder &builder, Value value,
                      const Twine &reason) {
  return dist::AllReduceOp::create(
      builder, value.getType(), nn::ReduceKind::sum, value,
      getReplicaAxes(builder.getContext()), builder.getStringAttr(reason));
}

Value DealtOutput::takeOwn(ImplicitLocOpBuilder &builder, Value whole,
                           int64_t along) const {
  auto type = nn::getTensorType(whole);
  SmallVector<int64_t> shape(type.getShape());
  shape[along] /= replicas;
  return dist::ShardOp::create(builder, type.clone(shape), whole, along, 1,
                               getReplicaAxes(builder.getContext()));
}

std::optional<DealtOutput> findDealt(OpBuilder &builder, Value output) {
  if (auto cast = output.getDefiningOp<nn::CastOp>()) {
    std::optional<DealtOutput> dealt = findDealt(builder, cast.getX());
    if (dealt)
      dealt->own = nn::CastOp::create(
          builder, cast.getLoc(),
          nn::getTensorType(dealt->own)
              .clone(nn::getTensorType(output).getElementType()),
          dealt->own, cast.getSaturateAttr());
    return dealt;
  }
  auto gather = output.getDefiningOp<dist::AllGatherOp>();
  if (!gather || gather.getBlocks() != 1 ||
      gather.getAxes() != getReplicaAxes(output.getContext()))
    return std::nullopt;
  const auto dim = static_cast<int64_t>(gather.getDim());
  const int64_t own = nn::getTensorType(gather.getX()).getDimSize(dim);
  return DealtOutput{gather.getX(), dim,
                     nn::getTensorType(output).getDimSize(dim) / own};
}

} // namespace partita::autodiff
