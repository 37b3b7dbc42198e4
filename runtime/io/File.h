//===- File.h - Files read by mapping and written by renaming ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file that is read is mapped; one that is written comes into being beside
// its target and takes the target's name only when it is complete, so that a
// failure leaves nothing and destroys nothing.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_FILE_H
#define PARTITA_RUNTIME_IO_FILE_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace partita::runtime {

class MappedFile {
public:
  /// Maps a regular file (links are followed). The error names path and reason.
  static Expected<std::shared_ptr<MappedFile>> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const uint8_t> bytes() const { return {data, size}; }

private:
  MappedFile() = default;
  const uint8_t *data = nullptr;
  size_t size = 0;
};

/// A file on its way. Without `commit` the destructor removes it.
class PendingFile {
public:
  /// Creates the temporary file beside `target`. An error if the folder is
  /// missing or not writable, or `target` is there and not a regular file.
  static Expected<std::unique_ptr<PendingFile>>
  create(const std::string &target);
  ~PendingFile();
  PendingFile(const PendingFile &) = delete;
  PendingFile &operator=(const PendingFile &) = delete;

  const std::string &temporaryPath() const { return temporary; }
  Status write(std::span<const uint8_t> bytes);
  Status write(const std::string &text);
  /// Closes the file and gives it the target's name.
  Status commit();

private:
  PendingFile() = default;
  std::string target;
  std::string temporary;
  int descriptor = -1;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_FILE_H
