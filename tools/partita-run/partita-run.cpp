//===- partita-run.cpp - The runtime as a program -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Program.h"

#include "runtime/heap/StepHeap.h"

#include <malloc.h>

int main(int argc, char **argv) {
  partita::run::boundSpinning(argv);
  // What loading frees goes back to the system: otherwise the C library keeps
  // blocks as large as the largest that it was ever given back.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  partita::runtime::endWithoutMemory("partita-run");
  // Refused: steps allocate from the heap, and --benchmark says so.
  (void)partita::runtime::reserveStepHeap();
  return partita::run::runProgram(argc, argv);
}
