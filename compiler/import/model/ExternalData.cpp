//===- ExternalData.cpp - Tensors in files beside the model ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The path comes from the model, so it is a stranger's. Each component is
// opened without following links, relative to the one before, and what is
// opened is what is checked.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/ModelFile.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace mlir;

namespace partita::import {

/// Splits a location into components, or says why it is refused.
static const char *splitLocation(StringRef location,
                                 SmallVectorImpl<StringRef> &components) {
  if (location.contains('\0'))
    return "it holds a null character";
  if (location.starts_with("/"))
    return "it is an absolute path";
  location.split(components, '/');
  erase_if(components, [](StringRef c) { return c.empty() || c == "."; });
  if (is_contained(components, ".."))
    return "it holds '..'";
  return components.empty() ? "it names no file" : nullptr;
}

FailureOr<TensorBytes> openExternalData(StringRef directory, StringRef location,
                                        int64_t offset, int64_t length,
                                        bool mayBeAbsent, Location loc) {
  auto refuse = [&](const Twine &why) -> LogicalResult {
    return emitError(loc) << "cannot use external data '" << location
                          << "': " << why;
  };
  SmallVector<StringRef> components;
  if (const char *why = splitLocation(location, components))
    return refuse(why);

  TensorBytes bytes;
  SmallString<128> path(directory);
  for (StringRef component : components)
    sys::path::append(path, component);
  std::string root = directory.empty() ? "." : directory.str();
  int fd = open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  llvm::scope_exit closeFd([&] {
    if (fd >= 0)
      close(fd);
  });
  if (fd < 0)
    return refuse(std::strerror(errno));
  for (auto [i, component] : enumerate(components)) {
    bool last = i + 1 == components.size();
    // Non-blocking, so that a FIFO does not hold the compiler up.
    int flags =
        O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
    int next = openat(fd, component.str().c_str(), flags);
    if (next < 0 && errno == ELOOP)
      return refuse("'" + component + "' is a symbolic link");
    if (next < 0 && errno == ENOENT && mayBeAbsent && length >= 0) {
      bytes.span = FileSpan{path.str().str(), offset, length};
      bytes.isAbsent = true;
      return bytes;
    }
    if (next < 0) {
      const char *why = std::strerror(errno);
      SmallString<128> searched(root);
      (void)sys::fs::make_absolute(searched);
      return refuse("'" + component + "' in the folder '" + searched +
                    "': " + why);
    }
    close(fd);
    fd = next;
  }

  struct stat info;
  if (fstat(fd, &info) != 0)
    return refuse(std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return refuse("it is not a regular file");
  if (info.st_nlink != 1)
    return refuse("the file has several names (hard links)");
  if (length < 0)
    length = std::max<int64_t>(info.st_size - offset, 0);
  if (offset > info.st_size || length > info.st_size - offset)
    return refuse("bytes " + Twine(offset) + " to " + Twine(offset) + "+" +
                  Twine(length) + " are wanted, and the file has " +
                  Twine(static_cast<int64_t>(info.st_size)));

  bytes.span = FileSpan{path.str().str(), offset, length};
  if (length == 0)
    return bytes;
  auto buffer = MemoryBuffer::getOpenFileSlice(fd, path.str(), length, offset);
  if (!buffer)
    return refuse(buffer.getError().message());
  bytes.keepAlive = std::move(*buffer);
  bytes.data = bytes.keepAlive->getBuffer();
  return bytes;
}

} // namespace partita::import
