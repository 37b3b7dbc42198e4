//===- Retired.cpp - Ops that ONNX has taken back -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// x * scale + bias, which has one number a channel.
LogicalResult importImageScaler(NodeImport &n) {
  Value x = n.input(0);
  Value y = n.mul(x, n.floatAttr("scale", 1));
  const onnx::AttributeProto *bias = n.attr("bias");
  if (!bias || !y)
    return n.result(0, y);
  SmallVector<double> numbers(bias->floats().begin(), bias->floats().end());
  ArrayRef<int64_t> shape = n.shapeOf(x);
  if (shape.size() < 2 || static_cast<int64_t>(numbers.size()) != shape[1])
    return n.error("bias must have one number a channel");
  return n.result(0,
                  n.add(y, n.broadcastDims(n.numbers(numbers, n.elementOf(x)),
                                           {1}, shape)));
}

/// Cuts the borders (left, top, right, bottom) off images, or what is beyond
/// `scale` (height, width) from the upper left border.
LogicalResult importCrop(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  Shape border = n.intsAttr("border").value_or(Shape());
  std::optional<Shape> size = n.intsAttr("scale");
  if (shape.size() != 4 || border.size() != 4 || (size && size->size() != 2))
    return n.error("border must have four numbers and scale two, for images "
                   "of rank 4");
  Shape starts{0, 0, border[1], border[0]}, limits(shape);
  for (int64_t i : {0, 1}) {
    int64_t dim = i + 2;
    limits[dim] =
        size ? starts[dim] + (*size)[i] : shape[dim] - border[i == 0 ? 3 : 2];
    if (starts[dim] < 0 || limits[dim] > shape[dim] ||
        starts[dim] > limits[dim])
      return n.error("the borders do not fit the image");
  }
  return n.result(0, n.slice(x, starts, limits, {1, 1, 1, 1}));
}

LogicalResult importAffine(NodeImport &n) {
  return n.result(0, n.add(n.mul(n.input(0), n.floatAttr("alpha", 1)),
                           n.floatAttr("beta", 0)));
}

const OpRow retiredOps[] = {
    {"Affine", 1, 1, importAffine},
    {"Crop", 1, 1, importCrop},
    {"ImageScaler", 1, 1, importImageScaler},
};

} // namespace

ArrayRef<OpRow> getRetiredOps() { return retiredOps; }

} // namespace partita::import
