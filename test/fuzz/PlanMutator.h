//===- PlanMutator.h - Mutations of an encoded plan -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_FUZZ_PLANMUTATOR_H
#define PARTITA_TEST_FUZZ_PLANMUTATOR_H

#include <cstddef>
#include <cstdint>

namespace partita::fuzz {

/// Changes one number, enumerator, length or reference somewhere in an encoded
/// plan, so that it stays well formed and becomes wrong. Bytes that are no
/// plan, and one time in eight all else, get a mutation of bytes. Returns the
/// new size.
size_t mutatePlan(uint8_t *data, size_t size, size_t most, unsigned seed);

} // namespace partita::fuzz

#endif // PARTITA_TEST_FUZZ_PLANMUTATOR_H
