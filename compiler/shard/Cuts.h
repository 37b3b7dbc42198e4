//===- Cuts.h - How tensors are cut over axes -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_CUTS_H
#define PARTITA_COMPILER_SHARD_CUTS_H

#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::shard {

/// Axes along which something is cut, the first one outermost.
using AxisList = llvm::SmallVector<mlir::StringAttr, 1>;

/// A dimension is `blocks` equal parts, each of which is cut along the axes.
struct DimCut {
  AxisList axes; ///< none: it is whole
  int64_t blocks = 1;

  bool isWhole() const { return axes.empty(); }
  bool operator==(const DimCut &) const = default;
};

/// By dimension. An empty list stands for a tensor that is whole.
using Cuts = llvm::SmallVector<DimCut>;

bool isWhole(const Cuts &cuts);
/// Whether they say the same.
bool isSame(const Cuts &a, const Cuts &b);

/// As an attribute; `rank` entries.
dist::ShardingAttr getAttr(mlir::MLIRContext *context, const Cuts &cuts,
                           int64_t rank);
Cuts getCuts(dist::ShardingAttr sharding);
/// What stands on a value: its op's attribute, or its argument's.
Cuts getCuts(mlir::Value value);
dist::ShardingAttr getSharding(mlir::Value value);
/// Whole tensors have no attribute.
void setCuts(mlir::Value value, const Cuts &cuts);

/// The axes of a model's function along which tensors may be cut: all but
/// "data" and "stage".
class Axes {
public:
  explicit Axes(mlir::func::FuncOp function);

  bool empty() const { return sizes.empty(); }
  llvm::ArrayRef<mlir::StringAttr> getNames() const { return names; }
  /// Devices along an axis; 0 if there is no such one.
  int64_t getSize(mlir::StringAttr axis) const { return sizes.lookup(axis); }
  /// Devices along several together.
  int64_t getSize(llvm::ArrayRef<mlir::StringAttr> axes) const;

private:
  llvm::SmallVector<mlir::StringAttr> names;
  llvm::DenseMap<mlir::StringAttr, int64_t> sizes;
};

/// How an op cuts its factors.
using FactorCuts = llvm::SmallVector<DimCut>;

/// Cuts the factors of an op as a tensor of it is cut, as far as they can be
/// and are not cut otherwise. Whether that is all of the tensor's cuts.
bool addCuts(const nn::ShardingRule &rule, const nn::DimFactors &dims,
             const Cuts &cuts, const Axes &axes, FactorCuts &factors);

/// How a tensor of an op is cut whose factors are cut so.
Cuts projectCuts(const nn::ShardingRule &rule, const nn::DimFactors &dims,
                 const FactorCuts &factors);

/// Of factors that are summed over: axes along which results are partial.
llvm::SmallVector<dist::PartialAttr> getPartials(const nn::ShardingRule &rule,
                                                 const FactorCuts &factors);

/// Whether a factor may be cut into so many parts.
bool canCut(const nn::ShardingRule &rule, int64_t factor, int64_t parts);

/// The part that one device has.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType type,
                                    const Cuts &cuts, const Axes &axes);

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_CUTS_H
