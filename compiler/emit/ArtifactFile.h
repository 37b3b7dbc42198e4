//===- ArtifactFile.h - An artifact, written whole or not -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_EMIT_ARTIFACTFILE_H
#define PARTITA_COMPILER_EMIT_ARTIFACTFILE_H

#include "runtime/abi/artifact.h"
#include "runtime/files/NewFile.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>
#include <vector>

namespace partita::emit {

/// Writes an artifact. `commit` gives the file its name when it is complete and
/// on the disk. Without `commit` no file is left. After an error all calls do
/// nothing.
class ArtifactFile {
public:
  ArtifactFile(llvm::StringRef path, unsigned sectionCount);
  ~ArtifactFile();

  /// Begins a section of that kind, level or architecture, and plan.
  void beginSection(abi::SectionEntry entry);
  void write(llvm::StringRef bytes);
  void writeZeros(uint64_t count);
  void endSection(uint64_t hash);

  /// Writes header and table, synchronises and renames.
  void commit();

  bool hasError() const { return !error.empty(); }
  const std::string &errorText() const { return error; }

private:
  void fail(std::error_code code);

  std::string path;
  files::NewFile file;
  std::string temporary; ///< empty: no signal leaves anything
  std::unique_ptr<llvm::raw_fd_ostream> stream;
  unsigned sectionCount;
  std::vector<abi::SectionEntry> sections;
  std::string error;
};

} // namespace partita::emit

#endif // PARTITA_COMPILER_EMIT_ARTIFACTFILE_H
