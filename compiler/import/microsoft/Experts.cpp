//===- Experts.cpp - Layers of experts, in com.microsoft ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A router scores the experts for each word. The best k of them compute it, and
// their results are added, weighted by the scores' softmax. An expert is two
// products with an activation in between, or three where one gates another:
//
//   fc2(f(fc1(x)))    fc2(f(fc1(x)) * fc3(x))
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/IndexMath.h"
#include "compiler/import/microsoft/Microsoft.h"

#include <cmath>
#include <numbers>

using namespace llvm;
using namespace mlir;

namespace partita::import::microsoft {
namespace {

/// Which inputs a product of experts has.
struct ProductInputs {
  StringLiteral name;
  unsigned weights, bias;
  unsigned scales = 0, zeros = 0; ///< of packed weights
};

class Experts {
public:
  Experts(NodeImport &n, bool isPacked)
      : n(n), isPacked(isPacked),
        function(n.stringAttr("activation_type", "relu")),
        fusion(n.intAttr("swiglu_fusion", 0)),
        fc1(isPacked ? ProductInputs{"fc1", 2, 4, 3, 11}
                     : ProductInputs{"fc1", 2, 3}),
        fc2(isPacked ? ProductInputs{"fc2", 5, 7, 6, 12}
                     : ProductInputs{"fc2", 4, 5}),
        fc3(isPacked ? ProductInputs{"fc3", 8, 10, 9, 13}
                     : ProductInputs{"fc3", 6, 7}) {}

  LogicalResult import() {
    PARTITA_TRY(checkOptions());
    PARTITA_TRY(setSizes());
    Value weights = PARTITA_TRY(choose());
    const Shape each = {rows, chosen, hidden};
    Value x = PARTITA_TRY(
        n.broadcastDims(n.reshape(n.input(0), {rows, hidden}), {0, 2}, each));
    Value inner = PARTITA_TRY(activate(x));
    Value y = PARTITA_TRY(multiply(fc2, inner, hidden));
    auto weigh = [&](Value each) {
      Value weighted =
          n.mul(each, n.broadcastDims(weights, {0, 1}, n.shapeOf(y)));
      return n.reduce(nn::ReduceKind::sum, weighted, {1}, /*keep=*/false);
    };
    Value sum = weigh(y);
    // Behind the sum, so that devices join what is summed, and not each part.
    if (isGiven(n, fc2.bias)) {
      Value bias = PARTITA_TRY(gatherBias(fc2, n.typeOf(y)));
      sum = n.add(sum, weigh(bias));
    }
    return n.result(0, n.reshape(sum, n.shapeOf(n.input(0))));
  }

private:
  LogicalResult checkOptions() {
    PARTITA_TRY(checkInt(n, "use_sparse_mixer", 0));
    PARTITA_TRY(checkInt(n, "swiglu_limit_after_activation", 0));
    if (isPacked) {
      if (n.stringAttr("quant_type", "int") != "int")
        return n.error("quant_type can only be int");
      if (n.intAttr("weights_prepacked", -1) == 1)
        return n.error("weights_prepacked = 1 is not supported: give weights "
                       "as the quantizer writes them (0)");
      for (unsigned i = 15; i < n.inputs.size(); ++i)
        PARTITA_TRY(checkOmitted(n, i, "a scale of floats of 8 or 4 bits"));
    }
    if (!is_contained({"relu", "gelu", "silu", "swiglu", "identity"}, function))
      return n.error("activation_type = " + Twine(function) +
                     " is not supported; it can be relu, gelu, silu, swiglu "
                     "or identity");
    const bool isGated = isGiven(n, fc3.weights);
    for (unsigned i : {fc3.bias, fc3.scales, fc3.zeros})
      if (!isGated && i != 0 && isGiven(n, i))
        return n.error("input " + Twine(i) +
                       " is given without fc3_experts_weights");
    if (function == "swiglu") {
      if (fusion < 0 || fusion > 2 || isGated != (fusion == 0))
        return n.error(
            "swiglu needs two products: fc3_experts_weights and swiglu_fusion "
            "= 0, or swiglu_fusion = 1 or 2 and no fc3_experts_weights");
    } else {
      fusion = 0;
    }
    return success();
  }

  LogicalResult setSizes() {
    Value x = n.input(0), router = n.input(1);
    if (!isa<FloatType>(n.elementOf(x)) || n.typeOf(x).getRank() < 2)
      return n.error("input must be floats, of 2 or 3 dimensions");
    hidden = n.shapeOf(x).back();
    rows = n.typeOf(x).getNumElements() / std::max<int64_t>(hidden, 1);
    PARTITA_TRY(checkRank(n, 1, "router_probs", 2));
    experts = n.shapeOf(router)[1];
    chosen = n.intAttr("k", 1);
    if (n.shapeOf(router)[0] != rows || hidden < 1 || experts < 1)
      return n.error("router_probs must have " + Twine(rows) +
                     " rows, one for each word of input");
    if (chosen < 1 || chosen > experts)
      return n.error("k = " + Twine(chosen) + "; there are " + Twine(experts) +
                     " experts");
    return success();
  }

  /// Sets `indices`; returns the weight of each chosen expert. Null after an
  /// error.
  Value choose() {
    Value scores = n.cast(n.input(1), n.b.getF32Type());
    const Shape shape = {rows, chosen};
    const bool normalized = n.intAttr("normalize_routing_weights", 0) != 0;
    if (rows == 0)
      indices = n.splat(0, shape, n.b.getI64Type());
    else
      indices = n.make<nn::TopKOp>(
          RankedTensorType::get(shape, n.b.getI64Type()), true, scores);
    auto softmax = [&](Value x) -> Value {
      return n.make<nn::SoftmaxOp>(x.getType(), x, 1, /*log=*/false);
    };
    auto pick = [&](Value x) {
      return n.make<nn::GatherElementsOp>(
          RankedTensorType::get(shape, n.elementOf(x)), x, indices, 1);
    };
    Value weights;
    if (isPacked && isGiven(n, 14)) {
      Value given = n.cast(n.input(14), n.b.getF32Type());
      if (n.shapeOf(given) != ArrayRef({rows, experts}))
        return n.refuse("router_weights must have the shape of router_probs");
      weights = pick(given);
      if (normalized) {
        Value sum = n.reduce(nn::ReduceKind::sum, weights, {1}, /*keep=*/true);
        weights = n.div(weights, n.broadcastTo(sum, shape));
      }
    } else {
      // ONNX Runtime normalizes those of packed experts on CPUs in any case.
      weights = normalized || isPacked ? softmax(pick(scores))
                                       : pick(softmax(scores));
    }
    return n.cast(weights, n.elementOf(n.input(0)));
  }

  Value logistic(Value x) { return n.unary<nn::LogisticOp>(x); }

  /// The approximation by tanh, as ONNX Runtime has it.
  Value gelu(Value x) {
    Value cube = n.mul(n.mul(x, x), x);
    Value inner = n.add(x, n.mul(cube, 0.044715));
    Value tanh =
        n.unary<nn::TanhOp>(n.mul(inner, std::sqrt(2 / std::numbers::pi)));
    return n.mul(n.mul(x, 0.5), n.add(tanh, 1));
  }

  /// g * logistic(alpha * g) * (l + beta) of bounded g and l.
  Value swiglu(Value g, Value l) {
    const double alpha = n.floatAttr("activation_alpha", 1),
                 beta = n.floatAttr("activation_beta", 0);
    if (n.attr("swiglu_limit")) {
      const double limit = n.floatAttr("swiglu_limit", 0);
      g = n.min(g, limit);
      l = n.max(n.min(l, limit), -limit);
    }
    Value gate = n.mul(g, logistic(n.mul(g, alpha)));
    return n.mul(gate, n.add(l, beta));
  }

  /// What fc2 multiplies. Null after an error.
  Value activate(Value x) {
    Value first = PARTITA_TRY(multiplyAdd(fc1, x, -1));
    const int64_t width = n.shapeOf(first).back();
    if (fusion != 0) {
      if (width % 2)
        return n.refuse("fc1_experts_weights must have an even number of rows");
      // As pairs, or as two halves: either way each device can have its part.
      const int64_t half = width / 2, dim = fusion == 1 ? 3 : 2;
      Shape split = {rows, chosen, half, half};
      split[dim] = 2;
      Value pairs = n.reshape(first, split);
      return swiglu(n.at(pairs, dim, 0), n.at(pairs, dim, 1));
    }
    Value gated;
    if (isGiven(n, fc3.weights))
      gated = PARTITA_TRY(multiplyAdd(fc3, x, width));
    if (function == "swiglu")
      return swiglu(first, gated);
    Value result = function == "relu"   ? n.unary<nn::ReluOp>(first)
                   : function == "gelu" ? gelu(first)
                   : function == "silu" ? n.mul(first, logistic(first))
                                        : first;
    return gated ? n.mul(result, gated) : result;
  }

  /// x [rows, chosen, K] times the matrices of the chosen experts. `width`: of
  /// the result, if it is known. Null after an error.
  Value multiply(const ProductInputs &inputs, Value x, int64_t width) {
    Value weights = n.input(inputs.weights);
    const Type element = n.elementOf(x);
    if (!weights || n.typeOf(weights).getRank() != 3)
      return wrongWeights(inputs, x);
    const int64_t columns = n.shapeOf(weights)[1];
    if (n.shapeOf(weights)[0] != experts || columns < 1 ||
        (width >= 0 && columns != width))
      return wrongWeights(inputs, x);
    RankedTensorType type =
        PARTITA_TRY(n.tensor({rows, chosen, columns}, element));
    if (isPacked)
      return multiplyPacked(inputs, x, type);
    if (n.shapeOf(weights)[2] != n.shapeOf(x)[2] ||
        n.elementOf(weights) != element)
      return wrongWeights(inputs, x);
    return n.make<nn::ExpertDotOp>(type, x, weights, indices);
  }

  /// The same, and their biases.
  Value multiplyAdd(const ProductInputs &inputs, Value x, int64_t width) {
    Value product = multiply(inputs, x, width);
    if (!product || !isGiven(n, inputs.bias))
      return product;
    return n.add(product, gatherBias(inputs, n.typeOf(product)));
  }

  /// The biases of the chosen experts, of this type. Null after an error.
  Value gatherBias(const ProductInputs &inputs, RankedTensorType type) {
    Value bias = n.input(inputs.bias);
    if (n.shapeOf(bias) != ArrayRef({experts, type.getDimSize(2)}) ||
        n.elementOf(bias) != type.getElementType())
      return n.refuse(inputs.name +
                      Twine("_experts_bias must have the shape ") +
                      Twine(experts) + "x" + Twine(type.getDimSize(2)) +
                      ", and the type of input");
    return n.gather(bias, indices, 0);
  }

  /// Numbers are packed along K, which is the sum. Without blocks a row has one
  /// scale, which its blocks share here.
  Value multiplyPacked(const ProductInputs &inputs, Value x,
                       RankedTensorType type) {
    Value weights = n.input(inputs.weights), scales = n.input(inputs.scales);
    const int64_t bits = n.intAttr((inputs.name + "_expert_weight_bits").str(),
                                   n.intAttr("expert_weight_bits", 4));
    const int64_t given = n.intAttr("block_size", 0);
    const int64_t depth = n.shapeOf(x)[2], columns = type.getDimSize(2);
    // Without blocks: the largest ones up to 256 that divide a row. A scale is
    // repeated for each.
    int64_t block = given > 0
                        ? given
                        : std::clamp<int64_t>(depth & -depth, kLeastBlock, 256);
    PARTITA_TRY(checkBlocks(n, bits, block));
    // One that is longer than a row would be filled up with zeros.
    block = std::min(
        block, std::max<int64_t>(PowerOf2Ceil(uint64_t(depth)), kLeastBlock));
    const int64_t blocks = divideCeil(depth, block), perRow = depth * bits / 8,
                  padded = blocks * block * bits / 8;
    Shape ofScales = {experts, columns};
    if (given > 0)
      ofScales.push_back(blocks);
    if (!n.elementOf(weights).isUnsignedInteger(8) || depth * bits % 8 ||
        n.shapeOf(weights)[2] != perRow)
      return wrongWeights(inputs, x);
    if (!scales || !isa<FloatType>(n.elementOf(scales)) ||
        n.shapeOf(scales) != ArrayRef(ofScales))
      return n.refuse(inputs.name +
                      Twine("_scales must have a float for each row of the "
                            "weights, or for each block of block_size in it"));
    const Shape ofBlocks = {experts, columns, blocks};
    auto spread = [&](Value value) {
      return given > 0 ? n.reshape(value, ofBlocks)
                       : n.broadcastDims(value, {0, 1}, ofBlocks);
    };
    Value zeros;
    if (Value points = n.input(inputs.zeros)) {
      const int64_t of[] = {given > 0 ? experts * columns : experts,
                            given > 0 ? blocks : columns};
      Value found =
          PARTITA_TRY(getZeros(n, points, of, bits, type.getElementType()));
      zeros = spread(found);
    }
    if (padded != perRow)
      weights = n.pad(weights, n.splat(0, {}, n.elementOf(weights)), {0, 0, 0},
                      {0, 0, padded - perRow});
    return n.make<nn::PackedDotOp>(
        type, x,
        n.reshape(weights, {experts, columns, blocks, padded / blocks}),
        n.cast(spread(scales), type.getElementType()), zeros, indices, bits);
  }

  Value wrongWeights(const ProductInputs &inputs, Value x) {
    return n.refuse(
        inputs.name + Twine("_experts_weights must have three dimensions: ") +
        Twine(experts) + " experts, their results, and " +
        Twine(n.shapeOf(x)[2]) +
        (isPacked ? " numbers in bytes (uint8)" : " numbers, of input's type") +
        (inputs.name == "fc2" ? ("; results are " + Twine(hidden)).str() : "") +
        (isPacked ? "; those that were packed for GPUs lie in another order: "
                    "build the model for CPUs, or with weights_prepacked = 0"
                  : ""));
  }

  static constexpr int64_t kLeastBlock = 16;

  NodeImport &n;
  const bool isPacked;
  const std::string function;
  int64_t fusion;
  const ProductInputs fc1, fc2, fc3;
  int64_t rows = 0, hidden = 0, experts = 0, chosen = 0;
  Value indices; ///< [rows, chosen]
};

template <bool isPacked> LogicalResult importExperts(NodeImport &n) {
  return Experts(n, isPacked).import();
}

const ForeignOp expertOps[] = {
    {"MoE",
     "input, router_probs, fc1_experts_weights, fc1_experts_bias?, "
     "fc2_experts_weights, fc2_experts_bias?, fc3_experts_weights?, "
     "fc3_experts_bias?",
     "output",
     "activation_type: string, k: int = 1, normalize_routing_weights: int = 0, "
     "use_sparse_mixer: int = 0, swiglu_fusion: int = 0, swiglu_limit: float, "
     "activation_alpha: float = 1, activation_beta: float = 0, "
     "swiglu_limit_after_activation: int = 0",
     importExperts<false>},
    {"QMoE",
     "input, router_probs, fc1_experts_weights, fc1_scales?, "
     "fc1_experts_bias?, fc2_experts_weights, fc2_scales?, fc2_experts_bias?, "
     "fc3_experts_weights?, fc3_scales?, fc3_experts_bias?, fc1_zero_points?, "
     "fc2_zero_points?, fc3_zero_points?, router_weights?, "
     "fc1_global_scale?, fc2_global_scale?, fc1_act_scale?, fc2_act_scale?, "
     "fc1_act_block_scale?, fc2_act_block_scale?",
     "output",
     "activation_type: string, k: int = 1, normalize_routing_weights: int = 0, "
     "use_sparse_mixer: int = 0, swiglu_fusion: int = 0, swiglu_limit: float, "
     "activation_alpha: float = 1, activation_beta: float = 0, "
     "swiglu_limit_after_activation: int = 0, expert_weight_bits: int = 4, "
     "fc1_expert_weight_bits: int, fc2_expert_weight_bits: int, "
     "fc3_expert_weight_bits: int, block_size: int, quant_type: string, "
     "weights_prepacked: int = -1, accuracy_level: int",
     importExperts<true>},
};

} // namespace

ArrayRef<ForeignOp> getExpertOps() { return expertOps; }

} // namespace partita::import::microsoft
