//===- ImageLayout.h - Layouts of images in the library ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_IMAGELAYOUT_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_IMAGELAYOUT_H

#include "runtime/device/cpu/onednn/Onednn.h"

namespace partita::runtime {

/// The strides of dense images [N, C, spatial..], with the channels innermost
/// or, if not `channels_last`, outside the spatial axes.
std::vector<int64_t> denseStrides(const std::vector<int64_t> &dims,
                                  bool channels_last);

/// Whether an operand [N, C, spatial..] is dense with the channels innermost.
/// If not `channels_last`: with the channels outside the spatial axes. Axes of
/// extent 1 may have any stride, so both can be true.
bool liesDensely(const Operand &operand, bool channels_last);

/// The description of one operand of a call whose images are all dense in one
/// layout. It has the strides of that layout, so that the library recognises
/// it. Axes with stride 0 are broadcast. Other operands keep their strides.
dnnl_memory_desc_t imageDesc(const Operand &operand, bool channels_last);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_IMAGELAYOUT_H
