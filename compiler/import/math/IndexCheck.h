//===- IndexCheck.h - Indices that a model may not have ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ONNX calls an index that is out of range an error. Indices that are known
// are looked at here. For others the model's function gets a result more, with
// the attribute `nn.check`: a small tensor that says which index is wrong. All
// passes treat it as any other result. So it is computed where the indices
// are, and a step hands it to the host (`plan.examine`).
//
//   [5, -3, 7]   indices into 6 elements
//   [2, 7]       the check: element 2 is 7, which is not in -6 .. 5
//   [3, 5]       if all were right: the number of indices, and some index
//
// What gathers or scatters may then do as it likes with wrong indices, as long
// as it stays within its tensors.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MATH_INDEXCHECK_H
#define PARTITA_COMPILER_IMPORT_MATH_INDEXCHECK_H

#include "compiler/import/graph/NodeImport.h"

namespace partita::import {

/// What is checked, for messages.
struct CheckedOperand {
  unsigned input;       ///< of the node
  llvm::StringRef name; ///< what the op calls it, e.g. "indices"
};

/// Makes every step fail that finds an element of `indices` outside of low ..
/// high. Fails if one is known to be there already, with an error that has its
/// position and value. Does nothing if none can be. There is a range for all
/// elements, or one for each entry of their last dimension.
llvm::LogicalResult checkRange(NodeImport &n, mlir::Value indices,
                               llvm::ArrayRef<NumberRange> allowed,
                               CheckedOperand operand);

/// The same for indices into dimensions of these sizes, one or several as
/// above. Negative ones count from the end.
llvm::LogicalResult checkIndices(NodeImport &n, mlir::Value indices,
                                 llvm::ArrayRef<int64_t> sizes,
                                 CheckedOperand operand);

/// The same for the labels of a node that is a loss; nothing for other nodes.
/// ONNX defines losses by other ops, which would let a negative label count
/// from the end of the classes.
llvm::LogicalResult checkLabelsOf(NodeImport &n);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_INDEXCHECK_H
