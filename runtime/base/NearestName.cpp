//===- NearestName.cpp - The name that was probably meant -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/NearestName.h"

#include <algorithm>

namespace partita::runtime {

namespace {

size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, replaced});
      diagonal = above;
    }
  }
  return row[b.size()];
}

} // namespace

std::string nearestName(const std::string &word,
                        const std::vector<std::string> &candidates) {
  std::string best;
  size_t bestDistance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string &candidate : candidates) {
    // Nothing in common is not a near miss, however short both are.
    size_t limit = std::max(word.size(), candidate.size());
    size_t distance = editDistance(word, candidate);
    if (distance < limit && distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

std::string unknownName(const std::string &what, const std::string &word,
                        const std::vector<std::string> &candidates) {
  std::string text = "there is no " + what + " '" + word + "'";
  std::string near = nearestName(word, candidates);
  if (!near.empty())
    return text + "; did you mean '" + near + "'?";
  if (candidates.empty())
    return text + "; there is none at all";
  text += "; known: ";
  const size_t shown = std::min<size_t>(candidates.size(), 20);
  for (size_t i = 0; i < shown; ++i)
    text += (i ? ", '" : "'") + candidates[i] + "'";
  if (shown < candidates.size())
    text += " and " + std::to_string(candidates.size() - shown) + " more";
  return text;
}

} // namespace partita::runtime
