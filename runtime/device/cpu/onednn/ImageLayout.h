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

/// Whether [N, C, spatial..] lies densely with the channels innermost (or, if
/// not `last`, outside the spatial axes). Axes of extent 1 may have any stride,
/// so both can be true.
bool liesDensely(const Operand &operand, bool channels_last);

/// Description of one operand of a call whose images all lie densely in one
/// layout: in that layout's strides, so that the library recognises it. Axes
/// with stride 0 are broadcast. Other operands keep their strides.
dnnl_memory_desc_t imageDesc(const Operand &operand, bool channels_last);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_IMAGELAYOUT_H
