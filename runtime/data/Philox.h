//===- Philox.h - Random numbers without a state ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_PHILOX_H
#define PARTITA_RUNTIME_DATA_PHILOX_H

#include <array>
#include <cstdint>

namespace partita::data {

/// Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
/// 3" (2011), the generator of cuRAND and PyTorch's GPUs: four random words for
/// each counter and key, the same everywhere.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(counter[0]) * 0xd2511f53u;
    const uint64_t b = uint64_t(counter[2]) * 0xcd9e8d57u;
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_PHILOX_H
