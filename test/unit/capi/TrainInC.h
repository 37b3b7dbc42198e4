/*===- TrainInC.h - A training loop in C ----------------------------------===*
 *
 * Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#ifndef PARTITA_TEST_UNIT_CAPI_TRAININC_H
#define PARTITA_TEST_UNIT_CAPI_TRAININC_H

#ifdef __cplusplus
extern "C" {
#endif

/* Trains an artifact of one state and one input, with the same samples in each
 * step. Returns the loss of the last step, and the state's first element; a
 * negative loss is an error. */
double train_in_c(const char *artifact, const float *samples, int steps,
                  float *state);

#ifdef __cplusplus
}
#endif

#endif /* PARTITA_TEST_UNIT_CAPI_TRAININC_H */
