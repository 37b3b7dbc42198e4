//===- ByteSize.h - Sizes as people write them ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_BYTESIZE_H
#define PARTITA_COMPILER_MODEL_BYTESIZE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace partita {

/// Parses sizes such as "512MiB", "2GB", "1.5 GiB" or "4096" to bytes. Returns
/// nothing if the text is not a size of at least one byte. kB, MB, GB and TB
/// are powers of 1000. KiB, MiB, GiB and TiB are powers of 1024.
std::optional<int64_t> parseByteSize(llvm::StringRef text);

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_BYTESIZE_H
