//===- WireReader.h - Fields of encoded messages ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MODEL_WIREREADER_H
#define PARTITA_COMPILER_IMPORT_MODEL_WIREREADER_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace partita::import {

/// Messages of a model on the way to its nodes and tensors.
enum class Message { model, graph, node, attribute, function, tensor, other };

/// The message that a field of another one holds.
Message getFieldMessage(Message parent, uint64_t field);

void appendVarint(std::string &out, uint64_t value);
void appendBytesField(std::string &out, uint64_t field, llvm::StringRef bytes);

/// One field as it is encoded.
struct Field {
  uint64_t number = 0;
  unsigned wireType = 0;
  uint64_t varint = 0;     ///< wire type 0
  llvm::StringRef bytes;   ///< wire type 2
  llvm::StringRef encoded; ///< all of it
};

/// Reads a message field by field. After `false`, `whyNot` says what is wrong
/// with it.
class WireReader {
public:
  bool readVarint(llvm::StringRef &in, uint64_t &value);
  /// Takes the next field from `in`, which is not empty.
  bool next(llvm::StringRef &in, Field &field);
  bool fail(const char *why) {
    whyNot = why;
    return false;
  }

  std::string whyNot;
};

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MODEL_WIREREADER_H
