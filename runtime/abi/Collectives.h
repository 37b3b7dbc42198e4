//===- Collectives.h - What collectives send --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_COLLECTIVES_H
#define PARTITA_RUNTIME_ABI_COLLECTIVES_H

#include "runtime/abi/plan_generated.h"

#include <cstdint>

namespace partita::abi {

/// Bytes that each of `devices` devices sends in a collective. `bytes` are
/// those of `rows` times `part` elements, as in `Collective` of the plan. A
/// ring and direct messages to all others send the same number of bytes. In a
/// broadcast this is what the first device sends; the others send nothing.
constexpr int64_t sentBytes(CollectiveKind kind, int64_t bytes,
                            int64_t devices) {
  // Each device combines one part of the tensor, and sends it to the others.
  return kind == CollectiveKind::all_reduce
             ? 2 * (devices - 1) * bytes / devices
             : (devices - 1) * bytes;
}

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_COLLECTIVES_H
