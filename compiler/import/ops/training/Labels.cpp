//===- Labels.cpp - Numbers of classes, as losses take them ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ONNX defines losses by other ops, which would let a negative label count
// from the end of the classes.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexCheck.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

LogicalResult checkLabelsOf(NodeImport &n) {
  struct Loss {
    StringRef op, labels;
  };
  constexpr Loss losses[] = {{"NegativeLogLikelihoodLoss", "target"},
                             {"SoftmaxCrossEntropyLoss", "labels"}};
  for (const Loss &loss : losses) {
    if (n.node.op_type() != loss.op)
      continue;
    Value scores = n.input(0), labels = n.input(1);
    if (!scores || !labels || n.typeOf(scores).getRank() < 2 ||
        n.shapeOf(scores)[1] == 0)
      return success(); // the definition says what is wrong
    const int64_t last = n.shapeOf(scores)[1] - 1;
    // One that is ignored need not be a class.
    const int64_t ignored = n.intAttr("ignore_index", 0);
    if (ignored < 0 || ignored > last)
      labels = n.select(n.eq(labels, ignored), 0, labels);
    return checkRange(n, labels, NumberRange{0, last}, {1, loss.labels});
  }
  return success();
}

} // namespace partita::import
