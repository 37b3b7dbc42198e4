//===- BadIndex.h - Indices that the model does not allow -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step that meets a wrong index is computed to its end, with some other
// index in its place. Its results mean nothing for the samples that the index
// belongs to. So an error is reported, and the session goes on.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_BADINDEX_H
#define PARTITA_RUNTIME_SESSION_BADINDEX_H

#include "runtime/abi/plan_generated.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace partita::runtime {

/// The first wrong index in a row of a check (see Check in plan.fbs).
struct BadIndex {
  int micro_batch = 0; ///< of the step
  int check = 0;       ///< Plan.checks
  int64_t row = 0;
  int64_t place = 0; ///< in the row
  int64_t value = 0;

  auto operator<=>(const BadIndex &) const = default;
};

/// Adds the wrong indices that a check of a micro-batch found: `told` has two
/// numbers a row.
void collectBadIndices(const abi::Check &check, int number, int micro_batch,
                       const int64_t *told, std::vector<BadIndex> &found);

/// The sample of the step that the index belongs to, if the rows of its check
/// are samples.
std::optional<int64_t> sampleOf(const abi::Plan &plan, const BadIndex &bad);

/// An error message with op, node, position, value and the allowed indices:
///
///   Gather 'embed': 1000 at [2, 5] of its indices 'ids' is out of range:
///   -1000 to 999 are allowed (sample 2, micro-batch 1)
///
/// `sample`: the number under which the caller knows the sample; null: it is
/// counted in the step.
std::string describe(const abi::Plan &plan, const BadIndex &bad,
                     std::optional<int64_t> sample = std::nullopt);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_BADINDEX_H
