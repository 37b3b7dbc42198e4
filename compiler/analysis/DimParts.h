//===- DimParts.h - Parts of dimensions through ops -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_DIMPARTS_H
#define PARTITA_COMPILER_ANALYSIS_DIMPARTS_H

#include "dialects/nn/shard/ShardingRule.h"

#include <optional>

namespace partita::analysis {

/// A part of a dimension. Entry e of the dimension belongs to entry
/// (e / inner) % size of the part.
struct DimPart {
  int64_t dim = 0;
  int64_t size = 1;
  int64_t inner = 1;
};

/// A part of a factor, in the same sense.
struct FactorPart {
  int64_t factor = 0;
  int64_t size = 1;
  int64_t inner = 1;

  bool operator==(const FactorPart &) const = default;
};
/// A part of a dimension as parts of its factors, the outermost first.
using FactorParts = llvm::SmallVector<FactorPart, 1>;

/// The parts of factors that make a part of a dimension of one tensor of an op.
/// None if it does not consist of such.
///
///   [8, 12], factors {{i}, {j}}, part {1, 4, 3}      {j, 4, 3}
///   [96], factors {{i, j}}, part {0, 8, 12}          {i, 8, 1}
FactorParts splitPart(const nn::ShardingRule &rule, const nn::DimFactors &dims,
                      DimPart part);

/// The opposite, for another tensor of the op. Nothing if the tensor does not
/// have them one after another in a dimension.
std::optional<DimPart> placeParts(const nn::ShardingRule &rule,
                                  const nn::DimFactors &dims,
                                  const FactorParts &parts);

/// Whether a tensor has one of the factors.
bool hasFactors(const nn::DimFactors &dims, const FactorParts &parts);

/// Where a part of a dimension is when elements in row-major order get another
/// shape. Nothing if it is no part of a dimension there. A part of size 1 is a
/// dimension of size 1 there if it can be one.
std::optional<DimPart> reshapePart(llvm::ArrayRef<int64_t> from,
                                   llvm::ArrayRef<int64_t> to, DimPart part);

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_DIMPARTS_H
