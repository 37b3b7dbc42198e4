//===- WinogradConv.h - Convolutions by Winograd's method -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_WINOGRADCONV_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_WINOGRADCONV_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// A convolution of one group with constant weights, by Winograd's method. The
/// library does this only on images in blocks of channels. So the input is
/// reordered into that layout before, and the result out of it after. Fails if
/// the processor has no such code, or if the plan has no room for it.
Expected<std::unique_ptr<Task>>
prepareWinograd(const ResolvedCall &call, const std::vector<int64_t> &pads_high,
                OnednnContext &context);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_WINOGRADCONV_H
