//===- MappedFile.h - A file mapped read-only, opened with care -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_MAPPEDFILE_H
#define PARTITA_RUNTIME_BASE_MAPPEDFILE_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace partita::runtime {

/// A regular file, mapped read-only while the object lives.
class MappedFile {
public:
  /// Maps a file that the user named.
  static Expected<std::shared_ptr<const MappedFile>>
  open(const std::string &path);

  /// Maps a file that another file named. `relative` is resolved in `directory`
  /// and must stay inside it: no absolute path, no `..`, no symbolic link on
  /// the way. It must be a regular file without other hard links.
  static Expected<std::shared_ptr<const MappedFile>>
  openContained(const std::string &directory, const std::string &relative);

  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const uint8_t *data() const { return start; }
  size_t size() const { return bytes; }
  std::span<const uint8_t> span() const { return {start, bytes}; }
  std::string_view text() const {
    return {reinterpret_cast<const char *>(start), bytes};
  }

private:
  MappedFile(const uint8_t *start, size_t bytes) : start(start), bytes(bytes) {}
  static Expected<std::shared_ptr<const MappedFile>>
  map(int descriptor, const std::string &path, bool one_name);

  const uint8_t *start;
  size_t bytes;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_MAPPEDFILE_H
