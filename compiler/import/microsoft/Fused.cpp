//===- Fused.cpp - Products and activations of com.microsoft --------------===//
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
// Activations
//===----------------------------------------------------------------------===//

LogicalResult importFastGelu(NodeImport &n) {
  return Body(n)
      .add(isGiven(n, 1) ? "sum = Add (X, bias)" : "sum = Identity (X)")
      .add("Y = Gelu <approximate = \"tanh\"> (sum)")
      .expand();
}

/// Adds the activation that the node names, `Y` of `sum`. `parameters`: the
/// attributes that have its numbers, or one that has them all.
LogicalResult addActivation(NodeImport &n, Body &body,
                            ArrayRef<StringRef> parameters) {
  const std::string name = n.stringAttr("activation", "");
  auto parameter = [&](int i, double byDefault) {
    if (parameters.size() > 1)
      return asFloat(
          n.floatAttr(parameters[static_cast<size_t>(i)], byDefault));
    const onnx::AttributeProto *all = n.attr(parameters.front());
    return all && i < all->floats_size() ? all->floats(i) : asFloat(byDefault);
  };
  if (name.empty())
    body.add("Y = Identity (sum)");
  else if (name == "Relu" || name == "Sigmoid" || name == "Tanh")
    body.add("Y = " + name + " (sum)");
  else if (name == "LeakyRelu")
    body.add("Y = LeakyRelu (sum)").attribute("alpha", parameter(0, 0.01));
  else if (name == "HardSigmoid")
    body.add("Y = HardSigmoid (sum)")
        .attribute("alpha", parameter(0, 0.2))
        .attribute("beta", parameter(1, 0.5));
  else if (name == "Clip")
    body.scalar("low32", parameter(0, std::numeric_limits<float>::lowest()))
        .scalar("high32", parameter(1, std::numeric_limits<float>::max()))
        .add("low = CastLike (low32, sum) high = CastLike (high32, sum)"
             "Y = Clip (sum, low, high)");
  else
    return n.error("the activation '" + name +
                   "' is not supported; it can be Relu, Sigmoid, Tanh, "
                   "LeakyRelu, HardSigmoid or Clip");
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The dimensions of a factor as MatMul expects them: `outer` says that the
/// first one stands before the batch, `last` that the last two are exchanged.
Shape orderOf(int64_t rank, bool outer, bool last) {
  Shape order = to_vector(seq<int64_t>(rank));
  if (rank < 2)
    return order;
  if (outer)
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (last)
    std::swap(order[rank - 2], order[rank - 1]);
  return order;
}

LogicalResult importFusedMatMul(NodeImport &n) {
  Body body(n);
  const std::string factors[] = {"A", "B"};
  for (auto [i, name] : enumerate(factors)) {
    const Shape order = orderOf(n.typeOf(n.input(i)).getRank(),
                                n.intAttr("transBatch" + name, 0),
                                n.intAttr("trans" + name, 0));
    body.add(Twine("t") + name + " = Transpose (" + name + ")")
        .attribute("perm", std::vector<int64_t>(order.begin(), order.end()));
  }
  body.add("product = MatMul (tA, tB)");
  const double alpha = n.floatAttr("alpha", 1);
  if (alpha == 1)
    return body.add("Y = Identity (product)").expand();
  return body.scalar("alpha32", asFloat(alpha))
      .add("scale = CastLike (alpha32, product) Y = Mul (product, scale)")
      .expand();
}

LogicalResult importFusedGemm(NodeImport &n) {
  Body body(n);
  body.add("sum = Gemm <alpha: float = @alpha, beta: float = @beta, "
           "transA: int = @transA, transB: int = @transB> (A, B, C)");
  PARTITA_TRY(addActivation(n, body, {"activation_alpha", "activation_beta"}));
  return body.expand();
}

LogicalResult importFusedConv(NodeImport &n) {
  Body body(n);
  body.add("product = Conv <auto_pad: string = @auto_pad, "
           "dilations: ints = @dilations, group: int = @group, "
           "kernel_shape: ints = @kernel_shape, pads: ints = @pads, "
           "strides: ints = @strides> (X, W, B)")
      .add(isGiven(n, 3) ? "sum = Add (product, Z)"
                         : "sum = Identity (product)");
  PARTITA_TRY(addActivation(n, body, {"activation_params"}));
  return body.expand();
}

const ForeignOp fusedOps[] = {
    {"BiasAdd", "X, bias, skip", "Y", "",
     importAs<"sum = Add (X, bias) Y = Add (sum, skip)">},
    {"BiasGelu", "A, B", "C", "", importAs<"sum = Add (A, B) C = Gelu (sum)">},
    {"BiasSplitGelu", "X, bias", "Y", "",
     importAs<"sum = Add (X, bias)"
              "left, right = Split <axis = -1, num_outputs = 2> (sum)"
              "gate = Gelu (right)"
              "Y = Mul (left, gate)">},
    {"FastGelu", "X, bias?", "Y", "", importFastGelu},
    {"FusedConv", "X, W, B?, Z?", "Y",
     "auto_pad: string, dilations: ints, group: int = 1, kernel_shape: ints, "
     "pads: ints, strides: ints, activation: string, activation_params: floats",
     importFusedConv},
    {"FusedGemm", "A, B, C?", "Y",
     "alpha: float = 1, beta: float = 1, transA: int = 0, transB: int = 0, "
     "activation: string, activation_alpha: float, activation_beta: float, "
     "activation_gamma: float",
     importFusedGemm},
    {"FusedMatMul", "A, B", "Y",
     "alpha: float = 1, transA: int = 0, transB: int = 0, "
     "transBatchA: int = 0, transBatchB: int = 0",
     importFusedMatMul},
    {"Gelu", "X", "Y", "", importAs<"Y = Gelu (X)">},
    {"QuickGelu", "X", "Y", "alpha: float = 1.702",
     importAs<"Y = Swish <alpha: float = @alpha> (X)">},
    {"TransposeMatMul", "A, B", "Y",
     "alpha: float = 1, transA: int = 0, transB: int = 0", importFusedMatMul},
};

} // namespace

ArrayRef<ForeignOp> getFusedOps() { return fusedOps; }

} // namespace partita::import::microsoft
