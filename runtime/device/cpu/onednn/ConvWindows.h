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

/// The windows of y = conv(x, weights), of which a call computes a derivative.
struct ConvWindows {
  std::vector<int64_t> strides, skipped, padsLow, padsHigh; ///< by spatial axis
  int64_t groups;

  /// `x`, `weights`, `y`: operands of the call, the result among them. Rows
  /// become images of height 1, for which the library has more code.
  ConvWindows(const abi::Conv &conv, Operand &x, Operand &weights, Operand &y)
      : groups(conv.groups()) {
    for (int64_t i = 0; i < length(conv.strides()); ++i) {
      strides.push_back(conv.strides()->Get(i));
      // The library counts the elements between two taps.
      skipped.push_back(conv.dilations()->Get(i) - 1);
      padsLow.push_back(conv.pads_low()->Get(i));
    }
    if (x.rank() == 3) {
      for (Operand *operand : {&x, &weights, &y})
        addHeight(*operand);
      strides.insert(strides.begin(), 1);
      skipped.insert(skipped.begin(), 0);
      padsLow.insert(padsLow.begin(), 0);
    }
    // The library wants the last window to end where the padding does.
    for (int i = 0; i < x.rank() - 2; ++i)
      padsHigh.push_back((y.dims[i + 2] - 1) * strides[i] +
                         (weights.dims[i + 2] - 1) * (skipped[i] + 1) + 1 -
                         x.dims[i + 2] - padsLow[i]);
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

private:
  static void addHeight(Operand &operand) {
    const int64_t stride = operand.dims[2] * operand.strides[2];
    operand.dims.insert(operand.dims.begin() + 2, 1);
    operand.strides.insert(operand.strides.begin() + 2, stride);
  }
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_CONVWINDOWS_H
