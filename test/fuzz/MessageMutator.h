//===- MessageMutator.h - Mutations of a protobuf message -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_FUZZ_MESSAGEMUTATOR_H
#define PARTITA_TEST_FUZZ_MESSAGEMUTATOR_H

#include <cstddef>
#include <cstdint>

namespace google::protobuf {
class Message;
}

namespace partita::fuzz {

/// Parses `data` into the empty `message`, changes one field somewhere in it
/// (a number, a string for another of the message, an element repeated, taken
/// out or moved, a field cleared or set) and encodes it again. What cannot be
/// parsed, and one time in four all else, gets a mutation of its bytes.
size_t mutateMessage(google::protobuf::Message &message, uint8_t *data,
                     size_t size, size_t most, unsigned seed);

/// The same, with a message that is parsed already.
size_t mutateParsed(google::protobuf::Message &message, uint8_t *data,
                    size_t size, size_t most, unsigned seed);

} // namespace partita::fuzz

#endif // PARTITA_TEST_FUZZ_MESSAGEMUTATOR_H
