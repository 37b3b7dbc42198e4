//===- NewFile.cpp - A file that appears only when complete ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/files/NewFile.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita::files {

namespace {

std::error_code lastError() { return {errno, std::generic_category()}; }

std::string folderOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Gives the file `descriptor` a second name, which must be new.
bool link(int descriptor, const std::string &name) {
  // By the process's table of files: linking a descriptor itself is a
  // privilege.
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return ::linkat(AT_FDCWD, path.c_str(), AT_FDCWD, name.c_str(),
                  AT_SYMLINK_FOLLOW) == 0;
}

} // namespace

NewFile::~NewFile() {
  if (file >= 0)
    ::close(file);
  if (!name.empty())
    ::unlink(name.c_str());
}

std::error_code NewFile::create(const std::string &path, Writer writer) {
  target = path;
#ifdef O_TMPFILE
  if (writer == Writer::descriptor) {
    file = ::open(folderOf(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    // Without /proc it could not be linked.
    if (file >= 0 && ::access("/proc/self/fd", X_OK) == 0)
      return {};
    if (file >= 0)
      ::close(file);
  }
#endif
  // Not every file system has files without names (NFS, for one, has not).
  name = path + ".XXXXXX";
  file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) {
    name.clear();
    return lastError();
  }
  // mkostemp makes the file for its owner only; give it what an ordinary new
  // file would get.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file, 0666 & ~mask);
  return {};
}

std::error_code NewFile::commit(bool sync) {
  if (sync && ::fsync(file) != 0)
    return lastError();
  if (name.empty() && !link(file, target)) {
    if (errno != EEXIST)
      return lastError();
    // A link replaces nothing, a rename does. Between the two the file has a
    // name of its own.
    std::string other;
    for (int tries = 0; other.empty(); ++tries) {
      other = target + "." + std::to_string(::getpid()) + "-" +
              std::to_string(tries);
      if (link(file, other))
        name = other;
      else if (errno == EEXIST && tries < 100)
        other.clear();
      else
        return lastError();
    }
  }
  // Closing can report what a delayed write could not do.
  const int closed = ::close(file);
  file = -1;
  if (closed != 0)
    return lastError();
  if (!name.empty() && ::rename(name.c_str(), target.c_str()) != 0)
    return lastError();
  name.clear();
  return {};
}

} // namespace partita::files
