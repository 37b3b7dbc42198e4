//===- ShardingCosts.h - What shardings cost --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_SHARDINGCOSTS_H
#define PARTITA_COMPILER_SHARD_SHARDINGCOSTS_H

#include "compiler/analysis/Rates.h"
#include "compiler/cost/CostModel.h"
#include "compiler/shard/Propagation.h"
#include "compiler/shard/Reshards.h"

#include "llvm/ADT/SetVector.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>

namespace partita::shard {

/// An empty module for ops that are built only to ask what they take. Its
/// devices are those of the module around `op`.
mlir::OwningOpRef<mlir::ModuleOp> makeScratch(mlir::Operation *op);

/// Collectives that some cuts need, for one tensor.
struct Exchange {
  mlir::Value value; ///< that is joined, exchanged or gathered
  /// The first op that reads the value in this way. Null: the value is made in
  /// another way than it is cut.
  mlir::Operation *reader = nullptr;
  llvm::SmallVector<abi::CollectiveKind>
      kinds;             ///< in their order; at least one
  int64_t sentBytes = 0; ///< by each device, per micro-batch
  double ns = 0;         ///< predicted
};

/// Predicted times of a graph whose values are cut as a propagation says.
class ShardingCosts {
public:
  ShardingCosts(const Propagation &propagation, const CostModel &machine)
      : propagation(propagation), machine(machine) {}

  /// The time of some ops, and of what brings their operands and results.
  double getNs(const llvm::SetVector<mlir::Operation *> &ops);
  /// What brings a value from how it is made to how its readers need it. The
  /// host feeds whole inputs, and what depends on weights only is computed in
  /// every way: nothing brings those.
  llvm::SmallVector<Exchange> getExchanges(mlir::Value value);

private:
  double getNs(mlir::Operation *op, analysis::Rates &opRates) const;
  double getOpNs(mlir::Operation *op);
  double getLocalNs(mlir::Operation *op, const FactorShardings &factors,
                    llvm::ArrayRef<int64_t> sizes);
  void add(Exchange exchange, const Layout &from, const Sharding &to,
           llvm::SmallVectorImpl<Exchange> &exchanges) const;

  const Propagation &propagation;
  const CostModel &machine;
  analysis::Rates rates;
  /// By op and the sizes of the parts of its factors.
  std::map<std::pair<mlir::Operation *, llvm::SmallVector<int64_t>>, double>
      known;
};

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_SHARDINGCOSTS_H
