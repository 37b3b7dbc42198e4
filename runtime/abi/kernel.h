//===- kernel.h - The ABI between kernels and the runtime ---------*- C -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is a function of a shared object in the artifact's object section.
// It is free of state, calls nothing outside its object but functions of the C
// and mathematics libraries, and allocates only on its stack.
//
//   buffers   one pointer an operand, inputs first, then results, each to the
//             first element of a dense row-major tensor, 64-byte aligned for
//             slots of the arena (weights: aligned to their element)
//   begin,    the half-open range of the kernel's outermost parallel loop to
//   end       compute, 0 <= begin < end <= Dispatch.extent
//
// Different ranges write different bytes, and the range never cuts a reduction,
// so any split over any number of cores gives the same bits.
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

#ifdef __cplusplus
}
#endif

#endif // PARTITA_RUNTIME_ABI_KERNEL_H
