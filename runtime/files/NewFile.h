//===- NewFile.h - A file that appears only when complete -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is written without a name, on the file system of its target. It gets
// the target's name only when it is complete. So nothing is left of a process
// that is killed, and a failure destroys no older file.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FILES_NEWFILE_H
#define PARTITA_RUNTIME_FILES_NEWFILE_H

#include <string>
#include <system_error>

namespace partita::files {

class NewFile {
public:
  /// `library`: the file has a name from the start, because a library opens it
  /// by name. It is `temporary()`.
  enum class Writer { descriptor, library };

  NewFile() = default;
  /// Without `commit` nothing is left of the file.
  ~NewFile();
  NewFile(const NewFile &) = delete;
  NewFile &operator=(const NewFile &) = delete;

  /// Creates the file in the folder of `target`. Once only.
  std::error_code create(const std::string &target,
                         Writer writer = Writer::descriptor);

  int descriptor() const { return file; }
  /// The name it has now. Empty where the file system knows files without
  /// names.
  const std::string &temporary() const { return name; }

  /// Gives the file the target's name and closes it. With `sync` its bytes are
  /// on the disk before.
  std::error_code commit(bool sync);

private:
  std::string target;
  std::string name;
  int file = -1;
};

} // namespace partita::files

#endif // PARTITA_RUNTIME_FILES_NEWFILE_H
