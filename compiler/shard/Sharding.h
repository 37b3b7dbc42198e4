//===- Sharding.h - How tensors are sharded ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_SHARDING_H
#define PARTITA_COMPILER_SHARD_SHARDING_H

#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::shard {

/// Axes along which something is cut, the first one outermost.
using AxisList = llvm::SmallVector<mlir::StringAttr, 1>;

/// The sharding of a dimension. It consists of `blocks` equal parts, each of
/// which is cut along the axes. A block that does not divide is cut into parts
/// that are rounded up to multiples of `alignment` elements; otherwise it is 1.
struct DimSharding {
  AxisList axes; ///< none: it is whole
  int64_t blocks = 1;
  int64_t alignment = 1;

  bool isWhole() const { return axes.empty(); }
  bool operator==(const DimSharding &) const = default;
};

/// The sharding of a tensor, by dimension. An empty list: the tensor is whole.
using Sharding = llvm::SmallVector<DimSharding>;

bool isWhole(const Sharding &sharding);
/// Whether both cut a tensor in the same way.
bool isSame(const Sharding &a, const Sharding &b);

/// A sharding as an attribute with `rank` entries.
dist::ShardingAttr getAttr(mlir::MLIRContext *context, const Sharding &sharding,
                           int64_t rank);
Sharding getSharding(dist::ShardingAttr attr);
/// The sharding of a value, from the attribute of its op or argument.
Sharding getSharding(mlir::Value value);
dist::ShardingAttr getShardingAttr(mlir::Value value);
/// Writes the sharding of a value. Whole tensors have no attribute.
void setSharding(mlir::Value value, const Sharding &sharding);
/// The same for a value of which somebody says that it is cut so. A tensor that
/// is whole by that word has an attribute, and is not cut.
void fixSharding(mlir::Value value, const Sharding &sharding);

/// On an op: its result is each replica's own, and what is meant is the sum of
/// those of all replicas.
inline constexpr llvm::StringLiteral kOwnAttr = "dist.own";
/// On a sum over micro-batches: what it sums is joined over replicas in each
/// micro-batch.
inline constexpr llvm::StringLiteral kJoinedAttr = "dist.joined";
/// Whether the replicas' results are partial sums along "data". A sum over
/// micro-batches is one of the replica's own, unless that is joined before.
bool isOwnOfReplica(mlir::Operation *op);

/// The axes of a model's function along which tensors may be cut: all but
/// "data", "replica" and "stage". Where a step updates states, "data" is one of
/// them, for what a step computes once of all its micro-batches: replicas have
/// micro-batches of their own, and what they make of the sums may be shared.
class Axes {
public:
  explicit Axes(mlir::func::FuncOp function);

  bool empty() const { return sizes.empty(); }
  /// Those that may cut any tensor: all but "data".
  llvm::ArrayRef<mlir::StringAttr> getNames() const { return names; }
  /// "data", if a step has all of its micro-batches, so that replicas may meet;
  /// else null.
  mlir::StringAttr getData() const { return data; }
  /// Devices along an axis; 0 if there is no such axis.
  int64_t getSize(mlir::StringAttr axis) const { return sizes.lookup(axis); }
  /// Devices along several axes: the product of their sizes.
  int64_t getSize(llvm::ArrayRef<mlir::StringAttr> axes) const;

private:
  llvm::SmallVector<mlir::StringAttr> names;
  mlir::StringAttr data;
  llvm::DenseMap<mlir::StringAttr, int64_t> sizes;
};

/// The size of the part that one device has of a dimension, or of a factor.
int64_t getPartSize(int64_t size, const DimSharding &cut, const Axes &axes);
/// Whether all devices have parts of the same size, without padding.
bool isEven(int64_t size, const DimSharding &cut, const Axes &axes);

/// How an op cuts its factors.
using FactorShardings = llvm::SmallVector<DimSharding>;

/// The sizes of one device's parts of the factors of an op.
llvm::SmallVector<int64_t> getPartSizes(const nn::ShardingRule &rule,
                                        const FactorShardings &factors,
                                        const Axes &axes);

/// Cuts the factors of an op as one of its tensors is cut. Skips cuts that a
/// factor does not allow, or that contradict the cuts in `factors`. Returns
/// whether no cut was skipped.
bool addSharding(const nn::ShardingRule &rule, const nn::DimFactors &dims,
                 const Sharding &sharding, const Axes &axes,
                 FactorShardings &factors);

/// How a tensor of an op is cut if the op's factors are cut as `factors` says.
Sharding projectSharding(const nn::ShardingRule &rule,
                         const nn::DimFactors &dims,
                         const FactorShardings &factors, const Axes &axes);

/// The alignment to which the parts of a dimension would have to be rounded up,
/// so that an op could take it cut along these axes: the size of the factors
/// behind the one that is cut. 0 if that is not what is missing.
int64_t getNeededAlignment(const nn::ShardingRule &rule,
                           llvm::ArrayRef<int64_t> factors,
                           const DimSharding &cut, const Axes &axes);

/// The axes along which results are partial: those that cut a factor that is
/// summed over.
llvm::SmallVector<dist::PartialAttr>
getPartials(const nn::ShardingRule &rule, const FactorShardings &factors);

/// Whether a factor may be cut in some way.
bool canShard(const nn::ShardingRule &rule, int64_t factor,
              const DimSharding &cut, const Axes &axes);

/// Whether partial results of an op along a factor, joined, may round
/// differently than the whole: sums and products of floats. Largest and
/// smallest elements are exact, and integers wrap around.
bool isRoundingSum(mlir::Operation *op, const nn::Factor &factor);

/// The type of the part that one device has.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType type,
                                    const Sharding &sharding, const Axes &axes);

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_SHARDING_H
