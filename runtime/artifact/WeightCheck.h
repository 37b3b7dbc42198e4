//===- WeightCheck.h - Weights are what they were when compiled -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ARTIFACT_WEIGHTCHECK_H
#define PARTITA_RUNTIME_ARTIFACT_WEIGHTCHECK_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace partita::runtime {

/// Bytes of a mapped file, and the hash (XXH3) that they should have.
struct WeightBytes {
  const uint8_t *data = nullptr;
  size_t bytes = 0;
  uint64_t hash = 0;
};

/// Hashes all weights, on up to `threads` threads (fewer if there are few
/// bytes). Returns the index of the first whose hash differs. Pages are
/// released after they are read, so that the memory of this process does not
/// grow by the weights.
std::optional<size_t> findChanged(const std::vector<WeightBytes> &weights,
                                  int threads);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_ARTIFACT_WEIGHTCHECK_H
