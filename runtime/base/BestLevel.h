//===- BestLevel.h - Code for the processor that there is -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_BESTLEVEL_H
#define PARTITA_RUNTIME_BASE_BESTLEVEL_H

namespace partita::runtime {

/// Chooses between versions of a function for x86-64, x86-64-v3 and x86-64-v4:
/// the newest that this processor can run.
template <typename Function>
Function atBestLevel(Function baseline, Function v3, Function v4) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    return v4;
  return __builtin_cpu_supports("x86-64-v3") ? v3 : baseline;
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_BESTLEVEL_H
