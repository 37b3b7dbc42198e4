//===- Sharding.cpp - How tensors are cut over axes -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/Sharding.h"

using namespace mlir;

namespace partita::shard {

bool isWhole(const Sharding &sharding) {
  return llvm::all_of(sharding,
                      [](const DimSharding &cut) { return cut.isWhole(); });
}

bool isSame(const Sharding &a, const Sharding &b) {
  if (isWhole(a) || isWhole(b))
    return isWhole(a) && isWhole(b);
  return a == b;
}

dist::ShardingAttr getAttr(MLIRContext *context, const Sharding &sharding,
                           int64_t rank) {
  SmallVector<dist::DimAttr> dims;
  for (int64_t i = 0; i < rank; ++i) {
    const DimSharding cut =
        i < static_cast<int64_t>(sharding.size()) ? sharding[i] : DimSharding();
    dims.push_back(
        dist::DimAttr::get(context, cut.axes, cut.blocks, cut.alignment));
  }
  return dist::ShardingAttr::get(context, dims, {});
}

Sharding getSharding(dist::ShardingAttr attr) {
  Sharding sharding;
  if (attr)
    for (dist::DimAttr dim : attr.getDims())
      sharding.push_back(
          {AxisList(dim.getAxes()), dim.getBlocks(), dim.getAlignment()});
  return sharding;
}

dist::ShardingAttr getShardingAttr(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return function ? function.getArgAttrOfType<dist::ShardingAttr>(
                          argument.getArgNumber(), dist::kShardingAttr)
                    : dist::ShardingAttr();
  }
  return value.getDefiningOp()->getAttrOfType<dist::ShardingAttr>(
      dist::kShardingAttr);
}

Sharding getSharding(Value value) {
  return getSharding(getShardingAttr(value));
}

void setSharding(Value value, const Sharding &sharding) {
  if (!isWhole(sharding))
    fixSharding(value, sharding);
}

void fixSharding(Value value, const Sharding &sharding) {
  const Attribute attr =
      getAttr(value.getContext(), sharding,
              cast<RankedTensorType>(value.getType()).getRank());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    cast<func::FuncOp>(argument.getOwner()->getParentOp())
        .setArgAttr(argument.getArgNumber(), dist::kShardingAttr, attr);
    return;
  }
  value.getDefiningOp()->setAttr(dist::kShardingAttr, attr);
}

Axes::Axes(func::FuncOp function) {
  auto all = function->getAttrOfType<ArrayAttr>(dist::kAxesAttr);
  if (!all)
    return;
  auto module = function->getParentOfType<ModuleOp>();
  const bool isStep = module && module->hasAttr(dist::kFullStepsAttr);
  for (auto axis : all.getAsRange<dist::AxisAttr>()) {
    if (axis.getName() == dist::kReplicaAxis ||
        axis.getName() == dist::kStageAxis)
      continue;
    auto name = StringAttr::get(function.getContext(), axis.getName());
    if (axis.getName() == dist::kDataAxis && isStep)
      data = name;
    else if (axis.getName() != dist::kDataAxis)
      names.push_back(name);
    else
      continue;
    sizes[name] = axis.getSize();
  }
}

int64_t Axes::getSize(ArrayRef<StringAttr> axes) const {
  int64_t size = 1;
  for (StringAttr axis : axes)
    size *= getSize(axis);
  return size;
}

int64_t getPartSize(int64_t size, const DimSharding &cut, const Axes &axes) {
  const int64_t pieces = size / cut.blocks / cut.alignment;
  return cut.isWhole() || isEven(size, cut, axes)
             ? size / axes.getSize(cut.axes)
             : cut.blocks * cut.alignment *
                   llvm::divideCeil(pieces, axes.getSize(cut.axes));
}

SmallVector<int64_t> getPartSizes(const nn::ShardingRule &rule,
                                  const FactorShardings &factors,
                                  const Axes &axes) {
  SmallVector<int64_t> sizes;
  for (auto [factor, cut] : llvm::zip_equal(rule.factors, factors))
    sizes.push_back(getPartSize(factor.size, cut, axes));
  return sizes;
}

bool isEven(int64_t size, const DimSharding &cut, const Axes &axes) {
  return size % (cut.blocks * axes.getSize(cut.axes)) == 0 &&
         cut.alignment == 1;
}

namespace {
/// One of the factors of a dimension, and what is before and behind it.
struct FactorPlace {
  int64_t factor = -1; ///< -1: none
  int64_t outer = 1, inner = 1;
};
} // namespace

/// The factor of a dimension that is cut if the dimension is, in `blocks` equal
/// parts.
static FactorPlace findFactor(const nn::ShardingRule &rule,
                              ArrayRef<int64_t> factors, int64_t blocks) {
  FactorPlace place;
  for (auto [index, factor] : llvm::enumerate(factors)) {
    const int64_t size = rule.factors[factor].size;
    if (blocks < place.outer * size) {
      if (blocks % place.outer == 0)
        place.factor = factor;
      for (int64_t behind : factors.drop_front(index + 1))
        place.inner *= rule.factors[behind].size;
      return place;
    }
    place.outer *= size;
  }
  return place;
}

bool canShard(const nn::ShardingRule &rule, int64_t factor,
              const DimSharding &cut, const Axes &axes) {
  const nn::Factor &of = rule.factors[factor];
  if (!of.canShard() || of.size % (cut.blocks * cut.alignment) != 0 ||
      (of.needs_begin && cut.blocks > 1) ||
      getPartSize(of.size, cut, axes) < of.least_part)
    return false;
  return isEven(of.size, cut, axes) ||
         (rule.can_pad &&
          of.size / (cut.blocks * cut.alignment) > axes.getSize(cut.axes));
}

int64_t getNeededAlignment(const nn::ShardingRule &rule,
                           ArrayRef<int64_t> factors, const DimSharding &cut,
                           const Axes &axes) {
  const FactorPlace place = findFactor(rule, factors, cut.blocks);
  if (cut.isWhole() || place.factor < 0 || place.inner == 1)
    return 0;
  DimSharding wanted{cut.axes, cut.blocks / place.outer, 1};
  return cut.alignment % place.inner != 0 &&
                 !isEven(rule.factors[place.factor].size, wanted, axes) &&
                 canShard(rule, place.factor, wanted, axes)
             ? place.inner
             : 0;
}

/// How a factor is cut if a dimension is; nothing if it cannot be cut so.
static std::optional<DimSharding>
getFactorSharding(const nn::ShardingRule &rule, const FactorPlace &place,
                  const DimSharding &cut, const Axes &axes) {
  if (place.factor < 0)
    return std::nullopt;
  const int64_t size = rule.factors[place.factor].size;
  DimSharding wanted{cut.axes, cut.blocks / place.outer, 1};
  // Parts that were rounded up consist of whole multiples of the factor.
  if (cut.alignment != 1 || !isEven(size, wanted, axes)) {
    if (cut.alignment % place.inner != 0)
      return std::nullopt;
    wanted.alignment = cut.alignment / place.inner;
  }
  if (!canShard(rule, place.factor, wanted, axes))
    return std::nullopt;
  return wanted;
}

bool addSharding(const nn::ShardingRule &rule, const nn::DimFactors &dims,
                 const Sharding &sharding, const Axes &axes,
                 FactorShardings &factors) {
  bool isAll = true;
  factors.resize(rule.factors.size());
  for (auto [dim, cut] : llvm::enumerate(sharding)) {
    if (cut.isWhole())
      continue;
    const FactorPlace place = findFactor(rule, dims[dim], cut.blocks);
    const int64_t factor = place.factor;
    const std::optional<DimSharding> found =
        getFactorSharding(rule, place, cut, axes);
    bool fits = found.has_value();
    const DimSharding wanted = found.value_or(DimSharding());
    // Each factor is cut in one way, and each axis cuts one factor.
    if (fits && factors[factor].isWhole())
      fits = llvm::none_of(factors, [&](const DimSharding &other) {
        return llvm::any_of(wanted.axes, [&](StringAttr axis) {
          return llvm::is_contained(other.axes, axis);
        });
      });
    else if (fits)
      fits = factors[factor] == wanted;
    // A dimension is cut in one of its factors.
    fits = fits && llvm::none_of(dims[dim], [&](int64_t other) {
             return other != factor && !factors[other].isWhole();
           });
    if (fits)
      factors[factor] = wanted;
    isAll &= fits;
  }
  return isAll;
}

Sharding projectSharding(const nn::ShardingRule &rule,
                         const nn::DimFactors &dims,
                         const FactorShardings &factors, const Axes &axes) {
  Sharding sharding(dims.size());
  if (factors.empty())
    return sharding;
  for (auto [dim, list] : llvm::enumerate(dims)) {
    int64_t outer = 1, inner = 1;
    for (int64_t factor : list)
      inner *= rule.factors[factor].size;
    for (int64_t factor : list) {
      const int64_t size = rule.factors[factor].size;
      const DimSharding &cut = factors[factor];
      // A factor without elements is not cut.
      if (size > 0)
        inner /= size;
      if (!cut.isWhole() && sharding[dim].isWhole())
        sharding[dim] = {cut.axes, outer * cut.blocks,
                         isEven(size, cut, axes) ? 1 : inner * cut.alignment};
      outer *= size;
    }
  }
  return sharding;
}

bool isOwnOfReplica(Operation *op) {
  return op->hasAttr(kOwnAttr) ||
         (isa<nn::SumMicroBatchesOp>(op) && !op->hasAttr(kJoinedAttr));
}

SmallVector<dist::PartialAttr> getPartials(const nn::ShardingRule &rule,
                                           const FactorShardings &factors) {
  SmallVector<dist::PartialAttr> partials;
  for (auto [factor, cut] : llvm::enumerate(factors))
    if (rule.factors[factor].kind == nn::FactorKind::reduction)
      for (StringAttr axis : cut.axes)
        partials.push_back(dist::PartialAttr::get(
            axis.getContext(), axis.getValue(), rule.factors[factor].combine));
  return partials;
}

bool isRoundingSum(Operation *op, const nn::Factor &factor) {
  return factor.kind == nn::FactorKind::reduction &&
         (factor.combine == nn::ReduceKind::sum ||
          factor.combine == nn::ReduceKind::prod) &&
         llvm::any_of(op->getResultTypes(), [](Type type) {
           return isa<FloatType>(getElementTypeOrSelf(type));
         });
}

RankedTensorType getLocalType(RankedTensorType type, const Sharding &sharding,
                              const Axes &axes) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, cut] : llvm::zip(shape, sharding))
    size = getPartSize(size, cut, axes);
  return type.clone(shape);
}

} // namespace partita::shard
