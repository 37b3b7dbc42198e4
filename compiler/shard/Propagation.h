//===- Propagation.h - Shardings of a whole graph ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_PROPAGATION_H
#define PARTITA_COMPILER_SHARD_PROPAGATION_H

#include "compiler/shard/Sharding.h"

#include "llvm/ADT/DenseSet.h"

#include <deque>

namespace partita::shard {

/// What is cut along some axes must be cut into multiples of so many elements.
/// Three heads of four elements need an alignment of 4, where the op that
/// splits them meets two parts of 6.
struct NeededAlignment {
  AxisList axes;
  int64_t alignment = 1;
};

/// Whether a value is a state, or what ops read that round it. Each replica may
/// have a part of it (ZeRO 3), which is rounded before it is gathered.
bool isOfState(mlir::Value value);

/// How the values of a model are cut. A cut value decides, through the factors
/// of the ops around it, how its uncut neighbours are cut. This goes on until
/// nothing changes. A value that is cut is never cut in another way.
class Propagation {
public:
  explicit Propagation(mlir::func::FuncOp function);

  /// Cuts a value, if it is not cut yet.
  void seed(mlir::Value value, const Sharding &sharding);
  /// Says how a value is cut, or that it stays whole, if nobody did yet.
  void fix(mlir::Value value, const Sharding &sharding);
  /// Takes what is written on a value: its cuts, or that it stays whole.
  void seedWritten(mlir::Value value);
  /// Propagates to a fixed point.
  void run();

  /// How a value is cut; empty: it is whole.
  const Sharding &getSharding(mlir::Value value) const;
  /// How an op cuts its factors.
  FactorShardings getFactorShardings(mlir::Operation *op) const;
  /// The axes along which the results of an op are partial: those that cut what
  /// it sums over, and "data", if it is of a replica's own micro-batches.
  llvm::SmallVector<dist::PartialAttr> getPartials(mlir::Operation *op) const;
  /// How an op makes a value, and how an op needs an operand. Either may differ
  /// from how the value is cut.
  Sharding getMadeSharding(mlir::Value value) const;
  Sharding getNeededSharding(mlir::OpOperand &operand) const;
  /// The rule of an op. Null for an op that every device computes whole.
  const nn::ShardingRule *getRule(mlir::Operation *op) const;
  const Axes &getAxes() const { return axes; }

  /// Alignments to which parts of tensors would have to be rounded up, so that
  /// `ops` could take them cut; one for each tensor.
  llvm::SmallVector<NeededAlignment>
  getNeededAlignments(llvm::ArrayRef<mlir::Operation *> ops) const;
  /// The sharding of a value, with its parts rounded up to these alignments.
  Sharding withAlignments(mlir::Value value, Sharding sharding,
                          llvm::ArrayRef<NeededAlignment> all) const;

  /// Values that were cut since the last `keep`. `undo` makes them whole again.
  llvm::ArrayRef<mlir::Value> getChanged() const { return changed; }
  void keep() { changed.clear(); }
  void undo();
  /// Makes all values whole.
  void clear() {
    known.clear();
    changed.clear();
  }

private:
  void set(mlir::Value value, Sharding sharding);
  Sharding getAllowed(mlir::Operation *op, mlir::Value value) const;
  void visit(mlir::Operation *op);

  Axes axes;
  llvm::DenseMap<mlir::Operation *, nn::ShardingRule> rules;
  /// What a step computes once, or what it sums parts of, which may be cut
  /// along "data".
  llvm::DenseSet<mlir::Operation *> updates;
  llvm::DenseMap<mlir::Value, Sharding> known;
  std::deque<mlir::Operation *> worklist;
  llvm::DenseSet<mlir::Operation *> waiting; ///< ops in the worklist
  llvm::SmallVector<mlir::Value> changed;
};

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_PROPAGATION_H
