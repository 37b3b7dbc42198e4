//===- LayerRoles.cpp - What a layer begins with --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a parameter is drawn at random depends on the layer that reads it: on how
// many numbers the layer sums (fan-in), and how many sums it makes of each
// (fan-out). The first node that reads a weight decides.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphImport.h"
#include "compiler/import/math/IndexMath.h"
#include "dialects/nn/CheckAttr.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// What fan-in and fan-out are of a weight.
struct Fans {
  int64_t in = 0, out = 0;
};

/// The weight that a value is, in another order or shape perhaps.
nn::ParameterOp getParameter(Value value) {
  while (value) {
    Operation *op = value.getDefiningOp();
    if (auto parameter = dyn_cast_or_null<nn::ParameterOp>(op))
      return parameter;
    if (!isa_and_nonnull<nn::TransposeOp, nn::ReshapeOp, nn::BroadcastOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return {};
}

class RoleNoter {
public:
  RoleNoter(ArrayRef<ModelValue> inputs, Weights &weights)
      : inputs(inputs), weights(weights) {}

  nn::WeightOp weightOf(unsigned input) const {
    nn::ParameterOp parameter = getParameter(valueOf(input));
    return parameter ? weights.find(parameter.getWeight()) : nn::WeightOp();
  }
  Value valueOf(unsigned input) const {
    return input < inputs.size() ? inputs[input].tensor() : Value();
  }
  ArrayRef<int64_t> shapeOf(unsigned input) const {
    Value value = valueOf(input);
    return value ? NodeImport::shapeOf(value) : ArrayRef<int64_t>();
  }

  void note(unsigned input, const Twine &initial, Fans fans = {}) {
    nn::WeightOp weight = weightOf(input);
    if (!weight || weight->hasAttr(nn::kDefaultInitialAttr))
      return;
    Builder b(weight.getContext());
    weight->setAttr(nn::kDefaultInitialAttr, b.getStringAttr(initial));
    if (fans.in > 0)
      weight->setAttr(nn::kFansAttr,
                      b.getDenseI64ArrayAttr({fans.in, fans.out}));
  }
  void noteUniform(unsigned input, double bound, Fans fans = {}) {
    note(input,
         formatv("uniform,low={0:e16},high={1:e16}", -bound, bound).str(),
         fans);
  }
  /// As PyTorch's layers with a product draw both: within 1 / sqrt(fan-in).
  void noteLayer(unsigned weight, unsigned bias, Fans fans) {
    if (fans.in <= 0)
      return;
    const double bound = 1 / std::sqrt(static_cast<double>(fans.in));
    noteUniform(weight, bound, fans);
    noteUniform(bias, bound);
  }

  /// A bias that is added to a product.
  void noteSum() {
    for (unsigned bias : {0, 1}) {
      nn::WeightOp weight = weightOf(bias);
      Value other = valueOf(1 - bias);
      if (!weight || !other ||
          cast<RankedTensorType>(weight.getType()).getRank() != 1)
        continue;
      while (Operation *op = other.getDefiningOp()) {
        if (auto dot = dyn_cast<nn::DotOp>(op)) {
          noteBias(bias, dot);
          break;
        }
        if (!isa<nn::TransposeOp, nn::ReshapeOp, nn::BroadcastOp>(op))
          break;
        other = op->getOperand(0);
      }
    }
  }

private:
  void noteBias(unsigned bias, nn::DotOp dot) {
    for (Value operand : dot->getOperands())
      if (nn::ParameterOp parameter = getParameter(operand))
        if (nn::WeightOp weight = weights.find(parameter.getWeight()))
          if (auto fans =
                  weight->getAttrOfType<DenseI64ArrayAttr>(nn::kFansAttr))
            noteUniform(bias, 1 / std::sqrt(static_cast<double>(fans[0])));
  }

  const ArrayRef<ModelValue> inputs;
  Weights &weights;
};

int64_t getInt(const onnx::NodeProto &node, StringRef name, int64_t standard) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return attribute.i();
  return standard;
}

} // namespace

void noteRoles(const onnx::NodeProto &node, ArrayRef<ModelValue> inputs,
               Weights &weights) {
  RoleNoter noter(inputs, weights);
  const StringRef op = node.op_type();
  const ArrayRef<int64_t> second = noter.shapeOf(1);
  const int64_t rank = static_cast<int64_t>(second.size());
  if (op == "Gemm" && rank == 2) {
    const bool isTransposed = getInt(node, "transB", 0) != 0;
    noter.noteLayer(1, 2, {second[isTransposed], second[!isTransposed]});
  } else if (op == "MatMul" && rank >= 2) {
    const Fans fans{second[rank - 2], second[rank - 1]};
    noter.noteLayer(1, inputs.size(), fans);
  } else if ((op == "Conv" || op == "ConvTranspose") && rank >= 3) {
    // Of both, PyTorch takes dimension 1 for what is summed.
    const int64_t window = product(second.drop_front(2));
    noter.noteLayer(1, 2, {second[1] * window, second[0] * window});
  } else if (op == "BatchNormalization" || op == "InstanceNormalization" ||
             op == "GroupNormalization" || op == "LayerNormalization" ||
             op == "RMSNormalization") {
    noter.note(1, "constant,value=1");
    noter.note(2, "constant,value=0");
    noter.note(3, "constant,value=0");
    noter.note(4, "constant,value=1");
  } else if (op == "Gather" && getInt(node, "axis", 0) == 0 &&
             noter.shapeOf(0).size() == 2) {
    noter.note(0, "normal,mean=0,std=1",
               {noter.shapeOf(0)[1], noter.shapeOf(0)[0]});
  } else if ((op == "LSTM" || op == "GRU" || op == "RNN") && rank == 3) {
    const int64_t cells =
        noter.shapeOf(2).size() == 3 ? noter.shapeOf(2)[2] : 0;
    for (unsigned input : {1, 2, 3})
      if (ArrayRef<int64_t> shape = noter.shapeOf(input);
          cells > 0 && !shape.empty())
        noter.noteUniform(input, 1 / std::sqrt(static_cast<double>(cells)),
                          {shape.back(), cells});
  } else if (op == "PRelu") {
    noter.note(1, "constant,value=0.25");
  } else if (op == "Add") {
    noter.noteSum();
  }
}

} // namespace partita::import
