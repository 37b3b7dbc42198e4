//===- ArtifactFile.cpp - Header, section table and sections --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/ArtifactFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Signals.h"

#include <cstring>
#include <xxhash.h>

namespace partita::emit {

ArtifactFile::ArtifactFile(llvm::StringRef path, unsigned sectionCount)
    : path(path), sectionCount(sectionCount) {
  // A rename would put a file in the place of /dev/null.
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path)) {
    error = llvm::sys::fs::is_directory(path)
                ? "it is a folder"
                : "something that is not a file has this name";
    return;
  }
  if (std::error_code code = file.create(this->path)) {
    fail(code);
    return;
  }
  temporary = file.temporary();
  if (!temporary.empty())
    llvm::sys::RemoveFileOnSignal(temporary);
  stream = std::make_unique<llvm::raw_fd_ostream>(file.descriptor(),
                                                  /*shouldClose=*/false);
  writeZeros(sizeof(abi::FileHeader) +
             sectionCount * sizeof(abi::SectionEntry));
}

ArtifactFile::~ArtifactFile() {
  if (stream) {
    stream->flush();
    stream->clear_error();
    stream.reset();
  }
  if (!temporary.empty())
    llvm::sys::DontRemoveFileOnSignal(temporary);
}

void ArtifactFile::fail(std::error_code code) {
  if (error.empty())
    error = code.message();
}

void ArtifactFile::write(llvm::StringRef bytes) {
  if (hasError())
    return;
  *stream << bytes;
  if (stream->has_error())
    fail(stream->error());
}

void ArtifactFile::writeZeros(uint64_t count) {
  static const char zeros[4096] = {};
  for (; count > 0 && !hasError();) {
    uint64_t piece = std::min<uint64_t>(count, sizeof(zeros));
    write(llvm::StringRef(zeros, piece));
    count -= piece;
  }
}

void ArtifactFile::beginSection(abi::SectionEntry entry) {
  if (hasError())
    return;
  uint64_t offset = llvm::alignTo(stream->tell(), abi::kSectionAlignment);
  writeZeros(offset - stream->tell());
  entry.offset = offset;
  sections.push_back(entry);
}

void ArtifactFile::endSection(uint64_t hash) {
  if (hasError())
    return;
  sections.back().bytes = stream->tell() - sections.back().offset;
  sections.back().hash = hash;
}

void ArtifactFile::commit() {
  if (hasError())
    return;
  abi::FileHeader header;
  std::memset(&header, 0, sizeof(header));
  std::memcpy(header.magic, abi::kMagic, sizeof(header.magic));
  header.version = abi::kVersion;
  header.section_count = sectionCount;
  header.file_bytes = stream->tell();
  header.table_hash =
      XXH3_64bits(sections.data(), sections.size() * sizeof(sections[0]));
  header.header_hash =
      XXH3_64bits(&header, offsetof(abi::FileHeader, header_hash));
  stream->pwrite(reinterpret_cast<const char *>(&header), sizeof(header), 0);
  stream->pwrite(reinterpret_cast<const char *>(sections.data()),
                 sections.size() * sizeof(sections[0]), sizeof(header));
  stream->flush();
  if (stream->has_error())
    return fail(stream->error());
  if (std::error_code code = file.commit(/*sync=*/true))
    return fail(code);
}

} // namespace partita::emit
