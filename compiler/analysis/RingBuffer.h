//===- RingBuffer.h - States whose entries lie in a ring --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window over what comes step by step, as a cache of the last words is, does
// not move in memory: a step writes its entries over the oldest ones. The first
// of n entries lies at `place`, and entry i at (place + i) mod n. Sequences
// that share a step have rings of their own, along another dimension.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_RINGBUFFER_H
#define PARTITA_COMPILER_ANALYSIS_RINGBUFFER_H

#include "dialects/nn/grad/Term.h"

#include <optional>

namespace partita::analysis {

/// A ring's entries along `dim` in their order. `place`: a scalar of i64, from
/// 0 to the ring's size; or a list of them, one for each entry of dimension
/// `row`, which comes before `dim`.
nn::grad::Term readRing(nn::grad::Term ring, nn::grad::Term place, int64_t dim,
                        int64_t row = 0);
/// Entries in their order as they lie in such a ring.
nn::grad::Term orderAsRing(nn::grad::Term entries, nn::grad::Term place,
                           int64_t dim, int64_t row = 0);

/// What `readRing` has made.
struct ReadRing {
  mlir::Value ring, place;
  int64_t dim;
  int64_t row = 0; ///< of a list of places
  bool hasRows() const { return nn::getTensorType(place).getRank() > 0; }
};
std::optional<ReadRing> getReadRing(mlir::Value value);

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_RINGBUFFER_H
