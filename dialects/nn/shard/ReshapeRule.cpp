//===- ReshapeRule.cpp - Common factors of two shapes ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include <numeric>

using namespace mlir;

namespace partita::nn {

namespace {
/// What is left of a dimension between the factors that were split off.
struct Rest {
  int64_t size;
  SmallVector<int64_t> outer, inner;
};

/// Splits two shapes of the same elements into factors that both have in the
/// same order:
///
///   [8, 12] -> [96]       i = 8, j = 12; {{i}, {j}} -> {{i, j}}
///   [6, 4] -> [3, 8]      i = 3, j = 2, k = 4; {{i, j}, {k}} -> {{i}, {j, k}}
///   [4, 6] -> [6, 4]      i = 2, 2 and 3, 3 and 2, j = 2: what is between the
///                         outer and the inner factors does not split
class Splitter {
public:
  Splitter(ArrayRef<int64_t> from, ArrayRef<int64_t> to)
      : from(getRests(from)), to(getRests(to)) {}

  ShardingRule split() {
    splitOff(from.begin(), from.end(), to.begin(), to.end(), &Rest::outer);
    splitOff(from.rbegin(), from.rend(), to.rbegin(), to.rend(), &Rest::inner);
    rule.operands = {getFactors(from)};
    rule.results = {getFactors(to)};
    rule.can_pad = true;
    return std::move(rule);
  }

private:
  static SmallVector<Rest> getRests(ArrayRef<int64_t> shape) {
    return llvm::map_to_vector(shape,
                               [](int64_t size) { return Rest{size, {}, {}}; });
  }

  /// Splits factors off dimensions, from the outermost on or, with reverse
  /// iterators, from the innermost.
  template <typename Iterator>
  void splitOff(Iterator a, Iterator endA, Iterator b, Iterator endB,
                SmallVector<int64_t> Rest::*side) {
    auto isLeft = [](const Rest &rest) { return rest.size != 1; };
    while (true) {
      a = std::find_if(a, endA, isLeft);
      b = std::find_if(b, endB, isLeft);
      if (a == endA || b == endB)
        return;
      int64_t common = std::gcd(a->size, b->size);
      if (common == 1)
        return;
      int64_t factor = rule.addFactor(common);
      for (Rest *rest : {&*a, &*b}) {
        rest->size /= common;
        (rest->*side).push_back(factor);
      }
    }
  }

  DimFactors getFactors(ArrayRef<Rest> rests) {
    DimFactors dims;
    for (const Rest &rest : rests) {
      SmallVector<int64_t> factors(rest.outer);
      if (rest.size != 1)
        factors.push_back(rule.addFactor(rest.size, FactorKind::replicated));
      llvm::append_range(factors, llvm::reverse(rest.inner));
      dims.push_back(factors);
    }
    return dims;
  }

  SmallVector<Rest> from, to;
  ShardingRule rule;
};
} // namespace

/// A tensor without elements has no order of them, and is replicated.
ShardingRule ReshapeOp::getShardingRule() {
  ArrayRef<int64_t> from = getX().getType().getShape();
  ArrayRef<int64_t> to = getType().getShape();
  if (!llvm::is_contained(from, 0))
    return Splitter(from, to).split();
  ShardingRule rule;
  auto addWhole = [&](ArrayRef<int64_t> shape) {
    DimFactors dims;
    for (int64_t size : shape)
      dims.push_back({rule.addFactor(size, FactorKind::replicated)});
    return dims;
  };
  rule.operands = {addWhole(from)};
  rule.results = {addWhole(to)};
  return rule;
}

} // namespace partita::nn
