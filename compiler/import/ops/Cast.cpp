//===- Cast.cpp - Changes of the element type -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/model/TensorData.h"
#include "dialects/nn/NodeScopes.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// To a power of two, up, down or to the nearest: the nearest power by the cast
/// itself, then corrected by the exact value in f32.
Value castToExponent(NodeImport &n, Value x, Type element, StringRef mode,
                     bool saturate) {
  Type wide = n.b.getF32Type();
  Value value = n.cast(x, wide);
  Value power = PARTITA_TRY(n.cast(n.cast(value, element, saturate), wide));
  if (mode != "nearest") {
    const bool up = mode == "up";
    Value isBeyond = up ? n.lt(power, value) : n.gt(power, value);
    power = n.select(isBeyond, n.mul(power, up ? 2 : 0.5), power);
    Value closer = n.mul(power, up ? 0.5 : 2);
    Value isRight = up ? n.ge(closer, value) : n.le(closer, value);
    power = n.select(isRight, closer, power);
  }
  return n.cast(power, element, saturate);
}

LogicalResult castTo(NodeImport &n, Type element) {
  Value x = n.input(0);
  bool saturate = n.intAttr("saturate", 1) != 0;
  bool toExponent = isa<Float8E8M0FNUType>(element);
  if (toExponent && n.elementOf(x) != element) {
    std::string mode =
        PARTITA_TRY(n.choice("round_mode", {"up", "down", "nearest"}));
    return n.result(0, castToExponent(n, x, element, mode, saturate));
  }
  Value result = n.cast(x, element, saturate);
  // The node asks for it.
  if (result && result != x)
    if (auto cast = result.getDefiningOp<nn::CastOp>())
      cast->removeAttr(nn::kInnerAttr);
  return n.result(0, result);
}

LogicalResult importCast(NodeImport &n) {
  // Before opset 6 the type is a word.
  const onnx::AttributeProto *to = n.attr("to");
  int64_t onnxType = to->i();
  if (to->type() == onnx::AttributeProto::STRING) {
    onnx::TensorProto::DataType parsed;
    onnxType =
        onnx::TensorProto::DataType_Parse(StringRef(to->s()).upper(), &parsed)
            ? parsed
            : onnx::TensorProto::UNDEFINED;
  }
  Type element = getElementType(n.b.getContext(), onnxType);
  if (!element)
    return n.error("a conversion to " + getOnnxTypeName(onnxType) +
                   " is not supported");
  return castTo(n, element);
}

LogicalResult importCastLike(NodeImport &n) {
  return castTo(n, n.elementOf(n.input(1)));
}

LogicalResult importBitCast(NodeImport &n) {
  Value x = n.input(0);
  Type from = n.elementOf(x), to = n.typeAttr("to", {});
  if (!to)
    return n.error("a conversion to " + getOnnxTypeName(n.intAttr("to", 0)) +
                   " is not supported");
  if (from == to)
    return n.result(0, x);
  // A boolean is a byte that is 0 or 1.
  if (from.isInteger(1) && to.getIntOrFloatBitWidth() == 8)
    return n.result(0, n.cast(x, to));
  auto isPlain = [](Type type) {
    unsigned width = type.getIntOrFloatBitWidth();
    return width >= 16 || (width == 8 && isa<IntegerType>(type));
  };
  if (!isPlain(from) || !isPlain(to) ||
      from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return n.error("the bits of " + getOnnxTypeName(getOnnxType(from)) +
                   " cannot be taken as " + getOnnxTypeName(getOnnxType(to)));
  auto type = RankedTensorType::get(n.shapeOf(x), to);
  return n.result(0, n.make<nn::BitcastOp>(type, x));
}

const OpRow castOps[] = {
    {"BitCast", 26, 26, importBitCast},
    {"Cast", 1, 28, importCast},
    {"CastLike", 15, 25, importCastLike},
};

} // namespace

ArrayRef<OpRow> getCastOps() { return castOps; }

} // namespace partita::import
