//===- DistDelaySums.cpp - Partial sums are joined where they are small ---===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/ModelFunction.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Sharding.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTDELAYSUMSPASS
#include "compiler/shard/Passes.h.inc"

namespace {

bool isPartial(Value value) {
  dist::ShardingAttr sharding = getShardingAttr(value);
  return sharding && !sharding.getPartial().empty();
}

/// Whether the op makes the sum of two tensors of what it makes of each of
/// them, when all else that it reads stays as it is, the same on all devices.
bool isLinear(Operation *op, Value in) {
  // A sum over what is cut makes partial sums of its own.
  if (op->getNumResults() != 1 || llvm::count(op->getOperands(), in) != 1 ||
      isPartial(op->getResult(0)) || llvm::any_of(op->getOperands(), isPartial))
    return false;
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return reduce.getKind() == nn::ReduceKind::sum;
  if (isa<nn::DivOp>(op))
    return op->getOperand(0) == in;
  return isa<nn::MulOp, nn::ReshapeOp, nn::TransposeOp>(op);
}

class Delayer {
public:
  explicit Delayer(func::FuncOp function) : axes(function) {}

  void visit(dist::ReshardOp joined) {
    dist::ShardingAttr from = getShardingAttr(joined.getX());
    Operation *maker = joined.getX().getDefiningOp();
    if (!from || from.getPartial().empty() || !maker || isOwnOfReplica(maker) ||
        !isSame(getSharding(from), getSharding(joined)) ||
        !isa<FloatType>(nn::getTensorType(joined).getElementType()) ||
        !llvm::all_of(from.getPartial(), [](dist::PartialAttr partial) {
          return partial.getReduction() == nn::ReduceKind::sum;
        }))
      return;
    // Up to the smallest of the tensors that may be joined as well.
    SmallVector<Operation *> chain;
    size_t length = 0;
    int64_t least = getBytes(joined);
    for (Value value = joined; value.hasOneUse();) {
      Operation *user = *value.user_begin();
      if (!isLinear(user, value))
        break;
      chain.push_back(user);
      value = user->getResult(0);
      if (getBytes(value) < least) {
        least = getBytes(value);
        length = chain.size();
      }
    }
    chain.resize(length);
    if (!chain.empty())
      move(joined, from, chain);
  }

private:
  int64_t getBytes(Value value) const {
    return nn::getByteSize(
        getLocalType(nn::getTensorType(value), getSharding(value), axes));
  }

  void move(dist::ReshardOp joined, dist::ShardingAttr from,
            ArrayRef<Operation *> chain) {
    MLIRContext *context = joined.getContext();
    Value last = chain.back()->getResult(0);
    const Sharding sharding = getSharding(last);
    for (Operation *op : chain) {
      const Value result = op->getResult(0);
      const dist::ShardingAttr made = getAttr(
          context, getSharding(result), nn::getTensorType(result).getRank());
      op->setAttr(
          dist::kShardingAttr,
          dist::ShardingAttr::get(context, made.getDims(), from.getPartial()));
    }
    OpBuilder builder(context);
    builder.setInsertionPointAfter(chain.back());
    auto later = dist::ReshardOp::create(builder, joined.getLoc(), last,
                                         joined.getReason());
    last.replaceAllUsesExcept(later, later);
    setSharding(later, sharding);
    joined.replaceAllUsesWith(joined.getX());
    joined.erase();
  }

  const Axes axes;
};

struct DistDelaySumsPass : impl::DistDelaySumsPassBase<DistDelaySumsPass> {
  LogicalResult run(func::FuncOp function) override {
    Delayer delayer(function);
    for (auto joined : llvm::make_early_inc_range(
             function.getBody().front().getOps<dist::ReshardOp>()))
      delayer.visit(joined);
    return success();
  }
};

} // namespace
} // namespace partita::shard
