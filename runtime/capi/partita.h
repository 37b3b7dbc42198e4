/*===- partita.h - Partita's runtime for C --------------------------------===*
 *
 * Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * Opens an artifact of partita-compile, and computes samples with it:
 *
 *   partita_model *model;
 *   if (partita_open("net.partita", NULL, &model) != PARTITA_OK)
 *     die(partita_last_error());
 *   const void *inputs[] = {image};  // 3 samples of [3, 224, 224], one after
 * another void *outputs[] = {classes};     // room for 3 of [1000] if
 * (partita_run(model, inputs, 3, outputs) != PARTITA_OK)
 *     die(partita_last_error());
 *   partita_close(model);
 *
 * Any thread may call any function with any model at any time. The exception is
 * partita_close: nothing else may use the model then. Samples that come from
 * several threads at about the same time share a step (dynamic batching), and
 * steps overlap. Neither changes a bit of the results. Where a model combines
 * samples with each other, a call has the shapes for which it was compiled, and
 * shares no step; an option batch_delay_s is an error then.
 *
 * A function that fails returns PARTITA_ERROR. partita_last_error then says
 * why, in words. A wrong argument does not harm the model, and neither does an
 * index in an input that the model does not allow. A function that returns no
 * status gives 0 or "" for a model that is NULL, and partita_last_error says
 * so. When a device has failed, every later call with the model fails.
 *
 * This interface is stable: a program keeps working with every later library of
 * the same PARTITA_API_VERSION. Structures begin with their size, so that they
 * can grow.
 *
 *===----------------------------------------------------------------------===*/

#ifndef PARTITA_H
#define PARTITA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PARTITA_API_VERSION 1

#if defined(__GNUC__)
#define PARTITA_API __attribute__((visibility("default")))
#else
#define PARTITA_API
#endif

typedef enum partita_status {
  PARTITA_OK = 0,
  PARTITA_ERROR = 1
} partita_status;

/* The type of an element. An element of less than a byte takes one byte. */
typedef enum partita_type {
  PARTITA_F32 = 0,
  PARTITA_F64,
  PARTITA_F16,
  PARTITA_BF16,
  PARTITA_I8,
  PARTITA_I16,
  PARTITA_I32,
  PARTITA_I64,
  PARTITA_U8,
  PARTITA_U16,
  PARTITA_U32,
  PARTITA_U64,
  PARTITA_BOOL, /* 0 or 1 */
  PARTITA_F8E4M3FN,
  PARTITA_F8E4M3FNUZ,
  PARTITA_F8E5M2,
  PARTITA_F8E5M2FNUZ,
  PARTITA_F8E8M0,
  PARTITA_F4E2M1,
  PARTITA_I4,
  PARTITA_U4,
  PARTITA_I2,
  PARTITA_U2
} partita_type;

/* A loaded artifact with all its devices. */
typedef struct partita_model partita_model;

typedef struct partita_options {
  size_t size; /* sizeof(partita_options) */
  int threads; /* cores per device; 0: the cores of the machine, divided by the
                  devices */
  int pin;     /* keep devices on their cores; default 1 */
  int strict_nan;       /* keep NaN from the first step on; default 0 */
  int trust_weights;    /* do not check the weights; default 0 */
  double timeout_s;     /* deadline of every wait between devices; default 60 */
  double batch_delay_s; /* how long a sample may wait for others that share its
                           step; default 0 */
  int64_t queued_samples; /* partita_submit blocks while more samples wait; 0:
                             as many as fill four steps */
  int cpu_level; /* use no kernels above this x86-64 level, 3 or 4; 0: the
                    highest that the processor has */
} partita_options;

/* An input or output. The pointers live as long as the model. */
typedef struct partita_port {
  size_t size;      /* sizeof(partita_port), set by the caller */
  const char *name; /* as in the ONNX model */
  partita_type type;
  int rank;
  const int64_t *shape; /* of one sample: the batch axis has the entries of one
                           sample, a dimension its largest size */
  int batch_axis; /* the axis along which samples follow one another; -1: a call
                     has one sample */
  int64_t bytes;  /* of one sample */
  const int *dimensions; /* by axis: the index of its dimension; -1: its size is
                            fixed */
  const char *whole; /* what combines samples, in words, so that a call has the
                        whole shape; NULL: nothing is known to */
} partita_port;

/* A dimension of the model that has several sizes. The artifact has a plan for
 * each of them (partita-compile --dim tokens=8,64,512). */
typedef struct partita_dimension {
  size_t size;      /* sizeof(partita_dimension), set by the caller */
  const char *name; /* as in the ONNX model */
  int count;
  const int64_t *sizes; /* the sizes of the plans, in increasing order */
} partita_dimension;

/* What was computed since the model was opened. */
typedef struct partita_profile {
  size_t size; /* sizeof(partita_profile), set by the caller */
  int64_t steps;
  int64_t samples; /* in these steps */
  int devices;
} partita_profile;

typedef struct partita_device_profile {
  size_t size;      /* sizeof(partita_device_profile), set by the caller */
  const char *name; /* e.g. "cpu:0"; the pointer lives as long as the model */
  double busy_s;    /* seconds that the device computed, in all steps; NaN:
                       not measured, as on GPUs */
} partita_device_profile;

/* PARTITA_API_VERSION of the library. */
PARTITA_API int partita_api_version(void);
/* Why the last call of this thread failed; "" if none did. The text is valid
 * until the thread's next call. */
PARTITA_API const char *partita_last_error(void);
/* Whether the reason was a value in an input, such as an index that the model
 * does not allow. The model is as good as before. A server answers that the
 * request was wrong, and not that the server is. */
PARTITA_API int partita_last_error_in_input(void);

/* Fills in the defaults. */
PARTITA_API void partita_default_options(partita_options *options);
/* The same for a structure of `size` bytes, which has the options that the
 * program knows. A later library may know more. */
PARTITA_API void partita_default_options_sized(partita_options *options,
                                               size_t size);
#define partita_default_options(options)                                       \
  partita_default_options_sized((options), sizeof(partita_options))

/* Loads an artifact onto its devices. `options` may be NULL. */
PARTITA_API partita_status partita_open(const char *path,
                                        const partita_options *options,
                                        partita_model **model);
/* Finishes the submitted samples, and frees the model. Does nothing for NULL.
 */
PARTITA_API void partita_close(partita_model *model);

PARTITA_API size_t partita_input_count(const partita_model *model);
PARTITA_API size_t partita_output_count(const partita_model *model);
PARTITA_API partita_status partita_input(const partita_model *model,
                                         size_t index, partita_port *port);
PARTITA_API partita_status partita_output(const partita_model *model,
                                          size_t index, partita_port *port);
/* The position of an input or output of this name. */
PARTITA_API partita_status partita_find_input(const partita_model *model,
                                              const char *name, size_t *index);
PARTITA_API partita_status partita_find_output(const partita_model *model,
                                               const char *name, size_t *index);
/* The number of samples that fill a step. With fewer at a time, devices wait
 * for one another. */
PARTITA_API int64_t partita_step_samples(const partita_model *model);

/* Computes `samples` samples, and waits for them. There is one pointer for each
 * input and for each output. Tensors are row-major. Samples follow one another
 * along the batch axis; if that is the first axis, they follow one another in
 * memory. Inputs and outputs must not overlap. */
PARTITA_API partita_status partita_run(partita_model *model,
                                       const void *const *inputs,
                                       int64_t samples, void *const *outputs);
/* The same without waiting. Inputs and outputs must stay until partita_wait has
 * returned for the ticket. Call partita_wait exactly once for each ticket. */
PARTITA_API partita_status partita_submit(partita_model *model,
                                          const void *const *inputs,
                                          int64_t samples, void *const *outputs,
                                          uint64_t *ticket);
PARTITA_API partita_status partita_wait(partita_model *model, uint64_t ticket);

/* Steps that are done count, those under way do not. How long a device was
 * busy, beside the time that has passed, shows how well the devices are used.
 */
PARTITA_API partita_status partita_get_profile(const partita_model *model,
                                               partita_profile *profile);
/* `device`: from 0 to partita_profile.devices - 1. */
PARTITA_API partita_status partita_get_device_profile(
    const partita_model *model, int device, partita_device_profile *profile);

/* Whether steps keep NaN now. They do with partita_options.strict_nan. They
 * also do after a step has met NaN where fast code turns it into a number. That
 * step was computed again. */
PARTITA_API int partita_keeps_nan(const partita_model *model);

/* What the user should know of how the model was loaded, in lines; "" if
 * nothing. The text lives as long as the model. */
PARTITA_API const char *partita_remark(const partita_model *model);

/* The number of dimensions whose size may differ from call to call. */
PARTITA_API size_t partita_dimension_count(const partita_model *model);
PARTITA_API partita_status partita_get_dimension(const partita_model *model,
                                                 size_t index,
                                                 partita_dimension *dimension);
/* partita_run and partita_submit for samples of the given sizes, one for each
 * dimension. Without sizes, samples have the largest ones. The smallest plan
 * that is large enough computes the samples. If it is larger, they are padded
 * with zeros, and outputs are cut to the sizes. This requires an artifact that
 * was compiled with --mask. Inputs and outputs have the shapes of their ports,
 * with these sizes. */
PARTITA_API partita_status partita_run_sized(partita_model *model,
                                             const int64_t *sizes,
                                             const void *const *inputs,
                                             int64_t samples,
                                             void *const *outputs);
PARTITA_API partita_status partita_submit_sized(
    partita_model *model, const int64_t *sizes, const void *const *inputs,
    int64_t samples, void *const *outputs, uint64_t *ticket);

#ifdef __cplusplus
}
#endif

#endif /* PARTITA_H */
