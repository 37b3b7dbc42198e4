/*===- Kernels.c - Kernels for artifacts made by hand ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===*/

#include "runtime/abi/kernel.h"

/* Any extent, one result, and bytes of an iteration. */
const int64_t twice_use[] = {-1, 1, 2, 4, 4};
const int64_t sum_use[] = {-1, 1, 3, 4, 4, 4};
const int64_t half_use[] = {-1, 1, 2, 4, 4};

/* y[i] = 2 x[i] */
void twice(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    y[i] = 2 * x[i];
}

/* z[i] = x[i] + y[i] */
void sum(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0], *y = buffers[1];
  float *z = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    z[i] = x[i] + y[i];
}

/* y[i] = x[i] / 2: denormal for a small x unless it is flushed */
void half(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i] / 2;
}
