/*===- TrainInC.c - A training loop in C ----------------------------------===*
 *
 * Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#include "test/unit/capi/TrainInC.h"

#include "runtime/capi/partita.h"

double train_in_c(const char *artifact, const float *samples, int steps,
                  float *state) {
  partita_trainer_options options;
  partita_trainer *trainer;
  partita_step_result result = {sizeof result, 0, -1, 0, 0};
  partita_state described = {sizeof described, 0, 0, 0, 0, 0, 0};
  const void *inputs[1];
  size_t index;
  partita_default_trainer_options(&options);
  options.pin = 0;
  options.threads = 1;
  inputs[0] = samples;
  if (partita_trainer_open(artifact, &options, &trainer) != PARTITA_OK)
    return -1;
  while (result.step < steps)
    if (partita_trainer_step(trainer, inputs,
                             partita_trainer_step_samples(trainer),
                             &result) != PARTITA_OK) {
      partita_trainer_close(trainer);
      return -2;
    }
  if (partita_trainer_find_state(trainer, "w", &index) != PARTITA_OK ||
      partita_trainer_state(trainer, index, &described) != PARTITA_OK ||
      partita_trainer_get_state(trainer, index, state,
                                (size_t)described.bytes) != PARTITA_OK)
    result.loss = -3;
  partita_trainer_close(trainer);
  return result.loss;
}
