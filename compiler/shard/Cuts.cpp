//===- Cuts.cpp - How tensors are cut over axes ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/Cuts.h"

using namespace mlir;

namespace partita::shard {

bool isWhole(const Cuts &cuts) {
  return llvm::all_of(cuts, [](const DimCut &cut) { return cut.isWhole(); });
}

bool isSame(const Cuts &a, const Cuts &b) {
  if (isWhole(a) || isWhole(b))
    return isWhole(a) && isWhole(b);
  return a == b;
}

dist::ShardingAttr getAttr(MLIRContext *context, const Cuts &cuts,
                           int64_t rank) {
  SmallVector<dist::DimAttr> dims;
  for (int64_t i = 0; i < rank; ++i) {
    const DimCut cut =
        i < static_cast<int64_t>(cuts.size()) ? cuts[i] : DimCut();
    dims.push_back(dist::DimAttr::get(context, cut.axes, cut.blocks));
  }
  return dist::ShardingAttr::get(context, dims, {});
}

Cuts getCuts(dist::ShardingAttr sharding) {
  Cuts cuts;
  if (sharding)
    for (dist::DimAttr dim : sharding.getDims())
      cuts.push_back({AxisList(dim.getAxes()), dim.getBlocks()});
  return cuts;
}

dist::ShardingAttr getSharding(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return function ? function.getArgAttrOfType<dist::ShardingAttr>(
                          argument.getArgNumber(), dist::kShardingAttr)
                    : dist::ShardingAttr();
  }
  return value.getDefiningOp()->getAttrOfType<dist::ShardingAttr>(
      dist::kShardingAttr);
}

Cuts getCuts(Value value) { return getCuts(getSharding(value)); }

void setCuts(Value value, const Cuts &cuts) {
  if (!isWhole(cuts))
    fixCuts(value, cuts);
}

void fixCuts(Value value, const Cuts &cuts) {
  const Attribute attr =
      getAttr(value.getContext(), cuts,
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
  for (auto axis : all.getAsRange<dist::AxisAttr>()) {
    if (axis.getName() == dist::kDataAxis ||
        axis.getName() == dist::kReplicaAxis ||
        axis.getName() == dist::kStageAxis)
      continue;
    names.push_back(StringAttr::get(function.getContext(), axis.getName()));
    sizes[names.back()] = axis.getSize();
  }
}

int64_t Axes::getSize(ArrayRef<StringAttr> axes) const {
  int64_t size = 1;
  for (StringAttr axis : axes)
    size *= getSize(axis);
  return size;
}

/// The factor of a dimension that is cut if the dimension is, in `blocks` equal
/// parts, and how many parts of it that are; -1 if it is none.
static std::pair<int64_t, int64_t> findFactor(const nn::ShardingRule &rule,
                                              ArrayRef<int64_t> factors,
                                              int64_t blocks) {
  int64_t outer = 1;
  for (int64_t factor : factors) {
    const int64_t size = rule.factors[factor].size;
    if (blocks < outer * size)
      return blocks % outer == 0 ? std::pair(factor, blocks / outer)
                                 : std::pair<int64_t, int64_t>(-1, 1);
    outer *= size;
  }
  return {-1, 1};
}

bool canCut(const nn::ShardingRule &rule, int64_t factor, int64_t parts) {
  const nn::Factor &cut = rule.factors[factor];
  if (!cut.canCut())
    return false;
  if (cut.size % parts == 0)
    return true;
  auto standsAlone = [&](ArrayRef<nn::DimFactors> tensors) {
    return llvm::all_of(tensors, [&](const nn::DimFactors &dims) {
      return llvm::all_of(dims, [&](ArrayRef<int64_t> list) {
        return list.size() == 1 || !llvm::is_contained(list, factor);
      });
    });
  };
  return rule.can_pad && cut.size > parts && standsAlone(rule.operands) &&
         standsAlone(rule.results);
}

bool addCuts(const nn::ShardingRule &rule, const nn::DimFactors &dims,
             const Cuts &cuts, const Axes &axes, FactorCuts &factors) {
  bool isAll = true;
  factors.resize(rule.factors.size());
  for (auto [dim, cut] : llvm::enumerate(cuts)) {
    if (cut.isWhole())
      continue;
    const auto [factor, blocks] = findFactor(rule, dims[dim], cut.blocks);
    bool fits =
        factor >= 0 && canCut(rule, factor, blocks * axes.getSize(cut.axes));
    // What is rounded up, or must know its begin, is no block of a larger
    // whole.
    if (fits && blocks > 1)
      fits = !rule.factors[factor].needs_begin &&
             rule.factors[factor].size % (blocks * axes.getSize(cut.axes)) == 0;
    const DimCut wanted{cut.axes, blocks};
    // Each factor is cut in one way, and each axis cuts one factor.
    if (fits && factors[factor].isWhole())
      fits = llvm::none_of(factors, [&](const DimCut &other) {
        return llvm::any_of(wanted.axes, [&](StringAttr axis) {
          return llvm::is_contained(other.axes, axis);
        });
      });
    else if (fits)
      fits = factors[factor] == wanted;
    // A dimension is cut in one of its factors.
    fits =
        fits && llvm::none_of(dims[dim], [&, chosen = factor](int64_t other) {
          return other != chosen && !factors[other].isWhole();
        });
    if (fits)
      factors[factor] = wanted;
    isAll &= fits;
  }
  return isAll;
}

Cuts projectCuts(const nn::ShardingRule &rule, const nn::DimFactors &dims,
                 const FactorCuts &factors) {
  Cuts cuts(dims.size());
  if (factors.empty())
    return cuts;
  for (auto [dim, list] : llvm::enumerate(dims)) {
    int64_t outer = 1;
    for (int64_t factor : list) {
      if (!factors[factor].isWhole() && cuts[dim].isWhole())
        cuts[dim] = {factors[factor].axes, outer * factors[factor].blocks};
      outer *= rule.factors[factor].size;
    }
  }
  return cuts;
}

SmallVector<dist::PartialAttr> getPartials(const nn::ShardingRule &rule,
                                           const FactorCuts &factors) {
  SmallVector<dist::PartialAttr> partials;
  for (auto [factor, cut] : llvm::enumerate(factors))
    if (rule.factors[factor].kind == nn::FactorKind::reduction)
      for (StringAttr axis : cut.axes)
        partials.push_back(dist::PartialAttr::get(
            axis.getContext(), axis.getValue(), rule.factors[factor].combine));
  return partials;
}

RankedTensorType getLocalType(RankedTensorType type, const Cuts &cuts,
                              const Axes &axes) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, cut] : llvm::zip(shape, cuts))
    size = llvm::divideCeil(size, axes.getSize(cut.axes));
  return type.clone(shape);
}

} // namespace partita::shard
