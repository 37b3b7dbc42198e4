//===- StepHeap.h - What libraries allocate in a step -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime allocates nothing in a step, but the libraries that it calls do:
// oneDNN makes a table of arguments for every primitive, and its plain matrix
// product a buffer for packed panels. A program that links `partita_step_heap`
// replaces the allocation functions of its process: while a step runs, every
// thread but those that handed it out is served from a stack of its own, reserved beforehand, so that the
// heap with its locks and system calls has no part in a step. At all other
// times the functions are those of the C library.
//
// For executables only, and not beside a sanitizer, which replaces the same
// functions.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_HEAP_STEPHEAP_H
#define PARTITA_RUNTIME_HEAP_STEPHEAP_H

#include <cstddef>
#include <cstdint>

namespace partita::runtime {

/// Reserves the stacks (address space; pages are taken when touched). False if
/// the system refuses: steps then allocate from the heap, and are right too.
bool reserveStepHeap();

/// Allocations of steps since the start of the process.
struct StepHeapCounts {
  int64_t served = 0; ///< by the stacks
  int64_t heap = 0;   ///< by the heap, for want of room or of a stack
  size_t bytes = 0;   ///< the deepest that the stacks were, all together
};
StepHeapCounts stepHeapCounts();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_HEAP_STEPHEAP_H
