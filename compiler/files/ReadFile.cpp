//===- ReadFile.cpp - Files that people name ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/files/ReadFile.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace partita::files {

Expected<std::unique_ptr<MemoryBuffer>> readFile(StringRef path, uint64_t most,
                                                 Ending ending) {
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(path, status))
    return createStringError(error.message());
  if (!sys::fs::is_regular_file(status))
    return createStringError("it is not a regular file");
  const uint64_t bytes = status.getSize();
  if (bytes > most)
    return createStringError("it has " + Twine(bytes) + " bytes, and at most " +
                             Twine(most) + " are read");
  // A slice, so that a file that grows meanwhile gives no more than that.
  auto buffer = ending == Ending::null
                    ? MemoryBuffer::getFile(path)
                    : MemoryBuffer::getFileSlice(path, bytes, 0);
  if (!buffer)
    return createStringError(buffer.getError().message());
  return std::move(*buffer);
}

} // namespace partita::files
