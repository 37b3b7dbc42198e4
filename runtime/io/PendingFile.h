//===- PendingFile.h - A file that appears only when complete ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is written under a temporary name in the folder of its target. It gets
// the target's name only when it is complete. So a failure leaves no file and
// destroys none.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_PENDINGFILE_H
#define PARTITA_RUNTIME_IO_PENDINGFILE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace partita::runtime {

/// A file that is being written. Without `commit` the destructor removes it.
class PendingFile {
public:
  /// Creates the temporary file beside `target`. Fails if the folder is missing
  /// or not writable, or if `target` exists and is not a regular file.
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

#endif // PARTITA_RUNTIME_IO_PENDINGFILE_H
