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

/// A factor, and the number of equal parts into which it is cut.
struct Cut {
  int64_t factor = 0;
  int64_t parts = 1;
};

/// Builds the computation of the op as shards would do it: the parts of the
/// operands, the local op of every shard, and the joined results. `cuts` must
/// name different factors. Returns the joined results.
llvm::SmallVector<mlir::Value> buildInParts(mlir::OpBuilder &builder,
                                            ShardableOpInterface op,
                                            llvm::ArrayRef<Cut> cuts);

} // namespace partita::nn::test

#endif // PARTITA_TEST_UNIT_NN_SHARDFUNCTION_H
