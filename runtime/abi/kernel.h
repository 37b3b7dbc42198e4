//===- kernel.h - The ABI between kernels and the runtime ---------*- C -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is a function of a shared object in the artifact's object section.
// It has no state. Outside its object it only calls functions of the C and
// mathematics libraries. It allocates only on its stack.
//
//   buffers   one pointer per operand, inputs first, then results. Each points
//             to the first element of a dense row-major tensor. Slots of the
//             arena are aligned to 64 bytes, weights to their element.
//   begin,    the half-open range of the kernel's outermost parallel loop that
//   end       this call computes, 0 <= begin < end <= Dispatch.extent
//
// Different ranges write different bytes, and a range never cuts a reduction.
// So any split over any number of cores gives the same bits.
//
// Beside each kernel the object has a table of what the kernel was compiled
// for, which the compiler writes: the constant `<kernel>_use`, of 64-bit numbers.
// The runtime compares each dispatch of the plan with it, so a plan cannot make
// a kernel read or write outside of its operands. Code is not checked: an
// artifact of a stranger is a program of a stranger.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_KERNEL_H
#define PARTITA_RUNTIME_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*partita_kernel_fn)(void *const *buffers, int64_t begin,
                                  int64_t end);

/* The numbers of a table. */
enum {
  PARTITA_USE_EXTENT,   /* Dispatch.extent; -1: any, and bytes are those of one
                           iteration */
  PARTITA_USE_RESULTS,  /* Dispatch.results */
  PARTITA_USE_OPERANDS, /* number of operands; -1: any, and none is touched */
  PARTITA_USE_BYTES     /* the bytes of each operand, from here on */
};

#ifdef __cplusplus
}
#endif

#endif // PARTITA_RUNTIME_ABI_KERNEL_H
