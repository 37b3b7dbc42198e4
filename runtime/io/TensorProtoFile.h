//===- TensorProtoFile.h - ONNX TensorProto files (.pb) ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// This is the format of ONNX's test vectors (input_0.pb, output_0.pb). Readers
// take every numeric type of the plan, in raw_data or in the typed fields. They
// unpack types of less than a byte to one element per byte. An error names
// strings, complex numbers and data in another file, which are not supported.
// The bytes do not say whether they are a TensorProto, a SequenceProto or an
// OptionalProto: the caller must know.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_TENSORPROTOFILE_H
#define PARTITA_RUNTIME_IO_TENSORPROTOFILE_H

#include "runtime/io/Tensor.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace partita::runtime {

/// Reads a .pb file. The tensor's name in the file may be empty.
Expected<NamedTensor> readTensorProto(const std::string &path);

/// The same from memory; `where` names the bytes in messages.
Expected<NamedTensor> parseTensorProto(std::span<const uint8_t> bytes,
                                       const std::string &where);

/// Reads a SequenceProto of tensors.
Expected<std::vector<Tensor>> readSequenceProto(const std::string &path);

/// Reads an OptionalProto. Returns the tensor, or the tensors of the sequence,
/// that is its value. Returns nothing if it has no value.
Expected<std::optional<std::vector<Tensor>>>
readOptionalProto(const std::string &path);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_TENSORPROTOFILE_H
