//===- ContentHash.cpp - What tells contents of files apart ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ContentHash.h"

#include <charconv>
#include <cstdio>
#include <new>
#include <xxhash.h>

namespace partita::runtime::train {

uint64_t contentHash(std::span<const uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

ContentHasher::ContentHasher() : state(XXH3_createState()) {
  if (!state)
    throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
}

void ContentHasher::add(std::span<const uint8_t> bytes) {
  if (!bytes.empty())
    XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
}

uint64_t ContentHasher::hash() const { return XXH3_64bits_digest(state.get()); }

void ContentHasher::Free::operator()(XXH3_state_s *state) const {
  XXH3_freeState(state);
}

std::string hashText(uint64_t hash) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(hash));
  return text;
}

std::optional<uint64_t> parseHash(std::string_view text) {
  uint64_t hash = 0;
  const char *end = text.data() + text.size();
  if (text.size() != 16 ||
      std::from_chars(text.data(), end, hash, 16).ptr != end)
    return std::nullopt;
  return hash;
}

} // namespace partita::runtime::train
