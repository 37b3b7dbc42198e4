//===- StepHeap.h - Stacks for allocations in a step ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime allocates nothing in a step, but the libraries that it calls do.
// oneDNN makes a table of arguments for every primitive, and its plain matrix
// product makes a buffer for packed panels. A program that links
// `partita_step_heap` replaces the allocation functions of its process. While a
// step runs, every thread except those that submit steps allocates from its own
// stack, which is reserved beforehand. So a step uses neither the locks nor the
// system calls of the heap. At all other times the functions are those of the C
// library.
//
// This is for executables only. It cannot be used with a sanitizer, which
// replaces the same functions.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_HEAP_STEPHEAP_H
#define PARTITA_RUNTIME_HEAP_STEPHEAP_H

#include <cstddef>
#include <cstdint>

namespace partita::runtime {

/// Reserves address space for the stacks. Their pages are allocated when they
/// are used. Returns false if the system refuses. Then steps allocate from the
/// heap, with the same results.
bool reserveStepHeap();

/// From here on, memory that the process does not get ends it with exit status
/// 1 and an error that says how much was wanted. So does an exception that
/// nobody catches, on whatever thread. Otherwise the process ends by a signal,
/// at the first library that does not look at what it was given. `program`
/// names the process in the error and must outlive it. Where a sanitizer has
/// the heap, the error does not say how much.
void endWithoutMemory(const char *program);

/// Allocations of steps since the start of the process.
struct StepHeapCounts {
  int64_t served = 0; ///< by the stacks
  int64_t heap = 0;   ///< by the heap, because a stack was full or missing
  size_t bytes = 0;   ///< sum of the largest sizes of all stacks
};
StepHeapCounts stepHeapCounts();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_HEAP_STEPHEAP_H
