//===- Slice.cpp - Parts of tensors, and tensors of parts -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexCheck.h"
#include "compiler/import/math/IndexMath.h"
#include "compiler/import/model/TorchMetadata.h"
#include "dialects/nn/fold/EmptyTensors.h"
#include "dialects/nn/grad/Term.h"
#include "runtime/abi/Text.h"

#include <numeric>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

LogicalResult importConcat(NodeImport &n) {
  // What has no elements need not fit: some exporters begin a list with a
  // tensor of shape [0].
  SmallVector<Value> parts = filter_to_vector(
      n.inputs, [](Value v) { return v && !nn::hasNoElements(v.getType()); });
  if (parts.empty())
    parts = n.inputs;
  int64_t axis = PARTITA_TRY(n.axisAttr(1, n.typeOf(parts.front()).getRank()));
  return n.result(0, n.concat(parts, axis));
}

LogicalResult importGather(NodeImport &n) {
  Value x = n.input(0);
  int64_t axis = PARTITA_TRY(n.axisAttr(0, n.typeOf(x).getRank()));
  if (n.shapeOf(x)[axis] > 0)
    PARTITA_TRY(
        checkIndices(n, n.input(1), n.shapeOf(x)[axis], {1, "indices"}));
  Value rows = n.gather(x, n.input(1), axis);
  auto gather = rows ? rows.getDefiningOp<nn::GatherOp>() : nn::GatherOp();
  if (std::optional<int64_t> padding = getPaddingIndex(n.node);
      padding && gather && axis == 0)
    gather->setAttr(nn::grad::kPaddingIndexAttr,
                    n.b.getI64IntegerAttr(*padding));
  return n.result(0, rows);
}

LogicalResult importGatherElements(NodeImport &n) {
  Value x = n.input(0), indices = n.input(1);
  ArrayRef<int64_t> from = n.shapeOf(x), to = n.shapeOf(indices);
  int64_t axis = PARTITA_TRY(n.axisAttr(0, from.size()));
  bool fits = from.size() == to.size();
  bool empty = llvm::is_contained(to, 0);
  for (size_t dim = 0; fits && dim < from.size(); ++dim)
    fits = static_cast<int64_t>(dim) == axis ? from[dim] != 0 || empty
                                             : to[dim] <= from[dim];
  if (!fits)
    return n.error("indices " + Twine(to.size()) +
                   "-dimensional do not choose from data of " +
                   Twine(from.size()) +
                   " dimensions: the sizes of both must agree but for the "
                   "axis");
  RankedTensorType type = PARTITA_TRY(n.tensor(to, n.elementOf(x)));
  PARTITA_TRY(checkIndices(n, indices, from[axis], {1, "indices"}));
  return n.result(0, n.make<nn::GatherElementsOp>(type, x, indices, axis));
}

/// The sizes of the parts of a Split.
FailureOr<Shape> getSplitParts(NodeImport &n, int64_t size) {
  int64_t outputs = n.node.output_size();
  bool byInput = n.input(1) && (n.opset >= 13 || n.opset < 2);
  if (byInput)
    return n.constantInts(1, "split");
  if (std::optional<Shape> parts = n.intsAttr("split"))
    return *parts;
  int64_t count = n.intAttr("num_outputs", outputs);
  if (count < 1 || count != outputs)
    return n.error("num_outputs is " + Twine(count) + ", and the node has " +
                   abi::countOf(outputs, "output"));
  // From opset 18 the last part may be smaller.
  if (size % count != 0 && n.opset < 18)
    return n.error("size " + Twine(size) + " is not divisible into " +
                   Twine(count) + " parts");
  int64_t part = divideCeil(size, count);
  Shape parts(count, part);
  parts.back() = size - part * (count - 1);
  return parts;
}

LogicalResult importSplit(NodeImport &n) {
  Value x = n.input(0);
  int64_t axis = PARTITA_TRY(n.axisAttr(0, n.typeOf(x).getRank()));
  int64_t size = n.shapeOf(x)[axis], start = 0;
  Shape parts = PARTITA_TRY(getSplitParts(n, size));
  if (static_cast<int>(parts.size()) != n.node.output_size())
    return n.error("split names " + abi::countOf(parts.size(), "part") +
                   " for " + abi::countOf(n.node.output_size(), "output"));
  for (auto [i, part] : enumerate(parts)) {
    if (part < 0 || part > size - start)
      return n.error("the parts do not add up to size " + Twine(size));
    PARTITA_TRY(n.result(i, n.part(x, axis, start, start + part)));
    start += part;
  }
  if (start != size)
    return n.error("the parts do not add up to size " + Twine(size));
  return success();
}

struct SliceArguments {
  Shape starts, ends, axes, steps;
};

FailureOr<SliceArguments> getSliceArguments(NodeImport &n) {
  SliceArguments arguments;
  if (n.opset < 10) {
    arguments.starts = n.intsAttr("starts").value_or(Shape());
    arguments.ends = n.intsAttr("ends").value_or(Shape());
    arguments.axes = n.intsAttr("axes").value_or(Shape());
  } else {
    Shape *targets[] = {&arguments.starts, &arguments.ends, &arguments.axes,
                        &arguments.steps};
    StringRef names[] = {"starts", "ends", "axes", "steps"};
    bool known = true; // all that are not are named in one error
    for (unsigned i = 0; i < 4; ++i) {
      if (!n.input(i + 1))
        continue;
      FailureOr<Shape> values = n.constantInts(i + 1, names[i]);
      known &= succeeded(values);
      if (succeeded(values))
        *targets[i] = *values;
    }
    if (!known)
      return failure();
  }
  size_t count = arguments.starts.size();
  if (n.opset < 10 ? !n.attr("axes") : !n.input(3))
    arguments.axes = to_vector(seq<int64_t>(0, count));
  if (n.opset < 10 || !n.input(4))
    arguments.steps.assign(count, 1);
  if (arguments.ends.size() != count || arguments.axes.size() != count ||
      arguments.steps.size() != count)
    return n.error("starts, ends, axes and steps differ in length");
  return arguments;
}

/// A negative step from s down to e is a positive one in the reversed tensor.
LogicalResult importSlice(NodeImport &n) {
  Value x = n.input(0);
  int64_t rank = n.typeOf(x).getRank();
  SliceArguments arguments = PARTITA_TRY(getSliceArguments(n));
  PARTITA_TRY(n.axes(arguments.axes, rank));
  Shape limits(n.shapeOf(x)), starts(rank, 0), strides(rank, 1), reversed;
  for (auto [start, end, axis, step] : zip_equal(
           arguments.starts, arguments.ends, arguments.axes, arguments.steps)) {
    if (step == 0)
      return n.error("a step is 0");
    int64_t dim = axis < 0 ? axis + rank : axis, size = limits[dim];
    // Clamped before adding, for INT64_MIN stands for the begin.
    auto resolve = [size](int64_t i, int64_t low, int64_t high) {
      if (i < 0)
        i = i < -size ? -1 : i + size;
      return std::clamp(i, low, high);
    };
    if (step > 0) {
      starts[dim] = start < -size ? 0 : resolve(start, 0, size);
      limits[dim] =
          std::max(starts[dim], end < -size ? 0 : resolve(end, 0, size));
      strides[dim] = step;
    } else {
      int64_t from = resolve(start, -1, size - 1),
              to = resolve(end, -1, size - 1);
      reversed.push_back(dim);
      starts[dim] = size - 1 - from;
      limits[dim] = std::max(starts[dim], size - 1 - to);
      strides[dim] = step == INT64_MIN ? INT64_MAX : -step;
    }
    // A stride beyond the end is as good as any other such one.
    strides[dim] = std::min(strides[dim], std::max<int64_t>(size, 1));
  }
  llvm::sort(reversed);
  return n.result(0, n.slice(n.reverse(x, reversed), starts, limits, strides));
}

struct PadArguments {
  Shape low, high;
  Value value;
};

FailureOr<PadArguments> getPadArguments(NodeImport &n) {
  Value x = n.input(0);
  int64_t rank = n.typeOf(x).getRank();
  PadArguments arguments{Shape(rank, 0), Shape(rank, 0), {}};
  Shape pads, axes = to_vector(seq<int64_t>(0, rank));
  if (n.opset < 11) {
    pads = n.intsAttr(n.opset < 2 ? "paddings" : "pads").value_or(Shape());
    arguments.value = n.splat(n.floatAttr("value", 0), {}, n.elementOf(x));
  } else {
    pads = PARTITA_TRY(n.constantInts(1, "pads"));
    if (n.input(2) && n.typeOf(n.input(2)).getNumElements() != 1)
      return n.error("constant_value must be a single number");
    arguments.value =
        n.input(2) ? n.reshape(n.input(2), {}) : n.splat(0, {}, n.elementOf(x));
    if (n.input(3)) {
      axes = PARTITA_TRY(n.constantInts(3, "axes"));
      PARTITA_TRY(n.axes(axes, rank));
    }
  }
  if (pads.size() != 2 * axes.size())
    return n.error("pads holds " + abi::countOf(pads.size(), "number") +
                   " for " + Twine(axes.size()) +
                   (axes.size() == 1 ? " axis" : " axes"));
  for (auto [i, axis] : enumerate(axes)) {
    int64_t dim = axis < 0 ? axis + rank : axis;
    arguments.low[dim] = pads[i];
    arguments.high[dim] = pads[axes.size() + i];
    int64_t size = n.shapeOf(x)[dim], padded;
    if (__builtin_add_overflow(size, pads[i], &padded) ||
        __builtin_add_overflow(padded, pads[axes.size() + i], &padded) ||
        padded < 0)
      return n.error("the pads of axis " + Twine(dim) +
                     " do not fit its size " + Twine(size));
  }
  return arguments;
}

/// Which element stands at each position of a padded axis.
FailureOr<Shape> getPadIndices(NodeImport &n, StringRef mode, int64_t size,
                               int64_t low, int64_t high) {
  Shape indices;
  for (int64_t i = -low; i < size + high; ++i) {
    if (size == 0)
      return n.error("there is nothing to pad with");
    if (mode == "edge") {
      indices.push_back(std::clamp<int64_t>(i, 0, size - 1));
    } else if (mode == "wrap") {
      indices.push_back((i % size + size) % size);
    } else { // reflect: 0 1 2 1 0 1 2 ...
      int64_t period = std::max<int64_t>(2 * (size - 1), 1);
      int64_t j = (i % period + period) % period;
      indices.push_back(j < size ? j : period - j);
    }
  }
  return indices;
}

LogicalResult importPad(NodeImport &n) {
  PadArguments arguments = PARTITA_TRY(getPadArguments(n));
  Value x = n.input(0);
  std::string mode =
      PARTITA_TRY(n.choice("mode", {"constant", "reflect", "edge", "wrap"}));
  if (mode == "constant")
    return n.result(
        0, padOrCrop(n, x, arguments.low, arguments.high, arguments.value));
  Shape sizes(n.shapeOf(x));
  for (auto [dim, size] : enumerate(sizes)) {
    int64_t low = arguments.low[dim], high = arguments.high[dim];
    if (low == 0 && high == 0)
      continue;
    if (!n.tensor({size + low + high}, n.elementOf(x)) ||
        size + low + high > (1 << 24))
      return n.error("the pads of axis " + Twine(dim) + " are too large");
    Shape indices = PARTITA_TRY(getPadIndices(n, mode, size, low, high));
    x = n.gather(x, n.indices(indices), static_cast<int64_t>(dim));
  }
  return n.result(0, x);
}

const OpRow sliceOps[] = {
    {"Concat", 1, 13, importConcat},
    {"Gather", 1, 13, importGather},
    {"GatherElements", 11, 13, importGatherElements},
    {"Pad", 1, 25, importPad},
    {"Slice", 1, 13, importSlice},
    {"Split", 1, 18, importSplit},
};

} // namespace

ArrayRef<OpRow> getSliceOps() { return sliceOps; }

} // namespace partita::import
