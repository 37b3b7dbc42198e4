//===- Quantized.cpp - Quantized ops of com.microsoft ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/microsoft/Microsoft.h"

using namespace llvm;
using namespace mlir;

namespace partita::import::microsoft {
namespace {

//===----------------------------------------------------------------------===//
// Integers in, integers out: dequantize, compute, quantize
//===----------------------------------------------------------------------===//

/// Defines the floats of three inputs: `numbers`, their scale and their zero
/// point, which may be omitted.
void addFloats(Body &body, const std::string &result,
               const std::string &numbers) {
  body.add(result + " = DequantizeLinear (" + numbers + ", " + numbers +
           "_scale, " + numbers + "_zero_point)");
}

/// Defines an output of the element type of `like`.
void addIntegers(Body &body, const std::string &result, const Twine &floats,
                 const Twine &scale, const std::string &zero, bool hasZero,
                 const Twine &like) {
  if (!hasZero)
    body.scalar("zero32", float(0))
        .add("noZero = CastLike (zero32, " + like + ")");
  body.add(result + " = QuantizeLinear (" + floats + ", " + scale + ", " +
           (hasZero ? zero : "noZero") + ")");
}

/// An op of A and B.
template <Text op> LogicalResult importPair(NodeImport &n) {
  Body body(n);
  addFloats(body, "a", "A");
  addFloats(body, "b", "B");
  body.add(Twine("c = ") + op.chars + " (a, b)");
  addIntegers(body, "C", "c", "C_scale", "C_zero_point", isGiven(n, 7), "A");
  return body.expand();
}

/// An op of X: `nodes` compute `y` from `x`.
LogicalResult importOne(NodeImport &n, Body &body, const Twine &nodes) {
  addFloats(body, "x", "X");
  body.add(nodes);
  addIntegers(body, "Y", "y", "Y_scale", "Y_zero_point", isGiven(n, 4), "X");
  return body.expand();
}

template <Text nodes> LogicalResult importOneAs(NodeImport &n) {
  Body body(n);
  return importOne(n, body, nodes.chars);
}

/// Before opset 13 all dimensions from the axis on count as one.
LogicalResult importQSoftmax(NodeImport &n) {
  Body body(n);
  if (n.intAttr("opset", 13) >= 13)
    return importOne(n, body, "y = Softmax <axis: int = @axis> (x)");
  int64_t axis = PARTITA_TRY(n.axisAttr(-1, n.typeOf(n.input(0)).getRank()));
  body.ints("shape", n.shapeOf(n.input(0)));
  return importOne(n, body,
                   "flat = Flatten <axis = " + Twine(axis) +
                       "> (x)"
                       "soft = Softmax <axis = -1> (flat)"
                       "y = Reshape <allowzero = 1> (soft, shape)");
}

LogicalResult importQAveragePool(NodeImport &n) {
  PARTITA_TRY(checkInt(n, "channels_last", 0));
  return importOneAs<
      "y = AveragePool <auto_pad: string = @auto_pad, ceil_mode: int = "
      "@ceil_mode, count_include_pad: int = @count_include_pad, "
      "kernel_shape: ints = @kernel_shape, pads: ints = @pads, "
      "strides: ints = @strides> (x)">(n);
}

LogicalResult importQGlobalAveragePool(NodeImport &n) {
  const int64_t rank = n.typeOf(n.input(0)).getRank();
  if (rank < 3)
    return n.error("X must have rank 3 at least");
  const int64_t first = n.intAttr("channels_last", 0) ? 1 : 2;
  Body body(n);
  body.ints("axes", to_vector(seq<int64_t>(first, first + rank - 2)));
  return importOne(n, body, "y = ReduceMean <keepdims = 1> (x, axes)");
}

LogicalResult importQReduceMean(NodeImport &n) {
  Body body(n);
  body.ints("along", n.intsAttr("axes").value_or(Shape()));
  return importOne(n, body,
                   "y = ReduceMean <keepdims: int = @keepdims> (x, along)");
}

LogicalResult importQConcat(NodeImport &n) {
  const size_t given = n.values.size();
  if (given < 5 || (given - 2) % 3)
    return n.error("its inputs are the result's scale and zero point, and then "
                   "three for each tensor: integers, scale and zero point");
  Body body(n);
  std::string floats;
  for (size_t i = 0; i < given - 2; i += 3) {
    auto input = [&](size_t k) { return "inputs" + std::to_string(i + k); };
    const std::string x = "x" + std::to_string(i);
    body.add(x + " = DequantizeLinear (" + input(0) + ", " + input(1) + ", " +
             input(2) + ")");
    floats += (i ? ", " : "") + x;
  }
  return body
      .add("y = Concat <axis: int = @axis> (" + floats + ")" +
           "Y = QuantizeLinear (y, Y_scale, Y_zero_point)")
      .expand();
}

//===----------------------------------------------------------------------===//
// Products of integers
//===----------------------------------------------------------------------===//

/// The product of `a` and B, and the floats `Y` of it, which may have a bias.
void addProduct(NodeImport &n, Body &body, const Twine &a, unsigned bias) {
  body.add("product = MatMulInteger (" + a + ", B, a_zero_point, b_zero_point)")
      .add("scale = Mul (a_scale, b_scale)"
           "floats = CastLike (product, scale)"
           "scaled = Mul (floats, scale)")
      .add(isGiven(n, bias) ? "Y = Add (scaled, bias)"
                            : "Y = Identity (scaled)");
}

LogicalResult importDynamicQuantizeMatMul(NodeImport &n) {
  Body body(n);
  body.add("a, a_scale, a_zero_point = DynamicQuantizeLinear (A)");
  addProduct(n, body, "a", 4);
  return body.expand();
}

LogicalResult importMatMulIntegerToFloat(NodeImport &n) {
  for (unsigned i : {2, 4})
    if (n.input(i) && n.typeOf(n.input(i)).getNumElements() != 1)
      return n.error("input " + Twine(i) + " must be one number");
  Body body(n);
  addProduct(n, body, "A", 6);
  return body.expand();
}

LogicalResult importQGemm(NodeImport &n) {
  Body body(n);
  body.add(n.intAttr("transA", 0) ? "a = Transpose <perm = [1, 0]> (A)"
                                  : "a = Identity (A)")
      .add(n.intAttr("transB", 0) ? "b = Transpose <perm = [1, 0]> (B)"
                                  : "b = Identity (B)")
      .add("product = MatMulInteger (a, b, a_zero_point, b_zero_point)")
      .add(isGiven(n, 6) ? "sum = Add (product, C)"
                         : "sum = Identity (product)")
      .scalar("alpha32", asFloat(n.floatAttr("alpha", 1)))
      .add("scale = Mul (a_scale, b_scale)"
           "alpha = CastLike (alpha32, scale)"
           "whole = Mul (scale, alpha)"
           "floats = CastLike (sum, scale)"
           "scaled = Mul (floats, whole)");
  if (!isGiven(n, 7))
    return body.add("Y = Identity (scaled)").expand();
  addIntegers(body, "Y", "scaled", "y_scale", "y_zero_point", isGiven(n, 8),
              "A");
  return body.expand();
}

/// ONNX's LSTM has its weights transposed. The inputs and the hidden state stay
/// floats here: they are not quantized before each product.
LogicalResult importDynamicQuantizeLSTM(NodeImport &n) {
  if (n.typeOf(n.input(1)).getRank() != 3 ||
      n.typeOf(n.input(2)).getRank() != 3)
    return n.error("W and R must have rank 3");
  Body body(n);
  body.ints("byColumn", {n.shapeOf(n.input(1))[0], 1, -1});
  for (const std::string w : {"W", "R"})
    body.add(w + "32 = Cast <to = 1> (" + w + ")")
        .add(w + "Zero32 = Cast <to = 1> (" + w + "_zero_point)")
        .add(w + "Zero = Reshape (" + w + "Zero32, byColumn)")
        .add(w + "Scale = Reshape (" + w + "_scale, byColumn)")
        .add(w + "Centered = Sub (" + w + "32, " + w + "Zero)")
        .add(w + "Floats = Mul (" + w + "Centered, " + w + "Scale)")
        .add(w + "Rows = Transpose <perm = [0, 2, 1]> (" + w + "Floats)");
  return body
      .add("Y, Y_h, Y_c = LSTM <activation_alpha: floats = @activation_alpha, "
           "activation_beta: floats = @activation_beta, "
           "activations: strings = @activations, clip: float = @clip, "
           "direction: string = @direction, hidden_size: int = @hidden_size, "
           "input_forget: int = @input_forget> "
           "(X, WRows, RRows, B, sequence_lens, initial_h, initial_c, P)")
      .expand();
}

#define PAIR                                                                   \
  "A, A_scale, A_zero_point?, B, B_scale, B_zero_point?, C_scale, "            \
  "C_zero_point?",                                                             \
      "C", ""
#define ONE "X, X_scale, X_zero_point?, Y_scale, Y_zero_point?", "Y"

const ForeignOp quantizedOps[] = {
    // These two are of 16 and 4 bits, for models from before ONNX's own had
    // them.
    {"DequantizeLinear", "x, x_scale, x_zero_point?", "y", "axis: int",
     importAs<"y = DequantizeLinear <axis: int = @axis> (x, x_scale, "
              "x_zero_point)">},
    {"QuantizeLinear", "x, y_scale, y_zero_point?", "y", "axis: int",
     importAs<
         "y = QuantizeLinear <axis: int = @axis> (x, y_scale, y_zero_point)">},
    {"DynamicQuantizeLSTM",
     "X, W, R, B?, sequence_lens?, initial_h?, initial_c?, P?, W_scale, "
     "W_zero_point, R_scale, R_zero_point",
     "Y?, Y_h?, Y_c?",
     "activation_alpha: floats, activation_beta: floats, activations: strings, "
     "clip: float, direction: string, hidden_size: int, input_forget: int = 0",
     importDynamicQuantizeLSTM},
    {"DynamicQuantizeMatMul", "A, B, b_scale, b_zero_point?, bias?", "Y", "",
     importDynamicQuantizeMatMul},
    {"MatMulIntegerToFloat",
     "A, B, a_scale, b_scale, a_zero_point?, b_zero_point?, bias?", "Y", "",
     importMatMulIntegerToFloat},
    {"QGemm",
     "A, a_scale, a_zero_point, B, b_scale, b_zero_point, C?, y_scale?, "
     "y_zero_point?",
     "Y", "alpha: float = 1, transA: int = 0, transB: int = 0", importQGemm},
    {"QLinearAdd", PAIR, importPair<"Add">},
    {"QLinearAveragePool", ONE,
     "auto_pad: string, ceil_mode: int = 0, channels_last: int = 0, "
     "count_include_pad: int = 0, kernel_shape: ints, pads: ints, "
     "strides: ints",
     importQAveragePool},
    {"QLinearConcat", "Y_scale, Y_zero_point, inputs*", "Y", "axis: int",
     importQConcat},
    {"QLinearGlobalAveragePool", ONE, "channels_last: int = 0",
     importQGlobalAveragePool},
    {"QLinearLeakyRelu", ONE, "alpha: float = 0.01",
     importOneAs<"y = LeakyRelu <alpha: float = @alpha> (x)">},
    {"QLinearMul", PAIR, importPair<"Mul">},
    {"QLinearReduceMean", ONE, "axes: ints, keepdims: int = 1",
     importQReduceMean},
    {"QLinearSigmoid", ONE, "", importOneAs<"y = Sigmoid (x)">},
    {"QLinearSoftmax", ONE, "axis: int = -1, opset: int = 13", importQSoftmax},
    {"QLinearWhere",
     "condition, X, X_scale, X_zero_point, Y, Y_scale, Y_zero_point, Z_scale, "
     "Z_zero_point",
     "Z", "",
     importAs<"x = DequantizeLinear (X, X_scale, X_zero_point)"
              "y = DequantizeLinear (Y, Y_scale, Y_zero_point)"
              "z = Where (condition, x, y)"
              "Z = QuantizeLinear (z, Z_scale, Z_zero_point)">},
};

} // namespace

ArrayRef<ForeignOp> getQuantizedOps() { return quantizedOps; }

} // namespace partita::import::microsoft
