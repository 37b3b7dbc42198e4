//===- SafetensorsHeader.h - What a file of tensors says --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_SAFETENSORSHEADER_H
#define PARTITA_RUNTIME_TRAIN_SAFETENSORSHEADER_H

#include "runtime/abi/plan_generated.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace partita::runtime::train {

/// The format's own bound.
constexpr uint64_t kMostHeaderBytes = 100000000;
constexpr const char *kMetadataKey = "__metadata__";
constexpr const char *kSafetensorsTypes =
    "F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL";

/// The format's name of the type; null if it has none.
const char *safetensorsType(abi::DType dtype);

struct SafetensorsEntry {
  std::string name;
  abi::DType dtype = abi::DType::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; ///< bytes, from the end of the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries; ///< in the order of the text
  std::map<std::string, std::string> metadata;
};

/// Names are all different, and each entry has as many bytes as its shape
/// needs. Where the bytes lie is not compared. The message of an error names
/// the tensor, and not the file.
Expected<SafetensorsHeader> parseSafetensorsHeader(std::string_view text);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_SAFETENSORSHEADER_H
