//===- ConvWindows.h - The windows of a derivative's convolution *- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_CONVWINDOWS_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_CONVWINDOWS_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// The windows of y = conv(x, weights), by spatial axis.
struct ConvWindows {
  std::vector<int64_t> strides, skipped, padsLow;
  std::vector<int64_t> padsHigh; ///< of a derivative
  int64_t groups = 1;

  /// They move by one pixel, and nothing is padded.
  explicit ConvWindows(size_t axes)
      : strides(axes, 1), skipped(axes), padsLow(axes) {}
  explicit ConvWindows(const abi::Conv &conv) : groups(conv.groups()) {
    for (int64_t i = 0; i < length(conv.strides()); ++i) {
      strides.push_back(conv.strides()->Get(i));
      // The library counts the elements between two taps.
      skipped.push_back(conv.dilations()->Get(i) - 1);
      padsLow.push_back(conv.pads_low()->Get(i));
    }
  }
  /// `x`, `weights`, `y`: operands of a derivative, the result among them.
  ConvWindows(const abi::Conv &conv, Operand &x, Operand &weights, Operand &y)
      : ConvWindows(conv) {
    if (x.rank() == 3)
      addHeight({&x, &weights, &y});
    padsHigh = findPadsHigh(x, weights, y);
  }

  /// Rows become images of height 1: for them the library has more and faster
  /// code, of single channels above all.
  void addHeight(const std::vector<Operand *> &operands) {
    for (Operand *operand : operands) {
      const int64_t stride = operand->dims[2] * operand->strides[2];
      operand->dims.insert(operand->dims.begin() + 2, 1);
      operand->strides.insert(operand->strides.begin() + 2, stride);
    }
    strides.insert(strides.begin(), 1);
    skipped.insert(skipped.begin(), 0);
    padsLow.insert(padsLow.begin(), 0);
  }

  /// [O, I/G, ..] -> [G, O/G, I/G, ..], as the library has grouped weights.
  void groupWeights(Operand &weights) const {
    if (groups == 1)
      return;
    weights.dims[0] /= groups;
    weights.strides.insert(weights.strides.begin(),
                           weights.strides[0] * weights.dims[0]);
    weights.dims.insert(weights.dims.begin(), groups);
  }

  /// Pixels from the first tap of a window to the last, and one.
  int64_t extent(const Operand &weights, size_t axis) const {
    const size_t first = weights.dims.size() - strides.size();
    return (weights.dims[first + axis] - 1) * (skipped[axis] + 1) + 1;
  }

  /// The library wants the last window to end where the padding does.
  std::vector<int64_t> findPadsHigh(const Operand &x, const Operand &weights,
                                    const Operand &y) const {
    std::vector<int64_t> pads;
    for (size_t i = 0; i < strides.size(); ++i)
      pads.push_back((y.dims[i + 2] - 1) * strides[i] + extent(weights, i) -
                     x.dims[i + 2] - padsLow[i]);
    return pads;
  }

  /// The convolution itself, which the library asks for.
  dnnl_status_t describeForward(OnednnContext &context, const OwnedAttr &attr,
                                const dnnl_memory_desc_t &x,
                                const dnnl_memory_desc_t &weights,
                                const dnnl_memory_desc_t &y,
                                OwnedPrimitiveDesc &desc) const {
    dnnl_convolution_desc_t op;
    const dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &op, dnnl_forward_training, dnnl_convolution_direct, &x, &weights,
        nullptr, &y, strides.data(), skipped.data(), padsLow.data(),
        padsHigh.data());
    return status != dnnl_success
               ? status
               : dnnl_primitive_desc_create(desc.out(), &op, attr.get(),
                                            context.engine(), nullptr);
  }
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_CONVWINDOWS_H
