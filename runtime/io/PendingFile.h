//===- PendingFile.h - A file that appears only when complete ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file gets its name only when it is complete (`files/NewFile.h`). So a
// failure leaves no file and destroys none.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_PENDINGFILE_H
#define PARTITA_RUNTIME_IO_PENDINGFILE_H

#include "runtime/base/Status.h"
#include "runtime/files/NewFile.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace partita::runtime {

/// A file that is being written. Without `commit` nothing is left of it.
class PendingFile {
public:
  /// Creates the file in the folder of `target`. Fails if the folder is missing
  /// or not writable, or if `target` exists and is not a regular file.
  static Expected<std::unique_ptr<PendingFile>>
  create(const std::string &target,
         files::NewFile::Writer writer = files::NewFile::Writer::descriptor);

  /// Of a file that a library writes.
  const std::string &temporaryPath() const { return file.temporary(); }
  Status write(std::span<const uint8_t> bytes);
  Status write(const std::string &text);
  /// Closes the file and gives it the target's name. With `sync` its bytes are
  /// on the disk before.
  Status commit(bool sync = false);

private:
  PendingFile() = default;
  std::string target;
  files::NewFile file;
};

/// A file of this text.
Status writeFile(const std::string &path, const std::string &text);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_PENDINGFILE_H
