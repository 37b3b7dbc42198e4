//===- PendingFile.cpp - A file that appears only when complete -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/PendingFile.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace partita::runtime {

namespace {

Status failure(const std::string &path, int error) {
  return Status::error("cannot write '" + path + "': " + std::strerror(error));
}

} // namespace

Expected<std::unique_ptr<PendingFile>>
PendingFile::create(const std::string &target, files::NewFile::Writer writer) {
  struct stat info;
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Status::error("cannot write '" + target +
                         "': something that is not a file has this name");
  std::unique_ptr<PendingFile> file(new PendingFile);
  file->target = target;
  if (std::error_code error = file->file.create(target, writer))
    return failure(target, error.value());
  return file;
}

Status PendingFile::write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(file.descriptor(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return failure(target, errno);
    bytes = bytes.subspan(size_t(written));
  }
  return Status();
}

Status PendingFile::write(const std::string &text) {
  return write(std::span<const uint8_t>(
      reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

Status PendingFile::commit(bool sync) {
  if (std::error_code error = file.commit(sync))
    return failure(target, error.value());
  return Status();
}

Status writeFile(const std::string &path, const std::string &text) {
  std::unique_ptr<PendingFile> file = PARTITA_TRY(PendingFile::create(path));
  PARTITA_TRY(file->write(text));
  return file->commit();
}

} // namespace partita::runtime
