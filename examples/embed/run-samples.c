/*===- run-samples.c - Samples through a compiled model, from C -----------===*
 *
 * Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * run-samples MODEL.partita [N]: computes N samples of zeros, and prints what
 * comes in and out.
 *
 *===----------------------------------------------------------------------===*/

#include <partita.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMostPorts = 64 };

static int fail(void) {
  fprintf(stderr, "run-samples: error: %s\n", partita_last_error());
  return 1;
}

static void print_port(const char *what, const partita_port *port) {
  printf("%s '%s' of type %d: [", what, port->name, (int)port->type);
  for (int d = 0; d < port->rank; ++d) {
    if (d == port->batch_axis)
      printf("%sN", d ? ", " : "");
    else
      printf("%s%" PRId64, d ? ", " : "", port->shape[d]);
  }
  printf("], %" PRId64 " bytes a sample\n", port->bytes);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: run-samples MODEL.partita [N]\n");
    return 1;
  }
  int64_t samples = argc > 2 ? strtoll(argv[2], NULL, 10) : 1;
  partita_model *model;
  if (partita_open(argv[1], NULL, &model) != PARTITA_OK)
    return fail();
  size_t inputs = partita_input_count(model),
         outputs = partita_output_count(model);
  if (inputs > kMostPorts || outputs > kMostPorts || samples < 1)
    return 1;
  void *in[kMostPorts], *out[kMostPorts];
  for (size_t i = 0; i < inputs + outputs; ++i) {
    partita_port port = {.size = sizeof port};
    int is_input = i < inputs;
    if ((is_input ? partita_input(model, i, &port)
                  : partita_output(model, i - inputs, &port)) != PARTITA_OK)
      return fail();
    print_port(is_input ? "input" : "output", &port);
    void *bytes = calloc((size_t)samples, (size_t)port.bytes + 1);
    if (!bytes)
      return 1;
    if (is_input)
      in[i] = bytes;
    else
      out[i - inputs] = bytes;
  }
  if (partita_run(model, (const void *const *)in, samples, out) != PARTITA_OK)
    return fail();
  printf("%" PRId64 " samples computed; %" PRId64 " fill a step\n", samples,
         partita_step_samples(model));
  partita_close(model);
  for (size_t i = 0; i < inputs; ++i)
    free(in[i]);
  for (size_t i = 0; i < outputs; ++i)
    free(out[i]);
  return 0;
}
