//===- Constant.cpp - Values that depend on no tensor ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/model/TensorData.h"
#include "dialects/nn/fold/ConstantElements.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

LogicalResult importConstant(NodeImport &n) {
  if (n.node.attribute_size() != 1)
    return n.error("exactly one attribute must give the value");
  const onnx::AttributeProto &value = n.node.attribute(0);
  if (value.name() == "value")
    return n.result(
        0, n.source.materialize(
               value.t(), n.wantsOutput(0) ? n.node.output(0) : "", n.loc));
  if (value.name() == "value_int")
    return n.result(0, n.reshape(n.indices({value.i()}), {}));
  if (value.name() == "value_ints")
    return n.result(0, n.indices(to_vector(value.ints())));
  if (value.name() == "value_float")
    return n.result(0, n.splat(value.f(), {}, n.b.getF32Type()));
  if (value.name() == "value_floats")
    return n.result(
        0, n.numbers(to_vector_of<double>(value.floats()), n.b.getF32Type()));
  return n.error("the attribute '" + value.name() + "' is not supported");
}

LogicalResult importConstantOfShape(NodeImport &n) {
  Shape shape = PARTITA_TRY(n.constantInts(0, "input"));
  const onnx::AttributeProto *value = n.attr("value");
  if (!value)
    return n.result(0, n.splat(0, shape, n.b.getF32Type()));
  Value scalar = n.source.materialize(value->t(), "", n.loc);
  DenseElementsAttr elements = n.getConstant(scalar);
  if (!scalar || !elements || elements.getNumElements() != 1)
    return n.error("the attribute value must hold one number");
  RankedTensorType type =
      PARTITA_TRY(n.tensor(shape, elements.getElementType()));
  Attribute element = *elements.getValues<Attribute>().begin();
  return n.result(0, n.constant(type.getNumElements() == 0
                                    ? nn::makeSplat(type, 0)
                                    : DenseElementsAttr::get(type, element)));
}

LogicalResult importShape(NodeImport &n) {
  ArrayRef<int64_t> shape = n.shapeOf(n.input(0));
  int64_t rank = shape.size();
  auto clampIndex = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  int64_t start = clampIndex(n.intAttr("start", 0));
  int64_t end = clampIndex(n.intAttr("end", rank));
  return n.result(
      0, n.indices(shape.slice(start, std::max<int64_t>(end - start, 0))));
}

LogicalResult importSize(NodeImport &n) {
  int64_t size = n.typeOf(n.input(0)).getNumElements();
  return n.result(0, n.reshape(n.indices({size}), {}));
}

/// start, start + delta, ... before limit, computed in the operands' type.
LogicalResult importRange(NodeImport &n) {
  Type element = n.elementOf(n.input(0));
  Value start = n.reshape(n.input(0), {}), delta = n.reshape(n.input(2), {});
  int64_t count;
  if (isa<IntegerType>(element)) {
    FailureOr<Shape> from = n.constantInts(0, "start"),
                     to = n.constantInts(1, "limit"),
                     by = n.constantInts(2, "delta");
    if (failed(from) || failed(to) || failed(by))
      return failure();
    if (from->size() != 1 || to->size() != 1 || by->size() != 1)
      return n.error("start, limit and delta must be single numbers");
    if (by->front() == 0)
      return n.error("delta is 0");
    int64_t distance;
    if (__builtin_sub_overflow(to->front(), from->front(), &distance) ||
        distance == INT64_MIN)
      return n.error("the range is too long");
    count = divideCeilSigned(distance, by->front());
  } else {
    FailureOr<SmallVector<double>> from = n.constantFloats(0, "start"),
                                   to = n.constantFloats(1, "limit"),
                                   by = n.constantFloats(2, "delta");
    if (failed(from) || failed(to) || failed(by))
      return failure();
    if (from->size() != 1 || to->size() != 1 || by->size() != 1)
      return n.error("start, limit and delta must be single numbers");
    double steps = std::ceil((to->front() - from->front()) / by->front());
    if (!(std::abs(steps) < 1e15))
      return n.error("the range has no end");
    count = static_cast<int64_t>(steps);
  }
  count = std::max<int64_t>(count, 0);
  if (!start || !delta || !n.tensor({count}, element))
    return failure();
  Value steps = n.make<nn::IotaOp>(
      RankedTensorType::get({count}, n.b.getI64Type()), int64_t{0});
  Value offsets = n.mul(n.cast(steps, element), n.broadcastTo(delta, {count}));
  return n.result(0, n.add(n.broadcastTo(start, {count}), offsets));
}

const OpRow constantOps[] = {
    {"Constant", 1, 25, importConstant},
    {"ConstantOfShape", 9, 25, importConstantOfShape},
    {"Range", 11, 27, importRange},
    {"Shape", 1, 25, importShape},
    {"Size", 1, 25, importSize},
};

} // namespace

ArrayRef<OpRow> getConstantOps() { return constantOps; }

} // namespace partita::import
