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

/// Prepares a convolution by Winograd's method, around matrix products of the
/// library. It is for processors on which the library has fast products, but
/// not this method (AVX2). The convolution must have one group, windows of 3x3,
/// stride 1, channels-last images and constant weights. Fails if the
/// convolution has another form, or if the plan has no memory for it.
Expected<std::unique_ptr<Task>> prepareTiledWinograd(const ResolvedCall &call,
                                                     OnednnContext &context,
                                                     const ThreadTeam &team);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_TILEDWINOGRAD_H
