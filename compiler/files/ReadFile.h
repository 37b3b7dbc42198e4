//===- ReadFile.h - Files that people name ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_FILES_READFILE_H
#define PARTITA_COMPILER_FILES_READFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>

namespace partita::files {

/// What a text that a person or a tool of Partita's wrote may have. A partition
/// file that names each of 100 000 nodes has half of it.
inline constexpr uint64_t kMostTextBytes = 16 << 20;
/// What ONNX's own tensors and models of MLIR may have.
inline constexpr uint64_t kMostDataBytes = INT32_MAX;

enum class Ending { any, null };

/// The bytes of a regular file of at most `most` bytes. A device or a pipe is
/// refused: it may have no end, and files are read more than once. The error
/// says why, and not which file. With Ending::null a zero stands behind the
/// last byte, as LLVM's lexers need it.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readFile(llvm::StringRef path, uint64_t most, Ending ending = Ending::any);

} // namespace partita::files

#endif // PARTITA_COMPILER_FILES_READFILE_H
