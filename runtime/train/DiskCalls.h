//===- DiskCalls.h - What changes the disk ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a save does to the disk goes through here, so that a test can make each
// call fail, or end the process at it. They return what the system's calls of
// these names return, and set errno.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_DISKCALLS_H
#define PARTITA_RUNTIME_TRAIN_DISKCALLS_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace partita::runtime::train {

class DiskCalls {
public:
  virtual ~DiskCalls() = default;
  /// A new file that can be written; one of this name must not exist.
  virtual int create(const char *path);
  virtual ssize_t write(int file, const void *bytes, size_t count);
  virtual int fsync(int file);
  virtual int close(int file);
  virtual int mkdir(const char *path);
  virtual int rename(const char *from, const char *to);
  /// Each gets the other's name, in one step.
  virtual int exchange(const char *one, const char *other);
  virtual int unlink(const char *path);
  virtual int rmdir(const char *path);
};

/// Those of the system; a test gives others.
inline DiskCalls systemCalls;

/// "cannot WHAT 'PATH': the reason in errno".
Status diskError(const char *what, const std::string &path);

/// A file that is written from its beginning to its end.
class DiskFile {
public:
  DiskFile(DiskCalls &calls, std::string path)
      : calls(calls), path(std::move(path)) {}
  ~DiskFile();
  DiskFile(const DiskFile &) = delete;
  DiskFile &operator=(const DiskFile &) = delete;

  Status create();
  Status write(std::span<const uint8_t> bytes);
  /// The file's bytes are on the disk afterwards.
  Status close();

private:
  DiskCalls &calls;
  std::string path;
  int file = -1;
};

/// The names in the folder are on the disk afterwards.
Status syncFolder(DiskCalls &calls, const std::string &path);

/// The names in the folder, sorted; none if it is missing.
Expected<std::vector<std::string>> namesIn(const std::string &folder);

/// Removes the folder and the files in it; no error if it is not there. A
/// folder in it is an error.
Status removeFolder(DiskCalls &calls, const std::string &path);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_DISKCALLS_H
