//===- TiledWinograd.h - Winograd's method by matrix products ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_OWN_TILEDWINOGRAD_H
#define PARTITA_RUNTIME_DEVICE_CPU_OWN_TILEDWINOGRAD_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// A convolution of one group with windows of 3x3 and stride 1, on images whose
/// channels are innermost, with constant weights, by Winograd's method: for
/// processors on which the library has no code for that, but fast products
/// (AVX2). Fails where it has not, or where the plan has no room for it.
Expected<std::unique_ptr<Task>> prepareTiledWinograd(const ResolvedCall &call,
                                                     OnednnContext &context,
                                                     const ThreadTeam &team);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_TILEDWINOGRAD_H
