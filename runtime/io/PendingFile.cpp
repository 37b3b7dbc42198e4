//===- PendingFile.cpp - A file that appears only when complete -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/PendingFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita::runtime {

namespace {

Status failure(const std::string &what, const std::string &path, int error) {
  return Status::error("cannot " + what + " '" + path +
                       "': " + std::strerror(error));
}

} // namespace

Expected<std::unique_ptr<PendingFile>>
PendingFile::create(const std::string &target) {
  struct stat info;
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Status::error("cannot write '" + target +
                         "': something that is not a file has this name");
  std::unique_ptr<PendingFile> file(new PendingFile);
  std::string path = target + ".XXXXXX";
  int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0)
    return failure("write", target, errno);
  // mkostemp makes the file for its owner only; give it what an ordinary new
  // file would get.
  mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor, 0666 & ~mask);
  file->target = target;
  file->temporary = path;
  file->descriptor = descriptor;
  return file;
}

PendingFile::~PendingFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status PendingFile::write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return failure("write", target, errno);
    bytes = bytes.subspan(size_t(written));
  }
  return Status();
}

Status PendingFile::write(const std::string &text) {
  return write(std::span<const uint8_t>(
      reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

Status PendingFile::commit() {
  // Closing can report what a delayed write could not do.
  int closed = ::close(descriptor);
  descriptor = -1;
  if (closed != 0)
    return failure("write", target, errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return failure("write", target, errno);
  temporary.clear();
  return Status();
}

} // namespace partita::runtime
