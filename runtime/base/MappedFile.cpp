//===- MappedFile.cpp - A file mapped read-only, opened with care ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita::runtime {
namespace {

std::string quoted(const std::string &path) { return "'" + path + "'"; }

Status cannotOpen(const std::string &path) {
  return Status::error("cannot open " + quoted(path) + ": " +
                       std::strerror(errno));
}

} // namespace

// O_NONBLOCK everywhere: opening a FIFO must not wait for its other end.

Expected<std::shared_ptr<const MappedFile>>
MappedFile::open(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return cannotOpen(path);
  return map(descriptor, path, /*one_name=*/false);
}

Expected<std::shared_ptr<const MappedFile>>
MappedFile::openContained(const std::string &directory,
                          const std::string &relative) {
  auto refuse = [&](const char *why) {
    return Status::error("weight file " + quoted(relative) + " " + why +
                         ": name a file beside the artifact or below it");
  };
  if (relative.empty() || relative.find('\0') != std::string::npos)
    return refuse("has no usable name");
  if (relative[0] == '/')
    return refuse("has an absolute path");

  const std::string base = directory.empty() ? "." : directory;
  int at = ::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0)
    return cannotOpen(base);
  // One component at a time, so that none of them can be a link that leads out.
  for (size_t begin = 0; begin <= relative.size();) {
    size_t slash = relative.find('/', begin);
    bool last = slash == std::string::npos;
    std::string part = relative.substr(begin, last ? slash : slash - begin);
    if (part == ".." || (last && part.empty())) {
      ::close(at);
      return refuse("leaves the artifact's directory");
    }
    if (!part.empty() && part != ".") {
      int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
      int next = ::openat(at, part.c_str(), last ? flags : flags | O_DIRECTORY);
      int reason = errno;
      ::close(at);
      if (next < 0 && reason == ELOOP)
        return refuse("is a symbolic link");
      if (next < 0) {
        std::error_code error;
        return Status::error("cannot open the weight file " + quoted(relative) +
                             " in the folder " +
                             quoted(std::filesystem::absolute(base, error)
                                        .lexically_normal()
                                        .string()) +
                             ": " + std::strerror(reason));
      }
      at = next;
    }
    if (last)
      break;
    begin = slash + 1;
  }
  return map(at, base + "/" + relative, /*one_name=*/true);
}

Expected<std::shared_ptr<const MappedFile>>
MappedFile::map(int descriptor, const std::string &path, bool one_name) {
  struct stat info;
  if (::fstat(descriptor, &info) != 0) {
    Status status = cannotOpen(path);
    ::close(descriptor);
    return status;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return Status::error(quoted(path) + " is not a regular file");
  }
  if (one_name && info.st_nlink != 1) {
    ::close(descriptor);
    return Status::error("weight file " + quoted(path) +
                         " has several names (hard links): make it a copy of "
                         "its own");
  }
  size_t bytes = static_cast<size_t>(info.st_size);
  void *start = nullptr;
  if (bytes)
    start = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  int reason = errno;
  ::close(descriptor);
  if (start == MAP_FAILED)
    return Status::error("cannot map " + quoted(path) + ": " +
                         std::strerror(reason));
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const uint8_t *>(start), bytes));
}

MappedFile::~MappedFile() {
  if (bytes)
    ::munmap(const_cast<uint8_t *>(start), bytes);
}

} // namespace partita::runtime
