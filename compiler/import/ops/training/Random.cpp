//===- Random.cpp - Random numbers ----------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans of training alone draw numbers: a step of inference gives the same
// results for the same inputs. The seed is that of the training, whatever the
// node's is.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/RandomBits.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

LogicalResult checkMode(NodeImport &n) {
  if (n.source.getMode(nn::getNodeName(n.loc)).mode != TrainingMode::asWritten)
    return success();
  return n.error("random numbers are drawn in training only (--loss, "
                 "--train): make them an input of the model");
}

LogicalResult draw(NodeImport &n, ArrayRef<int64_t> shape, Type byDefault,
                   bool isNormal) {
  PARTITA_TRY(checkMode(n));
  auto element = dyn_cast_or_null<FloatType>(n.typeAttr("dtype", byDefault));
  if (!element)
    return n.error("random numbers must be floats");
  if (!n.tensor(shape, element))
    return failure();
  Value numbers = PARTITA_TRY(isNormal ? makeNormalNumbers(n, shape, element)
                                       : makeUniformNumbers(n, shape, element));
  const double least = n.floatAttr("low", 0), most = n.floatAttr("high", 1);
  const double scale = isNormal ? n.floatAttr("scale", 1) : most - least;
  const double first = isNormal ? n.floatAttr("mean", 0) : least;
  return n.result(0, n.add(n.mul(numbers, scale), first));
}

template <bool isNormal> LogicalResult importLike(NodeImport &n) {
  return draw(n, n.shapeOf(n.input(0)), n.elementOf(n.input(0)), isNormal);
}

template <bool isNormal> LogicalResult importShaped(NodeImport &n) {
  Shape shape = n.intsAttr("shape").value_or(Shape());
  if (any_of(shape, [](int64_t size) { return size < 0; }))
    return n.error("shape has a negative size");
  return draw(n, shape, n.b.getF32Type(), isNormal);
}

/// 1 with the probability that the input says. (The body of ONNX's schema gives
/// 0 with it.)
LogicalResult importBernoulli(NodeImport &n) {
  Value share = n.input(0);
  Type type = n.typeAttr("dtype", n.elementOf(share));
  PARTITA_TRY(checkMode(n));
  if (!type || !type.isIntOrFloat())
    return n.error("dtype must be a type of numbers");
  Value drawn = makeUniformNumbers(n, n.shapeOf(share),
                                   cast<FloatType>(n.elementOf(share)));
  return n.result(0, n.cast(n.lt(drawn, share), type));
}

const OpRow randomOps[] = {
    {"Bernoulli", 15, 22, importBernoulli},
    {"RandomNormal", 1, 22, importShaped<true>},
    {"RandomNormalLike", 1, 22, importLike<true>},
    {"RandomUniform", 1, 22, importShaped<false>},
    {"RandomUniformLike", 1, 22, importLike<false>},
};

} // namespace

ArrayRef<OpRow> getRandomOps() { return randomOps; }

} // namespace partita::import
