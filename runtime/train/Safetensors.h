//===- Safetensors.h - Files of named tensors -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format (https://huggingface.co/docs/safetensors):
//
//   u64     bytes of the header, little-endian
//   header  {"__metadata__": {"key": "text", ...},
//            "fc.weight": {"dtype": "F32", "shape": [10, 64],
//                          "data_offsets": [0, 2560]}, ...}, padded with spaces
//   bytes   of all tensors, dense and row-major, without gaps; offsets count
//           from here
//
// Types: F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL. An error names
// the file and the tensor, and says what to do.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_SAFETENSORS_H
#define PARTITA_RUNTIME_TRAIN_SAFETENSORS_H

#include "runtime/base/Status.h"
#include "runtime/io/Tensor.h"
#include "runtime/train/Content.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace partita::runtime::train {

struct Safetensors {
  std::vector<NamedTensor> tensors; ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// Maps the file. The tensors refer to it and keep it mapped. Their bytes begin
/// anywhere in files of other writers, also where elements are not aligned.
Expected<Safetensors> readSafetensors(const std::string &path);

/// The same of bytes in memory, which `owner` keeps alive. `where` stands for
/// the file in messages, e.g. "'model.safetensors'".
Expected<Safetensors> parseSafetensors(std::span<const uint8_t> bytes,
                                       std::shared_ptr<const void> owner,
                                       const std::string &where);

/// A tensor that is to be written: its elements, dense and row-major.
struct TensorBytes {
  std::string name;
  abi::DType dtype = abi::DType::f32;
  std::vector<int64_t> shape;
  Content bytes;
};

/// Takes the parts of a file one after another.
using ByteSink = std::function<Status(std::span<const uint8_t>)>;

/// Writes the file to `sink`; `where` stands for it in messages. What is
/// written depends on names, types, shapes, bytes and metadata alone, not on
/// the order of `tensors`: larger elements come first, so that all are aligned,
/// and then names. An empty name, one twice, or one that is not UTF-8 is an
/// error, and so is a number of bytes that is not that of the shape.
Status writeSafetensors(const std::vector<TensorBytes> &tensors,
                        const std::map<std::string, std::string> &metadata,
                        const ByteSink &sink, const std::string &where);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_SAFETENSORS_H
