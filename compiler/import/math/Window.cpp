//===- Window.cpp - Sliding windows of convolutions and pooling -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/Window.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

/// Sizes beyond this can only be mistakes; below it nothing here overflows.
static constexpr int64_t kMaxSize = int64_t(1) << 31;

static LogicalResult readAttributes(NodeImport &n, size_t rank, Window &window,
                                    Shape &pads) {
  window.strides = n.intsAttr("strides").value_or(Shape(rank, 1));
  window.dilations = n.intsAttr("dilations").value_or(Shape(rank, 1));
  pads = n.intsAttr("pads").value_or(Shape(2 * rank, 0));
  if (window.kernel.size() != rank || window.strides.size() != rank ||
      window.dilations.size() != rank || pads.size() != 2 * rank)
    return n.error("kernel_shape, strides, dilations and pads do not fit " +
                   Twine(rank) + " spatial dimensions");
  auto inRange = [](int64_t least) {
    return [least](int64_t v) { return v >= least && v < kMaxSize; };
  };
  if (!all_of(window.kernel, inRange(1)) ||
      !all_of(window.strides, inRange(1)) ||
      !all_of(window.dilations, inRange(1)) || !all_of(pads, inRange(0)))
    return n.error(
        "kernel_shape, strides and dilations must be at least 1, and "
        "pads not negative");
  return success();
}

FailureOr<Window> getWindow(NodeImport &n, ArrayRef<int64_t> sizes,
                            ArrayRef<int64_t> kernel) {
  Window window;
  window.kernel.assign(kernel.begin(), kernel.end());
  Shape pads;
  PARTITA_TRY(readAttributes(n, sizes.size(), window, pads));
  std::string autoPad = PARTITA_TRY(
      n.choice("auto_pad", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}));
  bool ceil = n.intAttr("ceil_mode", 0) != 0;

  for (auto [i, size] : enumerate(sizes)) {
    int64_t stride = window.strides[i];
    int64_t extent = (kernel[i] - 1) * window.dilations[i] + 1;
    int64_t low = 0, high = 0, excess = 0, positions;
    if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
      positions = divideCeil(size, stride);
      int64_t total =
          std::max<int64_t>((positions - 1) * stride + extent - size, 0);
      low = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
      high = total - low;
    } else {
      if (autoPad == "NOTSET") {
        low = pads[i];
        high = pads[sizes.size() + i];
      }
      int64_t room = low + size + high - extent;
      // A window that is too large by less than a stride has no position.
      positions = divideFloorSigned(room, stride) + 1;
      // A position that starts in the high border does not count.
      if (ceil && room >= 0 && room % stride != 0 &&
          positions * stride < low + size) {
        excess = positions * stride - room;
        ++positions;
      }
      if (size >= kMaxSize || positions < 0)
        return n.error("the window, of extent " + Twine(extent) +
                       " in spatial dimension " + Twine(i) +
                       ", is larger than the input, of size " + Twine(size) +
                       " and pads " + Twine(low) + " and " + Twine(high));
      if (positions == 0 && size != 0)
        emitRemark(n.loc) << n.node.op_type() << ": the window, of extent "
                          << extent << " in spatial dimension " << i
                          << ", is larger than the input, of size " << size
                          << " and pads " << low << " and " << high
                          << ": the result has no elements";
    }
    window.low.push_back(low);
    window.high.push_back(high + excess);
    window.excess.push_back(excess);
    window.positions.push_back(positions);
  }
  return window;
}

} // namespace partita::import
