//===- NearestName.h - The name that was probably meant ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_NEARESTNAME_H
#define PARTITA_RUNTIME_BASE_NEARESTNAME_H

#include <string>
#include <vector>

namespace partita::runtime {

/// The candidate nearest to `word` by edit distance, or empty if none is near
/// enough to be what was meant. The first of several equally near.
std::string nearestName(const std::string &word,
                        const std::vector<std::string> &candidates);

/// "there is no WHAT 'word'; did you mean 'near'?", or with all candidates
/// listed if none is near.
std::string unknownName(const std::string &what, const std::string &word,
                        const std::vector<std::string> &candidates);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_NEARESTNAME_H
