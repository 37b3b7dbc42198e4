//===- DistCombineCollectives.cpp - Small sums that travel together -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/CostModels.h"
#include "compiler/model/Decision.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/model/NodeNames.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/ShardingCosts.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Collectives.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTCOMBINECOLLECTIVESPASS
#include "compiler/shard/Passes.h.inc"

namespace {

/// Numbers that devices add up, and that are added to one another, such as the
/// squares of all gradients: devices add up the sum instead.
class NumberAdder {
public:
  explicit NumberAdder(func::FuncOp function) : function(function) {}

  void run() {
    for (auto add : llvm::to_vector(function.getOps<nn::AddOp>()))
      if (!isPart(add) && !isAccumulated(add) &&
          nn::getTensorType(add).getNumElements() == 1)
        combine(add);
    for (Operation *op : unused)
      op->erase();
  }

private:
  /// Whether it is the addition to a sum over micro-batches, which keeps its
  /// form.
  static bool isAccumulated(Operation *add) {
    return llvm::any_of(add->getOperands(), [](Value operand) {
      return operand.getDefiningOp<nn::AccumulatorOp>() != nullptr;
    });
  }

  /// Whether only another addition of the same type reads it.
  static bool isPart(Operation *add) {
    return add->hasOneUse() && isa<nn::AddOp>(*add->user_begin()) &&
           !isAccumulated(*add->user_begin());
  }

  /// Whether a sum may be converted number by number.
  static bool isWider(nn::CastOp cast) {
    auto to = dyn_cast<FloatType>(nn::getTensorType(cast).getElementType()),
         from = dyn_cast<FloatType>(
             nn::getTensorType(cast->getOperand(0)).getElementType());
    return from && to && from.getWidth() < to.getWidth();
  }

  /// What `number` is the sum of on all devices; null: none, or it is read
  /// elsewhere, too.
  static dist::AllReduceOp findSum(Value number) {
    if (number.hasOneUse())
      if (auto cast = number.getDefiningOp<nn::CastOp>(); cast && isWider(cast))
        number = cast->getOperand(0);
    auto sum = number.getDefiningOp<dist::AllReduceOp>();
    return sum && sum->hasOneUse() && sum.getKind() == nn::ReduceKind::sum
               ? sum
               : nullptr;
  }

  void combine(nn::AddOp whole) {
    llvm::MapVector<ArrayAttr, SmallVector<Value>> sums; ///< by axes
    SmallVector<Value> all;
    SmallVector<Operation *> adds = {whole};
    SmallVector<Value> open = {whole->getOperand(1), whole->getOperand(0)};
    while (!open.empty()) {
      Value number = open.pop_back_val();
      auto add = number.getDefiningOp<nn::AddOp>();
      if (add && isPart(add)) {
        adds.push_back(add);
        open.append({add->getOperand(1), add->getOperand(0)});
      } else if (dist::AllReduceOp sum = findSum(number)) {
        sums[sum.getAxes()].push_back(number);
      } else {
        all.push_back(number);
      }
    }
    if (llvm::none_of(sums, [](auto &each) { return each.second.size() > 1; }))
      return;
    ImplicitLocOpBuilder b(whole.getLoc(), whole);
    const auto type = nn::getTensorType(whole);
    auto add = [&](ArrayRef<Value> numbers) {
      Value total = numbers.front();
      for (Value number : numbers.drop_front())
        total = nn::AddOp::create(b, type, total, number);
      return total;
    };
    for (auto &[axes, numbers] : sums) {
      dist::AllReduceOp first = findSum(numbers.front());
      for (Value &number : numbers) {
        dist::AllReduceOp sum = findSum(number);
        Operation *cast = number.getDefiningOp<nn::CastOp>();
        number = cast ? nn::CastOp::create(b, type, sum.getX()) : sum.getX();
        if (cast)
          unused.push_back(cast);
        unused.push_back(sum);
      }
      all.push_back(dist::AllReduceOp::create(b, type, nn::ReduceKind::sum,
                                              add(numbers), axes,
                                              first.getReasonAttr()));
    }
    whole.replaceAllUsesWith(add(all));
    unused.insert(unused.begin(), adds.begin(), adds.end());
  }

  func::FuncOp function;
  SmallVector<Operation *> unused; ///< an op's readers before it
};

class Combiner {
public:
  Combiner(func::FuncOp function, const CostModel &machine)
      : function(function), machine(machine) {}

  void run() {
    SmallVector<dist::CollectiveOpInterface> collectives;
    analysis::Rates known;
    for (auto op : function.getOps<dist::CollectiveOpInterface>()) {
      collectives.push_back(op);
      rates[op] = known.getRate(op.getOperation());
    }
    SmallVector<dist::AllReduceOp> group;
    for (dist::CollectiveOpInterface collective : collectives) {
      auto next = dyn_cast<dist::AllReduceOp>(collective.getOperation());
      if (next && isLeftToPlan(next))
        continue;
      if (next && !group.empty() && joins(group, next)) {
        group.push_back(next);
        continue;
      }
      finish(group);
      group.clear();
      if (next)
        group.push_back(next);
    }
    finish(group);
  }

private:
  static RankedTensorType getType(dist::AllReduceOp op) {
    return cast<RankedTensorType>(op.getType());
  }

  /// The tensors of a group, one after another.
  static RankedTensorType getJoinedType(ArrayRef<dist::AllReduceOp> group) {
    int64_t elements = 0;
    for (dist::AllReduceOp op : group)
      elements += getType(op).getNumElements();
    return RankedTensorType::get({elements},
                                 getType(group[0]).getElementType());
  }

  /// Whether stages that are decided later may separate what is combined here:
  /// each of them has nodes, and sums of gradients, of its own.
  bool mayBeApart(dist::AllReduceOp first, dist::AllReduceOp next) {
    return getInteger(function, kDeviceCountAttr, 1) > 1 &&
           (llvm::is_contained(first.getAxes().getAsValueRange<StringAttr>(),
                               dist::kDataAxis) ||
            getNodeNames(first.getLoc()) != getNodeNames(next.getLoc()));
  }

  /// Gradients are joined where they lie, when the plan is made: nothing is
  /// copied for that. Sums in several lanes are not.
  bool isLeftToPlan(dist::AllReduceOp op) {
    return llvm::is_contained(op.getAxes().getAsValueRange<StringAttr>(),
                              dist::kDataAxis) &&
           !function->hasAttr(dist::kReproducibleAttr);
  }

  /// Whether one more is of the same kind, depends on none of the others, and
  /// is worth being copied.
  bool joins(ArrayRef<dist::AllReduceOp> group, dist::AllReduceOp next) {
    dist::AllReduceOp first = group[0];
    // What is computed once a step cannot be with what each micro-batch needs.
    if (next.getKind() != first.getKind() ||
        rates.lookup(next) != rates.lookup(first) ||
        next.getAxes() != first.getAxes() ||
        getType(next).getElementType() != getType(first).getElementType() ||
        mayBeApart(first, next))
      return false;
    for (Operation *op : getOpsAfter(first, next))
      if (op == next.getOperation())
        return false;
    const ArrayAttr axes = first.getAxes();
    SmallVector<dist::AllReduceOp> more(group);
    more.push_back(next);
    const double spared = getNs(getJoinedType(group), axes) +
                          getNs(getType(next), axes) -
                          getNs(getJoinedType(more), axes);
    return spared >
           getCopyNs(getJoinedType(more)) - getCopyNs(getJoinedType(group));
  }

  /// The ops up to `last` that depend on `first`, or on an all_reduce between
  /// them, in order.
  static SmallVector<Operation *> getOpsAfter(dist::AllReduceOp first,
                                              dist::AllReduceOp last) {
    llvm::SetVector<Operation *> late;
    for (Operation *op = first;; op = op->getNextNode()) {
      if (op != first.getOperation() &&
          llvm::any_of(op->getOperands(), [&](Value operand) {
            Operation *producer = operand.getDefiningOp();
            return producer && (late.contains(producer) ||
                                (isa<dist::AllReduceOp>(producer) &&
                                 producer->getBlock() == first->getBlock() &&
                                 !producer->isBeforeInBlock(first)));
          }))
        late.insert(op);
      if (op == last.getOperation())
        return late.takeVector();
    }
  }

  /// Of one all_reduce; `axes` has all that are combined.
  double getNs(RankedTensorType type, ArrayAttr axes) {
    const int64_t devices = dist::getGroupSize(function, axes);
    return machine.getCollectiveNs(
        abi::sentBytes(abi::CollectiveKind::all_reduce, nn::getByteSize(type),
                       devices),
        devices);
  }

  /// The time to put tensors one after another.
  double getCopyNs(RankedTensorType type) {
    OwningOpRef<ModuleOp> scratch = makeScratch(function);
    OpBuilder builder = OpBuilder::atBlockEnd(scratch->getBody());
    Value whole = scratch->getBody()->addArgument(type, function.getLoc());
    Operation *copy =
        nn::ConcatOp::create(builder, function.getLoc(), type, whole, 0);
    analysis::Rates rates;
    return machine
        .getClusterTime({copy, nn::ClusterKind::kernel,
                         2 * nn::getByteSize(type), 0, rates},
                        {})
        .modelledNs;
  }

  void finish(ArrayRef<dist::AllReduceOp> group) {
    if (group.size() < 2)
      return;
    const ArrayAttr axes = dist::AllReduceOp(group[0]).getAxes();
    double apart = 0;
    for (dist::AllReduceOp op : group)
      apart += getNs(getType(op), axes);
    const RankedTensorType type = getJoinedType(group);
    if (apart > getNs(type, axes) + getCopyNs(type))
      combine(group, type);
  }

  void combine(ArrayRef<dist::AllReduceOp> group, RankedTensorType type) {
    dist::AllReduceOp last = group.back();
    // Who reads one of them waits for all.
    Operation *end = last;
    for (Operation *op : getOpsAfter(group.front(), last)) {
      op->moveAfter(end);
      end = op;
    }
    OpBuilder builder(last);
    SmallVector<Value> parts;
    SmallVector<Location> locs;
    SmallVector<std::string> reasons;
    for (dist::AllReduceOp op : group) {
      const int64_t elements = getType(op).getNumElements();
      parts.push_back(nn::ReshapeOp::create(
          builder, op.getLoc(), type.clone(ArrayRef(elements)), op.getX()));
      locs.push_back(op.getLoc());
      reasons.push_back(op.getReason().str());
    }
    const Location loc = FusedLoc::get(builder.getContext(), locs);
    Value joined = nn::ConcatOp::create(builder, loc, type, parts, 0);
    joined = dist::AllReduceOp::create(
        builder, loc, type, last.getKind(), joined, last.getAxes(),
        builder.getStringAttr(llvm::join(reasons, "; ")));
    int64_t begin = 0;
    for (dist::AllReduceOp op : group) {
      const int64_t limit = begin + getType(op).getNumElements();
      Value part = nn::SliceOp::create(
          builder, op.getLoc(), type.clone(ArrayRef(limit - begin)), joined,
          ArrayRef(begin), ArrayRef(limit), ArrayRef<int64_t>(1));
      part = nn::ReshapeOp::create(builder, op.getLoc(), getType(op), part);
      op.replaceAllUsesWith(part);
      op.erase();
      begin = limit;
    }
  }

  func::FuncOp function;
  const CostModel &machine;
  llvm::DenseMap<Operation *, analysis::Rate> rates; ///< before any change
};

struct DistCombineCollectivesPass
    : impl::DistCombineCollectivesPassBase<DistCombineCollectivesPass> {
  using DistCombineCollectivesPassBase::DistCombineCollectivesPassBase;

  LogicalResult run(func::FuncOp function) override {
    if (function.getOps<dist::CollectiveOpInterface>().empty())
      return success();
    auto models = PARTITA_TRY(CostModels::get(function));
    // Of another order of additions, bits may differ.
    if (!function->hasAttr(dist::kReproducibleAttr))
      NumberAdder(function).run();
    Combiner(function, models->at(0)).run();
    return success();
  }
};

} // namespace
} // namespace partita::shard
