//===- ContentHash.h - What tells contents of files apart -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// XXH3 of 64 bits, as in artifacts: it finds accidents, and no forgeries.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_CONTENTHASH_H
#define PARTITA_RUNTIME_TRAIN_CONTENTHASH_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace partita::runtime::train {

uint64_t contentHash(std::span<const uint8_t> bytes);

/// The hash of bytes that come in parts.
class ContentHasher {
public:
  ContentHasher();
  void add(std::span<const uint8_t> bytes);
  uint64_t hash() const;

private:
  struct Free {
    void operator()(XXH3_state_s *state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state;
};

/// Sixteen hexadecimal digits, which JSON keeps as they are everywhere.
std::string hashText(uint64_t hash);
std::optional<uint64_t> parseHash(std::string_view text);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_CONTENTHASH_H
