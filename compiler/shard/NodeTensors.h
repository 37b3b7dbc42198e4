//===- NodeTensors.h - The values that nodes make ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_NODETENSORS_H
#define PARTITA_COMPILER_SHARD_NODETENSORS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace partita::shard {

/// The values of a function that are tensors of the ONNX model.
class NodeTensors {
public:
  explicit NodeTensors(mlir::func::FuncOp function);

  /// The result of a node, if it is a value of its own, of the shape that the
  /// model gives it. Null if the node has several results, if it became a part
  /// of another op, or if it may have another order of dimensions.
  mlir::Value find(llvm::StringRef node, llvm::ArrayRef<int64_t> shape) const;

private:
  llvm::StringMap<mlir::Value> values; ///< null: several
};

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_NODETENSORS_H
