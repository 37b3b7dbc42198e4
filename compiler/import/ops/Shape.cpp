//===- Shape.cpp - The same elements under another shape ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"
#include "compiler/import/math/RandomBits.h"
#include "runtime/abi/Text.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

LogicalResult importIdentity(NodeImport &n) { return n.result(0, n.value(0)); }

/// The share of the elements that a dropout drops.
FailureOr<double> getRatio(NodeImport &n) {
  if (n.opset < 12 || !n.input(1))
    return n.opset < 12 ? n.floatAttr("ratio", 0.5) : 0.5;
  auto ratio = PARTITA_TRY(n.constantFloats(1, "ratio"));
  if (ratio.size() != 1 || !(ratio.front() >= 0 && ratio.front() <= 1))
    return n.error("ratio must be a number from 0 to 1");
  return ratio.front();
}

Type getMaskType(NodeImport &n) {
  return n.opset < 10 ? n.elementOf(n.input(0)) : n.b.getI1Type();
}

LogicalResult dropNothing(NodeImport &n) {
  Value x = n.input(0);
  if (n.wantsOutput(1))
    PARTITA_TRY(n.result(1, n.splat(1, n.shapeOf(x), getMaskType(n))));
  return n.result(0, x);
}

/// In training, what stays is larger, so that the mean stays.
LogicalResult importTrainingDropout(NodeImport &n) {
  Value x = n.input(0);
  double ratio = PARTITA_TRY(getRatio(n));
  if (ratio == 0 || n.typeOf(x).getNumElements() == 0)
    return dropNothing(n);
  Value kept = makeRandomMask(n, n.shapeOf(x), ratio);
  const double factor = ratio < 1 ? 1 / (1 - ratio) : 0;
  Value factors = n.select(kept, n.splat(factor, x), 0);
  return failure(failed(n.result(0, n.mul(x, factors))) ||
                 failed(n.result(1, n.cast(kept, getMaskType(n)))));
}

/// At inference nothing is dropped.
LogicalResult importDropout(NodeImport &n) {
  const TrainingMode mode = n.source.getMode(nn::getNodeName(n.loc)).mode;
  if (mode == TrainingMode::learn)
    return importTrainingDropout(n);
  if (mode == TrainingMode::evaluate)
    return dropNothing(n);
  if (n.opset < 7 && n.intAttr("is_test", 0) == 0)
    return n.error("it is in training mode (is_test is not set), which is not "
                   "supported");
  if (n.input(2)) {
    Shape training = PARTITA_TRY(n.constantInts(2, "training_mode"));
    if (training.size() == 1 && training.front() != 0)
      return n.error("it is in training mode, which is not supported");
  }
  return dropNothing(n);
}

/// Whether a 0 in the shape of a Reshape can stand for the input's dimension.
/// Where it would make something of nothing, it is what it says: ONNX's own
/// definitions of ops compute shapes that have such a 0.
bool canCopySizes(ArrayRef<int64_t> from, ArrayRef<int64_t> shape) {
  if (!is_contained(from, 0) || is_contained(shape, -1))
    return true;
  for (auto [size, dimension] : zip(shape, from))
    if (size == 0 && dimension == 0)
      return true;
  return false;
}

LogicalResult importReshape(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> from = n.shapeOf(x);
  Shape shape = PARTITA_TRY(n.opset < 5 ? n.intsAttr("shape").value_or(Shape())
                                        : n.constantInts(1, "shape"));
  bool allowZero = n.intAttr("allowzero", 0) != 0 || !canCopySizes(from, shape);
  int64_t known = 1;
  std::optional<size_t> open;
  for (auto [i, size] : enumerate(shape)) {
    if (size == 0 && !allowZero) {
      if (i >= from.size())
        return n.error("size 0 stands for dimension " + Twine(i) +
                       " of the input, which it does not have");
      size = from[i];
    }
    if (size == -1 && !open) {
      open = i;
      continue;
    }
    if (size < 0)
      return n.error("the shape has more than one negative size");
    if (__builtin_mul_overflow(known, size, &known))
      return n.error("the shape is too large");
  }
  if (open) {
    int64_t total = n.typeOf(x).getNumElements();
    if (known == 0 ? total != 0 : total % known != 0)
      return n.error("no size fits for dimension " + Twine(*open) +
                     " (-1): " + Twine(total) + " elements, and " +
                     Twine(known) + " in the other dimensions");
    shape[*open] = known == 0 ? 0 : total / known;
  }
  return n.result(0, n.reshape(x, shape));
}

LogicalResult importFlatten(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  int64_t rank = shape.size(), axis = n.intAttr("axis", 1);
  if (axis < -rank || axis > rank)
    return n.error("axis " + Twine(axis) + " is out of range for rank " +
                   Twine(rank));
  if (axis < 0)
    axis += rank;
  return n.result(0, n.reshape(x, {product(shape.take_front(axis)),
                                   product(shape.drop_front(axis))}));
}

LogicalResult importTranspose(NodeImport &n) {
  Value x = n.input(0);
  int64_t rank = n.typeOf(x).getRank();
  Shape perm = n.intsAttr("perm").value_or(
      Shape(llvm::reverse(to_vector(seq<int64_t>(0, rank)))));
  if (static_cast<int64_t>(perm.size()) != rank)
    return n.error("perm is no permutation of " +
                   abi::countOf(rank, "dimension"));
  PARTITA_TRY(n.axes(perm, rank));
  for (int64_t &dim : perm)
    dim = dim < 0 ? dim + rank : dim;
  return n.result(0, n.transpose(x, perm));
}

/// The axes of Squeeze and Unsqueeze: an attribute before opset 13.
FailureOr<std::optional<Shape>> getAxes(NodeImport &n) {
  if (n.opset < 13)
    return n.intsAttr("axes");
  if (!n.input(1))
    return std::optional<Shape>();
  return std::optional(PARTITA_TRY(n.constantInts(1, "axes")));
}

LogicalResult importUnsqueeze(NodeImport &n) {
  auto given = PARTITA_TRY(getAxes(n));
  if (!given)
    return n.error("axes are missing");
  Value x = n.input(0);
  Shape axes =
      PARTITA_TRY(n.axes(*given, n.typeOf(x).getRank() + given->size()));
  Shape shape(n.shapeOf(x));
  for (int64_t axis : axes)
    shape.insert(shape.begin() + axis, 1);
  return n.result(0, n.reshape(x, shape));
}

LogicalResult importSqueeze(NodeImport &n) {
  auto given = PARTITA_TRY(getAxes(n));
  Value x = n.input(0);
  Shape axes, shape;
  if (given)
    axes = PARTITA_TRY(n.axes(*given, n.typeOf(x).getRank()));
  for (auto [i, size] : enumerate(n.shapeOf(x))) {
    if (given ? !is_contained(axes, static_cast<int64_t>(i)) : size != 1)
      shape.push_back(size);
    else if (size != 1)
      return n.error("axis " + Twine(i) + " has size " + Twine(size) +
                     " and not 1");
  }
  return n.result(0, n.reshape(x, shape));
}

LogicalResult importExpand(NodeImport &n) {
  Shape given = PARTITA_TRY(n.constantInts(1, "shape"));
  // Both sides broadcast: a size 1 in the given shape keeps the input's.
  Value x = n.input(0);
  Shape shape(given), own(n.shapeOf(x));
  size_t rank = std::max(shape.size(), own.size());
  shape.insert(shape.begin(), rank - shape.size(), 1);
  own.insert(own.begin(), rank - own.size(), 1);
  for (auto [size, ownSize] : zip_equal(shape, own))
    if (size == 1)
      size = ownSize;
  if (!n.tensor(shape, n.elementOf(x)))
    return failure();
  return n.result(0, n.broadcastTo(x, shape));
}

/// [a, b] repeated r and s times is [a, b] -> [1, a, 1, b] -> [r, a, s, b] ->
/// [r * a, s * b].
LogicalResult importTile(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  Shape repeats = PARTITA_TRY(n.constantInts(1, "repeats"));
  if (n.opset < 6) { // one number, along one axis
    Shape given = PARTITA_TRY(n.constantInts(2, "axis"));
    if (given.size() != 1 || repeats.size() != 1)
      return n.error("tiles and axis must be single numbers");
    int64_t axis = PARTITA_TRY(n.axis(given.front(), shape.size()));
    int64_t count = repeats.front();
    repeats = Shape(shape.size(), 1);
    repeats[axis] = count;
  }
  if (repeats.size() != shape.size())
    return n.error("repeats holds " + abi::countOf(repeats.size(), "number") +
                   " for rank " + Twine(shape.size()));
  Shape wide, result, dims;
  for (auto [size, count] : zip_equal(shape, repeats)) {
    if (count < 0)
      return n.error("a number of repeats is negative");
    if (count != 1)
      wide.push_back(count);
    dims.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(size);
    int64_t product;
    if (__builtin_mul_overflow(size, count, &product))
      return n.error("the result is too large");
    result.push_back(product);
  }
  if (!n.tensor(wide, n.elementOf(x)) || !n.tensor(result, n.elementOf(x)))
    return failure();
  return n.result(0, n.reshape(n.broadcastDims(x, dims, wide), result));
}

const OpRow shapeOps[] = {
    {"Dropout", 1, 22, importDropout},
    {"Expand", 8, 13, importExpand},
    {"Flatten", 1, 25, importFlatten},
    {"Identity", 1, 25, importIdentity},
    {"Reshape", 1, 25, importReshape},
    {"Squeeze", 1, 25, importSqueeze},
    {"Tile", 1, 13, importTile},
    {"Transpose", 1, 25, importTranspose},
    {"Unsqueeze", 1, 25, importUnsqueeze},
};

} // namespace

ArrayRef<OpRow> getShapeOps() { return shapeOps; }

} // namespace partita::import
