//===- Sampling.cpp - Images read between their elements ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexCheck.h"
#include "compiler/import/math/IndexMath.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// Reads an image [N, C, S..] at computed places.
class Sampler {
public:
  /// `coordinates` count along S.., each of the shape `where`; `batch`, of that
  /// shape too, says which image. The samples have the shape [where.., C].
  /// `padding`: "zeros", "border" or "reflection".
  Sampler(NodeImport &n, Value image, Value batch, std::string padding,
          bool corners)
      : n(n), batch(batch), padding(std::move(padding)), corners(corners) {
    Shape shape(n.shapeOf(image)), last{0};
    sizes.assign(shape.begin() + 2, shape.end());
    for (size_t i = 2; i < shape.size(); ++i)
      last.push_back(static_cast<int64_t>(i));
    last.push_back(1);
    flat = n.reshape(n.transpose(image, last),
                     {shape[0] * product(sizes), shape[1]});
  }

  /// A coordinate that lies outside is brought inside, unless there are zeros.
  Value fold(Value x, size_t dim) {
    double low = corners ? 0 : -0.5,
           high = static_cast<double>(sizes[dim]) - (corners ? 1 : 0.5);
    if (padding == "border")
      return clampTo(n, x, 0, static_cast<double>(sizes[dim] - 1));
    if (padding == "reflection")
      return reflect(x, low, high);
    return x;
  }

  /// The elements at whole coordinates (floats).
  Value read(ArrayRef<Value> coordinates) {
    Value index = batch, inside;
    Type wide = n.b.getI64Type();
    for (auto [dim, given] : enumerate(coordinates)) {
      double size = static_cast<double>(sizes[dim]);
      Value x = given;
      if (padding == "reflection")
        x = reflect(x, corners ? 0 : -0.5, corners ? size - 1 : size - 0.5);
      if (padding == "zeros") {
        Value here = isWithin(n, x, -0.25, size - 0.75);
        inside = inside ? n.binary<nn::AndOp>(inside, here) : here;
      }
      x = n.cast(n.unary<nn::RoundEvenOp>(clampTo(n, x, 0, size - 1)), wide);
      index = n.add(n.mul(index, size), x);
    }
    Value read = n.gather(flat, index, 0);
    if (!inside || !read)
      return read;
    return n.select(alongChannels(inside, read), read, 0);
  }

  /// A number for each sample, repeated for its channels.
  Value alongChannels(Value x, Value samples) {
    if (!x || !samples)
      return {};
    return n.broadcastDims(x, to_vector(seq<int64_t>(0, n.typeOf(x).getRank())),
                           n.shapeOf(samples));
  }

  Value weigh(Value samples, Value weight) {
    return n.mul(samples,
                 alongChannels(n.cast(weight, n.elementOf(samples)), samples));
  }

  Shape sizes;

private:
  /// To and fro between low and high.
  Value reflect(Value x, double low, double high) {
    double range = high - low;
    if (range <= 0)
      return n.splat(low, x);
    // A saw of period 2 * range.
    Value moved = n.add(x, -low);
    Value turns = n.unary<nn::FloorOp>(n.mul(moved, 0.5 / range));
    Value rest = n.sub(moved, n.mul(turns, 2 * range));
    Value mirrored = n.sub(n.splat(2 * range, rest), rest);
    return n.add(n.min(rest, mirrored), low);
  }

  NodeImport &n;
  Value batch, flat;
  const std::string padding;
  bool corners;
};

/// The weights of the taps floor(x) - 1 .. + 2 of a cubic with a = -0.75.
SmallVector<Value> makeCubic(NodeImport &n, Value t) {
  constexpr double a = -0.75;
  auto near = [&](Value x) { // |x| <= 1
    Value p = n.add(n.mul(x, a + 2), -(a + 3));
    return n.add(n.mul(n.mul(p, x), x), 1);
  };
  auto far = [&](Value x) { // 1 < |x| < 2
    Value p = n.add(n.mul(x, a), -5 * a);
    p = n.add(n.mul(p, x), 8 * a);
    return n.add(n.mul(p, x), -4 * a);
  };
  Value rest = n.sub(n.splat(1, t), t);
  return {far(n.add(t, 1)), near(t), near(rest), far(n.add(rest, 1))};
}

/// Sum over all combinations of taps along the dimensions.
Value combineTaps(NodeImport &n, Sampler &sampler,
                  ArrayRef<SmallVector<std::pair<Value, Value>>> taps,
                  SmallVectorImpl<Value> &chosen, Value weight) {
  if (chosen.size() == taps.size())
    return sampler.weigh(sampler.read(chosen), weight);
  Value sum;
  for (auto [at, factor] : taps[chosen.size()]) {
    Value product = weight ? n.mul(weight, factor) : factor;
    chosen.push_back(at);
    Value part = combineTaps(n, sampler, taps, chosen, product);
    chosen.pop_back();
    sum = sum ? n.add(sum, part) : part;
  }
  return sum;
}

LogicalResult importGridSample(NodeImport &n) {
  Value x = n.input(0), grid = n.input(1);
  ArrayRef<int64_t> shape = n.shapeOf(x), given = n.shapeOf(grid);
  int64_t rank = static_cast<int64_t>(shape.size()) - 2;
  if (rank < 1 || rank > 3 || given.size() != shape.size() ||
      given.back() != rank || given[0] != shape[0])
    return n.error("the grid does not fit the input");
  Shape result(shape.take_front(2));
  append_range(result, given.drop_front().drop_back());
  if (product(result) == 0)
    return n.result(0, n.splat(0, result, n.elementOf(x)));
  if (is_contained(shape, 0))
    return n.error("the input is empty");
  std::string mode = PARTITA_TRY(
      n.choice("mode", {"linear", "bilinear", "nearest", "cubic", "bicubic"}));
  bool isCubic = mode == "cubic" || mode == "bicubic";
  std::string padding =
      PARTITA_TRY(n.choice("padding_mode", {"zeros", "border", "reflection"}));
  bool corners = n.intAttr("align_corners", 0) != 0;
  ArrayRef<int64_t> where = given.drop_back();
  Type element = n.elementOf(x);
  Type real = element.isF64() ? element : n.b.getF32Type();
  grid = n.cast(grid, real);
  Sampler sampler(n, x, makeIota(n, where, 0), padding, corners);
  SmallVector<SmallVector<std::pair<Value, Value>>> taps;
  for (int64_t dim = 0; dim < rank; ++dim) {
    // The grid's last dimension begins with the innermost coordinate.
    Value at = n.at(grid, rank + 1, rank - 1 - dim);
    double size = static_cast<double>(shape[dim + 2]);
    // -1 .. 1 covers the image from centre to centre or from edge to edge.
    at = n.add(n.mul(at, (corners ? size - 1 : size) / 2), (size - 1) / 2);
    if (mode == "nearest")
      at = n.unary<nn::RoundEvenOp>(at);
    at = sampler.fold(at, dim);
    auto &own = taps.emplace_back();
    if (mode == "nearest") {
      own.push_back({at, Value()});
      continue;
    }
    Value floor = n.unary<nn::FloorOp>(at);
    Value t = n.sub(at, floor);
    if (isCubic) {
      SmallVector<Value> weights = makeCubic(n, t);
      for (int64_t i = 0; i < 4; ++i)
        own.push_back({n.add(floor, static_cast<double>(i) - 1), weights[i]});
    } else {
      own.push_back({floor, n.sub(n.splat(1, t), t)});
      own.push_back({n.add(floor, 1), t});
    }
  }
  Value samples;
  SmallVector<Value> chosen;
  if (mode == "nearest") {
    for (const auto &own : taps)
      chosen.push_back(own.front().first);
    samples = sampler.read(chosen);
  } else {
    samples = combineTaps(n, sampler, taps, chosen, {});
  }
  // [N, where.., C] -> [N, C, where..]
  Shape permutation{0, rank + 1};
  for (int64_t dim = 1; dim <= rank; ++dim)
    permutation.push_back(dim);
  return n.result(0, n.transpose(samples, permutation));
}

/// Each region of interest is divided into cells, and each cell's samples are
/// averaged, or the largest is taken.
LogicalResult importRoiAlign(NodeImport &n) {
  Value x = n.input(0), rois = n.input(1), batch = n.input(2);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  if (shape.size() != 4 || n.typeOf(rois).getRank() != 2 ||
      n.shapeOf(rois)[1] != 4 ||
      n.shapeOf(batch) != n.shapeOf(rois).take_front())
    return n.error("it takes images of rank 4, rois of four numbers, and as "
                   "many batch_indices");
  int64_t height = n.intAttr("output_height", 1),
          width = n.intAttr("output_width", 1),
          ratio = n.intAttr("sampling_ratio", 0), count = n.shapeOf(rois)[0];
  if (height < 1 || width < 1 || height > 65536 || width > 65536)
    return n.error("output_height and output_width must be positive");
  if (count == 0 || shape[1] == 0)
    return n.result(
        0, n.splat(0, {count, shape[1], height, width}, n.elementOf(x)));
  if (is_contained(shape, 0))
    return n.error("the input is empty");
  PARTITA_TRY(
      checkRange(n, batch, NumberRange{0, shape[0] - 1}, {2, "batch_indices"}));
  if (ratio < 1 || ratio > 64)
    return n.error("sampling_ratio must be from 1 to 64: how many samples 0 "
                   "means depends on the regions");
  std::string mode = PARTITA_TRY(n.choice("mode", {"avg", "max"}));
  bool isHalf = n.opset >= 16 && n.stringAttr("coordinate_transformation_mode",
                                              "half_pixel") == "half_pixel";
  double offset = isHalf ? 0.5 : 0, scale = n.floatAttr("spatial_scale", 1);
  Type real = n.elementOf(x).isF64() ? n.elementOf(x) : n.b.getF32Type();
  rois = n.cast(rois, real);
  // All places: [R, H, ratio, W, ratio].
  Shape where{count, height, ratio, width, ratio};
  auto edge = [&](int64_t i) {
    return n.add(n.mul(n.at(rois, 1, i), scale), -offset);
  };
  Sampler sampler(n, x,
                  n.broadcastDims(n.cast(batch, n.b.getI64Type()), {0}, where),
                  "border", true);
  SmallVector<SmallVector<std::pair<Value, Value>>> taps;
  Value inside;
  for (int64_t dim : {0, 1}) {
    Value low = edge(dim == 0 ? 1 : 0), high = edge(dim == 0 ? 3 : 2);
    Value length = n.sub(high, low);
    if (!isHalf)
      length = n.max(length, 1);
    int64_t cells = dim == 0 ? height : width;
    Value cell = n.mul(length, 1.0 / static_cast<double>(cells));
    // (cell + (sample + 1/2) / ratio) * its length
    Value step = n.cast(makeIota(n, where, dim == 0 ? 1 : 3), real);
    Value sample = n.cast(makeIota(n, where, dim == 0 ? 2 : 4), real);
    Value place = n.add(
        step, n.mul(n.add(sample, 0.5), 1.0 / static_cast<double>(ratio)));
    Value at = n.add(n.mul(place, n.broadcastDims(cell, {0}, where)),
                     n.broadcastDims(low, {0}, where));
    double size = static_cast<double>(shape[dim + 2]);
    Value here = n.binary<nn::AndOp>(n.ge(at, -1), n.le(at, size));
    inside = inside ? n.binary<nn::AndOp>(inside, here) : here;
    at = clampTo(n, at, 0, size - 1);
    Value floor = n.unary<nn::FloorOp>(at);
    Value t = n.sub(at, floor);
    taps.push_back({{floor, n.sub(n.splat(1, t), t)}, {n.add(floor, 1), t}});
  }
  Value samples;
  SmallVector<Value> chosen;
  if (mode == "avg") {
    samples = combineTaps(n, sampler, taps, chosen, {});
  } else {
    // The largest of the weighted neighbours, as ONNX has it.
    for (auto [y, yWeight] : taps[0])
      for (auto [x, xWeight] : taps[1]) {
        Value part =
            sampler.weigh(sampler.read({y, x}), n.mul(yWeight, xWeight));
        samples = samples ? n.max(samples, part) : part;
      }
  }
  if (!samples)
    return failure();
  samples = n.select(sampler.alongChannels(inside, samples), samples, 0);
  Value result = mode == "avg"
                     ? n.mean(samples, {2, 4}, /*keep=*/false)
                     : n.reduce(nn::ReduceKind::max, samples, {2, 4}, false);
  return n.result(0, n.transpose(result, {0, 3, 1, 2}));
}

/// Where the elements of an image lie in another that is moved, turned and
/// scaled. ONNX's function body divides by the size less one; for a size of one
/// ONNX Runtime takes the end of -1 .. 1, and so do we.
LogicalResult importAffineGrid(NodeImport &n) {
  Value theta = n.input(0);
  Shape size = PARTITA_TRY(n.constantInts(1, "the size of the grid"));
  int64_t rank = static_cast<int64_t>(size.size()) - 2;
  if ((rank != 2 && rank != 3) ||
      n.shapeOf(theta) != ArrayRef<int64_t>{size.front(), rank, rank + 1})
    return n.error("theta must have the dimensions [N, 2, 3] for a size of "
                   "four numbers, or [N, 3, 4] for one of five");
  if (llvm::any_of(size, [](int64_t s) { return s < 0; }))
    return n.error("the size must not be negative");
  bool corners = n.intAttr("align_corners", 0) != 0;
  Type element = n.elementOf(theta);
  Type real = element.isF64() ? element : n.b.getF32Type();
  theta = n.cast(theta, real);
  // [N, image.., rank]
  Shape result(size);
  result.erase(result.begin() + 1);
  result.push_back(rank);
  auto factors = [&](int64_t column) {
    return n.broadcastDims(n.at(theta, 2, column), {0, rank + 1}, result);
  };
  Value sum;
  for (int64_t column = 0; column < rank; ++column) {
    // The first coordinate counts along the innermost dimension.
    int64_t dim = rank - column, count = result[dim];
    double last = static_cast<double>(count - 1);
    Value at = n.cast(makeIota(n, {count}, 0), real);
    if (corners)
      at = count == 1 ? n.splat(1, at) : n.add(n.mul(at, 2 / last), -1);
    else
      at = n.mul(n.add(n.mul(at, 2), -last), 1 / static_cast<double>(count));
    Value term = n.mul(factors(column), n.broadcastDims(at, {dim}, result));
    sum = sum ? n.add(sum, term) : term;
  }
  sum = n.add(sum, factors(rank));
  return n.result(0, n.cast(sum, element));
}

const OpRow samplingOps[] = {
    {"AffineGrid", 20, 20, importAffineGrid},
    {"GridSample", 16, 22, importGridSample},
    {"RoiAlign", 10, 22, importRoiAlign},
};

} // namespace

ArrayRef<OpRow> getSamplingOps() { return samplingOps; }

} // namespace partita::import
