//===- Block.h - A block of threads as fibres -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a block are fibres of one thread of the host. Each runs until
// it waits for others: at a barrier for all of the block, in a shuffle for the
// lanes of its mask. What kernels ask of a GPU, and LLVM has no instruction of
// this processor for, are functions that the kernels call.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUENGINES_BLOCK_H
#define PARTITA_TEST_GPUENGINES_BLOCK_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace partita::test {

/// Runs `body` as each thread of a block. Returns what is wrong: threads that
/// do not meet. Denormal numbers are flushed, as kernels ask for it. `waits`:
/// whether threads wait for each other; otherwise they need no fibres.
std::string runBlock(uint32_t block, uint32_t blocks, uint32_t threads,
                     bool waits, const std::function<void()> &body);

/// The functions, by the intrinsic in whose place they stand, without "llvm.".
const std::map<std::string, void *> &gpuFunctions();

} // namespace partita::test

#endif // PARTITA_TEST_GPUENGINES_BLOCK_H
