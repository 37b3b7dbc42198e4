//===- DimParts.cpp - Parts of dimensions through ops ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DimParts.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace partita::analysis {

/// How many entries of the dimension lie between two of each factor.
static SmallVector<int64_t> getStrides(const nn::ShardingRule &rule,
                                       ArrayRef<int64_t> factors) {
  return computeStrides(llvm::map_to_vector(
      factors, [&](int64_t factor) { return rule.factors[factor].size; }));
}

/// A part of size 1 is a factor of size 1, or lies before one.
static FactorParts splitUnit(const nn::ShardingRule &rule,
                             ArrayRef<int64_t> factors,
                             ArrayRef<int64_t> strides, int64_t inner) {
  FactorParts parts;
  for (auto [factor, stride] : llvm::zip_equal(factors, strides)) {
    const int64_t size = rule.factors[factor].size;
    if (inner % stride != 0 || inner > stride * size)
      continue;
    if (parts.empty() || size == 1)
      parts = {{factor, 1, inner / stride}};
  }
  return parts;
}

FactorParts splitPart(const nn::ShardingRule &rule, const nn::DimFactors &dims,
                      DimPart part) {
  ArrayRef<int64_t> factors = dims[part.dim];
  const SmallVector<int64_t> strides = getStrides(rule, factors);
  if (part.size == 1)
    return splitUnit(rule, factors, strides, part.inner);
  FactorParts parts;
  int64_t found = 1;
  for (auto [factor, stride] : llvm::zip_equal(factors, strides)) {
    const int64_t end = stride * rule.factors[factor].size;
    const int64_t from = std::max(stride, part.inner),
                  to = std::min(end, part.inner * part.size);
    if (from >= to)
      continue;
    if (from % stride != 0 || to % from != 0 || end % to != 0)
      return {};
    parts.push_back({factor, to / from, from / stride});
    found *= to / from;
  }
  if (found != part.size)
    return {};
  return parts;
}

bool hasFactors(const nn::DimFactors &dims, const FactorParts &parts) {
  return llvm::any_of(dims, [&](ArrayRef<int64_t> factors) {
    return llvm::any_of(parts, [&](const FactorPart &part) {
      return llvm::is_contained(factors, part.factor);
    });
  });
}

std::optional<DimPart> placeParts(const nn::ShardingRule &rule,
                                  const nn::DimFactors &dims,
                                  const FactorParts &parts) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (!llvm::is_contained(factors, parts.front().factor))
      continue;
    const SmallVector<int64_t> strides = getStrides(rule, factors);
    DimPart place{static_cast<int64_t>(dim), 1, 0};
    for (const FactorPart &part : parts) {
      const auto *at = llvm::find(factors, part.factor);
      if (at == factors.end())
        return std::nullopt;
      const int64_t inner = strides[at - factors.begin()] * part.inner;
      if (place.inner != 0 && place.inner != inner * part.size)
        return std::nullopt;
      place.inner = inner;
      place.size *= part.size;
    }
    return place;
  }
  return std::nullopt;
}

/// How many elements lie between two entries of a dimension.
static int64_t getStride(ArrayRef<int64_t> shape, int64_t dim) {
  return ShapedType::getNumElements(shape.drop_front(dim + 1));
}

/// Dimensions of size 1 between whose entries so many elements lie.
static SmallVector<int64_t> findUnitDims(ArrayRef<int64_t> shape,
                                         int64_t stride) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
    if (shape[dim] == 1 && getStride(shape, dim) == stride)
      dims.push_back(dim);
  return dims;
}

/// A part of size 1: of several dimensions of size 1 that it may be, the one at
/// the same place among them, or else the outermost or innermost as before.
static std::optional<DimPart> reshapeUnit(ArrayRef<int64_t> from,
                                          ArrayRef<int64_t> to, DimPart part,
                                          int64_t stride) {
  const SmallVector<int64_t> before = findUnitDims(from, stride),
                             after = findUnitDims(to, stride);
  if (!after.empty()) {
    const auto *own = llvm::find(before, part.dim);
    const int64_t place = own - before.begin();
    if (own == before.end() || place == 0)
      return DimPart{after.front(), 1, 1};
    if (before.size() == after.size())
      return DimPart{after[place], 1, 1};
    if (own + 1 == before.end())
      return DimPart{after.back(), 1, 1};
    return std::nullopt;
  }
  for (int64_t dim = 0; dim < static_cast<int64_t>(to.size()); ++dim)
    if (getStride(to, dim) * to[dim] == stride)
      return DimPart{dim, 1, to[dim]};
  return std::nullopt;
}

std::optional<DimPart> reshapePart(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                                   DimPart part) {
  if (llvm::is_contained(from, 0))
    return std::nullopt;
  const int64_t stride = getStride(from, part.dim) * part.inner;
  if (part.size == 1)
    return reshapeUnit(from, to, part, stride);
  for (int64_t dim = 0; dim < static_cast<int64_t>(to.size()); ++dim) {
    const int64_t each = getStride(to, dim);
    if (stride % each == 0 && each * to[dim] % (stride * part.size) == 0)
      return DimPart{dim, part.size, stride / each};
  }
  return std::nullopt;
}

} // namespace partita::analysis
