//===- DistReplicas.cpp - The step of one replica -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/DistDialect.h"

#include "dialects/nn/grad/Term.h"
#include "dialects/support/Try.h"

using namespace mlir;
using namespace partita::dist;
using partita::nn::ReduceKind;
using partita::nn::grad::Term;

//===----------------------------------------------------------------------===//
// replicate
//===----------------------------------------------------------------------===//

RankedTensorType ReplicateOp::getPartType(Type type, int64_t dim) {
  auto tensor = cast<RankedTensorType>(type);
  if (dim < 0)
    return tensor;
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] /= getReplicas();
  return tensor.clone(shape);
}

/// C2, of the operands or of the results.
static LogicalResult verifyDims(ReplicateOp op, TypeRange types,
                                ArrayRef<int64_t> dims, StringRef what) {
  if (types.size() != dims.size())
    return op.emitOpError("(C2) has ")
           << types.size() << " " << what << "s and " << dims.size()
           << " dimensions for them";
  for (auto [index, type] : llvm::enumerate(types)) {
    auto tensor = cast<RankedTensorType>(type);
    const int64_t dim = dims[index];
    if (dim < -1 || dim >= tensor.getRank() ||
        (dim >= 0 && tensor.getDimSize(dim) % op.getReplicas() != 0))
      return op.emitOpError("(C2) ")
             << op.getReplicas() << " replicas have no equal parts of " << what
             << " " << index << ", " << tensor << ", along dimension " << dim;
  }
  return success();
}

LogicalResult ReplicateOp::verifyRegions() {
  const int64_t replicas = getReplicas();
  const auto regions = static_cast<int64_t>(getBodies().size());
  if (regions != 1 && regions != replicas)
    return emitOpError("(C1) has ")
           << regions << " regions for " << replicas << " replicas";
  PARTITA_TRY(
      verifyDims(*this, getInputs().getTypes(), getArgumentDims(), "operand"));
  PARTITA_TRY(
      verifyDims(*this, getOutputs().getTypes(), getResultDims(), "result"));
  for (auto [replica, region] : llvm::enumerate(getBodies())) {
    Block &block = region.front();
    if (block.getNumArguments() != getInputs().size())
      return emitOpError("(C3) replica ")
             << replica << " has " << block.getNumArguments()
             << " arguments for " << getInputs().size() << " operands";
    for (auto [argument, input, dim] :
         llvm::zip(block.getArguments(), getInputs(), getArgumentDims()))
      if (Type part = getPartType(input.getType(), dim);
          argument.getType() != part)
        return emitOpError("(C3) replica ")
               << replica << " has argument " << argument.getArgNumber()
               << " of type " << argument.getType() << ", its part is " << part;
    auto yield = dyn_cast<YieldOp>(block.getTerminator());
    if (!yield || yield.getValues().size() != getOutputs().size())
      return emitOpError("(C4) replica ") << replica << " does not yield "
                                          << getOutputs().size() << " results";
    for (auto [index, value] : llvm::enumerate(yield.getValues()))
      if (Type part = getPartType(getOutputs()[index].getType(),
                                  getResultDims()[index]);
          value.getType() != part)
        return emitOpError("(C4) replica ")
               << replica << " yields result " << index << " as "
               << value.getType() << ", its part is " << part;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Placeholders
//===----------------------------------------------------------------------===//

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// By how much dimension `dim` of `whole` is longer than that of `part`; 0 if
/// they are no whole and part.
static int64_t countParts(Value whole, Value part, int64_t dim) {
  const RankedTensorType all = getTensor(whole), own = getTensor(part);
  if (all.getRank() != own.getRank() || dim < 0 || dim >= all.getRank() ||
      all.getElementType() != own.getElementType())
    return 0;
  for (int64_t i = 0; i < all.getRank(); ++i)
    if (i != dim && all.getDimSize(i) != own.getDimSize(i))
      return 0;
  const int64_t all_size = all.getDimSize(dim), own_size = own.getDimSize(dim);
  return own_size > 0 && all_size % own_size == 0 ? all_size / own_size : 0;
}

static LogicalResult verifyParts(Operation *op, Value whole, Value part,
                                 int64_t dim) {
  if (countParts(whole, part, dim) < 1)
    return op->emitOpError("(C1) ")
           << part.getType() << " is no equal part of " << whole.getType()
           << " along dimension " << dim;
  return success();
}

static ArrayAttr getAxes(OpBuilder &builder, StringAttr axis) {
  return builder.getArrayAttr({axis});
}

std::string ReplicaAllReduceOp::describe() {
  return ("all_reduce " + stringifyPlaceholderReduceKind(getKind())).str();
}

LogicalResult ReplicaAllReduceOp::verify() {
  const Type element = getTensor(getX()).getElementType();
  const auto kind = getKind();
  if (kind == PlaceholderReduceKind::mean && !isa<FloatType>(element))
    return emitOpError("(C1) is a mean of ")
           << element << ": cast it to floats before";
  if (element.isInteger(1) && kind != PlaceholderReduceKind::max &&
      kind != PlaceholderReduceKind::min)
    return emitOpError("(C1) is the ")
           << stringifyPlaceholderReduceKind(kind)
           << " of booleans: they have only max (or) and min (and)";
  return success();
}

Value ReplicaAllReduceOp::connect(OpBuilder &builder, StringAttr axis,
                                  int64_t replicas, StringAttr reason) {
  const bool isMean = getKind() == PlaceholderReduceKind::mean;
  // The other kinds are the same in both enums.
  const auto kind =
      isMean ? ReduceKind::sum : static_cast<ReduceKind>(getKind());
  ImplicitLocOpBuilder b(getLoc(), builder);
  const Term sum(b, AllReduceOp::create(b, getType(), kind, getX(),
                                        getAxes(b, axis), reason));
  return isMean ? sum / sum.splat(static_cast<double>(replicas)) : sum;
}

std::string ReplicaAllGatherOp::describe() {
  return "all_gather along dimension " + std::to_string(getDim());
}

std::optional<int64_t> ReplicaAllGatherOp::getReplicaCount() {
  return countParts(getResult(), getX(), getDim());
}

LogicalResult ReplicaAllGatherOp::verify() {
  return verifyParts(*this, getResult(), getX(), getDim());
}

Value ReplicaAllGatherOp::connect(OpBuilder &builder, StringAttr axis, int64_t,
                                  StringAttr reason) {
  return AllGatherOp::create(builder, getLoc(), getType(), getX(), getDim(), 1,
                             getAxes(builder, axis), reason);
}

std::string ReplicaBroadcastOp::describe() {
  return "broadcast from replica " + std::to_string(getRoot());
}

Value ReplicaBroadcastOp::connect(OpBuilder &builder, StringAttr axis,
                                  int64_t replicas, StringAttr reason) {
  if (static_cast<int64_t>(getRoot()) >= replicas) {
    emitError() << "'" << nn::getNodeName(getOperation())
                << "' is a broadcast from replica " << getRoot()
                << "; there are replicas 0 to " << replicas - 1;
    return {};
  }
  return BroadcastOp::create(builder, getLoc(), getType(), getX(), getRoot(),
                             getAxes(builder, axis), reason);
}

std::string ReplicaAllToAllOp::describe() {
  return "all_to_all from dimension " + std::to_string(getSplit()) +
         " to dimension " + std::to_string(getConcat());
}

bool ReplicaAllToAllOp::isSameOnAllReplicas() { return false; }

std::optional<int64_t> ReplicaAllToAllOp::getReplicaCount() {
  return static_cast<int64_t>(getReplicas());
}

LogicalResult ReplicaAllToAllOp::verify() {
  const RankedTensorType type = getTensor(getX());
  const auto split = static_cast<int64_t>(getSplit()),
             concat = static_cast<int64_t>(getConcat()),
             replicas = static_cast<int64_t>(getReplicas());
  if (split >= type.getRank() || concat >= type.getRank() ||
      type.getDimSize(split) % replicas != 0)
    return emitOpError("(C1) cannot split dimension ")
           << split << " of " << type << " for " << replicas
           << " replicas, and join what they get along dimension " << concat;
  SmallVector<int64_t> shape(type.getShape());
  shape[split] /= replicas;
  shape[concat] *= replicas;
  if (getTensor(getResult()) != type.clone(shape))
    return emitOpError("(C2) makes ")
           << type.clone(shape) << ", not " << getType();
  return success();
}

Value partita::dist::joinParts(OpBuilder &builder, Location loc, Value parts,
                               int64_t dim) {
  const RankedTensorType type = getTensor(parts);
  SmallVector<int64_t> shape(type.getShape().drop_front()), permutation;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    if (i == dim)
      permutation.push_back(0);
    permutation.push_back(i + 1);
  }
  shape[dim] *= type.getDimSize(0);
  Value moved = builder.createOrFold<nn::TransposeOp>(loc, parts, permutation);
  return nn::ReshapeOp::create(builder, loc, type.clone(shape), moved);
}

/// The collective gives a new first dimension, of the replicas, which becomes
/// the outer part of dimension `concat`.
Value ReplicaAllToAllOp::connect(OpBuilder &builder, StringAttr axis,
                                 int64_t replicas, StringAttr reason) {
  SmallVector<int64_t> stacked(getTensor(getX()).getShape());
  stacked[getSplit()] /= replicas;
  stacked.insert(stacked.begin(), replicas);
  Value parts =
      AllToAllOp::create(builder, getLoc(), getTensor(getX()).clone(stacked),
                         getX(), getSplit(), 1, getAxes(builder, axis), reason);
  return joinParts(builder, getLoc(), parts, static_cast<int64_t>(getConcat()));
}

std::string ReplicaShardOp::describe() {
  return "shard along dimension " + std::to_string(getDim());
}

bool ReplicaShardOp::isSameOnAllReplicas() { return false; }
bool ReplicaShardOp::communicates() { return false; }
bool ReplicaShardOp::needsSameOperand() { return true; }

std::optional<int64_t> ReplicaShardOp::getReplicaCount() {
  return countParts(getX(), getResult(), getDim());
}

LogicalResult ReplicaShardOp::verify() {
  return verifyParts(*this, getX(), getResult(), getDim());
}

Value ReplicaShardOp::connect(OpBuilder &builder, StringAttr axis, int64_t,
                              StringAttr) {
  return ShardOp::create(builder, getLoc(), getType(), getX(), getDim(), 1,
                         getAxes(builder, axis));
}
