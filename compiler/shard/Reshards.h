//===- Reshards.h - Moves from one layout to another ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_RESHARDS_H
#define PARTITA_COMPILER_SHARD_RESHARDS_H

#include "compiler/cost/CostModel.h"
#include "compiler/shard/Sharding.h"

#include <optional>

namespace partita::shard {

/// How the devices have a tensor: how it is cut, and along which axes they have
/// parts of a sum.
struct Layout {
  Sharding sharding;
  llvm::SmallVector<dist::PartialAttr> partials;
};

/// One op that brings a tensor from one layout to another, of the devices along
/// `axes`.
struct Move {
  std::optional<abi::CollectiveKind> collective; ///< none: a `dist.shard`
  AxisList axes;
  nn::ReduceKind reduction = nn::ReduceKind::sum;
  int64_t from = -1; ///< the dimension that is cut along `axes` before
  int64_t to = -1;   ///< the dimension that is cut along `axes` afterwards
  int64_t fromBlocks = 1, toBlocks = 1; ///< of these dimensions
  int64_t fromSize = 0, toSize = 0; ///< of a device's part of them, afterwards
};

struct Reshard {
  llvm::SmallVector<Move> moves;
  double ns = 0;         ///< the time that they take
  int64_t sentBytes = 0; ///< by each device
};

/// The fastest sequence of moves from a layout to cuts. With an axis "x" of 4
/// devices, of the same time for each byte, and a latency:
///
///   [{x}, {}]          to [{}, {x}]   all_to_all
///   [{x}, {}]          to [{}, {}]    all_gather
///   [{}, {}]           to [{}, {x}]   shard, which takes no time
///   [{}, {}] partial x to [{x}, {}]   reduce_scatter
///   [{}, {}] partial x to [{}, {}]    all_reduce
///   [{x}, {}]          to [{}, {y}]   shard, then all_gather of what is left
Reshard chooseReshard(mlir::RankedTensorType type, const Layout &from,
                      const Sharding &to, const Axes &axes,
                      const CostModel &machine);

/// Builds the ops of a reshard. `local` is a device's part of the tensor
/// before. Returns its part afterwards. `reason` says in words why the tensor
/// is needed in another way.
mlir::Value buildReshard(mlir::OpBuilder &builder, mlir::Location loc,
                         const Reshard &reshard, mlir::Value local,
                         const Axes &axes, mlir::StringAttr reason);

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_RESHARDS_H
