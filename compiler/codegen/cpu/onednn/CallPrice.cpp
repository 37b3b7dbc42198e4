//===- CallPrice.cpp - A library call, as it is measured ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallPrice.h"

#include "runtime/abi/machine.h"

#include <cmath>

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita::codegen::onednn {
namespace {

RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

double product(ArrayRef<int64_t> sizes) {
  double result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

class Shape {
public:
  Shape(Operation *root, analysis::Rates &rates, int64_t lanes)
      : rates(rates), lanes(lanes) {
    work.root = root;
    work.ofIntegers = nn::multipliesIntegers(root);
  }

  std::optional<CallWork> get() {
    Operation *root = work.root;
    if (auto dot = dyn_cast<nn::DotOp>(root))
      return getDot(dot), work;
    if (auto conv = dyn_cast<nn::ConvOp>(root))
      return getConv(conv), work;
    if (auto attention = dyn_cast<nn::AttentionOp>(root))
      return getAttention(attention), work;
    if (auto window = dyn_cast<nn::WindowReduceOp>(root))
      return getPool(window), work;
    return std::nullopt;
  }

private:
  /// As many as whole vectors hold, if there is more than one vector.
  double roundUp(double count) const {
    return count <= lanes ? lanes : std::ceil(count / lanes) * lanes;
  }

  void getDot(nn::DotOp dot) {
    RankedTensorType lhs = getType(dot.getLhs()), rhs = getType(dot.getRhs());
    double batch = 1, depth = 1;
    for (int64_t dim : dot.getLhsBatch())
      batch *= lhs.getDimSize(dim);
    for (int64_t dim : dot.getLhsContract())
      depth *= lhs.getDimSize(dim);
    double rows = lhs.getNumElements() / std::max(batch * depth, 1.0);
    double columns = rhs.getNumElements() / std::max(batch * depth, 1.0);
    double padded = roundUp(columns);
    const bool packed = rates.isLoad(dot.getRhs());
    work.table = packed ? key::kDot : key::kDotPlain;
    work.point = {rows, padded, depth};
    work.operations = batch * 2 * rows * padded * depth;
    work.weightRows = rows;
    work.weightBytes = packed ? nn::getByteSize(rhs) : 0;
  }

  void getConv(nn::ConvOp conv) {
    RankedTensorType weights = getType(conv.getWeights()), y = conv.getType();
    double groups = conv.getGroups();
    double out = weights.getDimSize(0), in = weights.getDimSize(1);
    double taps = product(weights.getShape().drop_front(2));
    double pixels = y.getNumElements() / std::max(out, 1.0);
    double images = std::max<double>(y.getDimSize(0), 1);
    double side = std::sqrt(pixels / images);
    double stride =
        std::pow(product(conv.getStrides()), 1.0 / conv.getStrides().size());
    if (in == 1 && groups > 1 && groups == out) {
      double padded = roundUp(out);
      work.table = key::kDepthwise;
      work.point = {taps, stride, padded, side};
      work.operations = 2 * taps * padded * pixels;
      work.ofIntegers = false; // they are no faster
      return;
    }
    double padded = roundUp(out / groups);
    work.weightRows = pixels;
    work.weightBytes = nn::getByteSize(weights);
    if (conv->hasAttr(nn::kWinogradAttr)) {
      work.table = key::kWinograd;
      work.point = {in, padded, side};
      work.operations = 2 * taps * in * padded * pixels;
      // The filter is as many times larger as there are elements of a tile to
      // those of a window.
      work.weightBytes = 16 / taps * work.weightBytes;
      return;
    }
    work.table = key::kConv;
    work.point = {taps, stride, in, padded, side};
    work.operations = groups * 2 * taps * in * padded * pixels;
  }

  void getAttention(nn::AttentionOp op) {
    RankedTensorType q = getType(op.getQ()), v = getType(op.getV());
    work.table = key::kAttention;
    work.point = {double(q.getDimSize(2)), double(v.getDimSize(2)),
                  (q.getDimSize(3) + v.getDimSize(3)) / 2.0};
    work.operations = op.getCost().flops;
    // Threads take heads in turns.
    work.parts = q.getDimSize(0) * q.getDimSize(1);
  }

  void getPool(nn::WindowReduceOp op) {
    RankedTensorType y = getType(op.getResult());
    const int64_t rank = y.getRank();
    double taps = product(op.getWindow());
    const bool last = op.getWindow()[rank - 1] == 1;
    double channels = y.getDimSize(last ? rank - 1 : 1);
    double pixels = y.getNumElements() / std::max(channels, 1.0);
    double padded = roundUp(channels);
    double side = std::sqrt(pixels / std::max<double>(y.getDimSize(0), 1));
    work.table = key::kPool;
    work.point = {taps, padded, side};
    work.operations = taps * padded * pixels;
  }

  analysis::Rates &rates;
  const int64_t lanes;
  CallWork work;
};

} // namespace

std::optional<CallWork> getCallWork(ArrayRef<Operation *> ops,
                                    analysis::Rates &rates, int64_t lanes) {
  for (Operation *op : ops)
    if (std::optional<CallWork> work = Shape(op, rates, lanes).get())
      return work;
  return std::nullopt;
}

} // namespace partita::codegen::onednn
