//===- NotFinite.h - Elements that are not numbers --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_NOTFINITE_H
#define PARTITA_RUNTIME_BASE_NOTFINITE_H

#include "runtime/abi/plan_generated.h"

#include <cstdint>
#include <optional>

namespace partita::runtime {

/// Elements that somebody looks for.
enum class Search {
  none,
  nan,
  not_finite ///< NaN and infinities
};

/// Whether elements of the type can be NaN.
bool hasNan(abi::DType type);

/// The first of `count` elements that is looked for. `data` need not be
/// aligned. It is found by integer arithmetic, so that no flag of the processor
/// tells of NaN that was only looked at.
std::optional<int64_t> findFirst(Search search, abi::DType type,
                                 const uint8_t *data, int64_t count);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_NOTFINITE_H
