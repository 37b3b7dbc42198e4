//===- ShardFunction.h - An op computed in parts ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_NN_SHARDFUNCTION_H
#define PARTITA_TEST_UNIT_NN_SHARDFUNCTION_H

#include "dialects/nn/NNDialect.h"

namespace partita::nn::test {

/// A factor, and into how many equal parts it is cut.
struct Cut {
  int64_t factor = 0;
  int64_t parts = 1;
};

/// Builds what the op computes as shards would: the parts of the operands, the
/// local op of every shard, and their results put together. `cuts` name
/// different factors. Returns the op's results.
llvm::SmallVector<mlir::Value> buildInParts(mlir::OpBuilder &builder,
                                            ShardableOpInterface op,
                                            llvm::ArrayRef<Cut> cuts);

} // namespace partita::nn::test

#endif // PARTITA_TEST_UNIT_NN_SHARDFUNCTION_H
