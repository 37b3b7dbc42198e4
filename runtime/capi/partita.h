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
 * An artifact that was compiled with --train learns: see partita_trainer.
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
  const int64_t *extra; /* by axis: how many entries it has besides those of its
                           dimension, as a cache has before new words */
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
/* Whether the reason was an input: a value, such as an index that the model does
 * not allow, or its size. The model is as good as before. A server answers that the
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

/* What a state is for. */
typedef enum partita_role {
  PARTITA_PARAMETER = 0, /* the optimizer changes it */
  PARTITA_OPTIMIZER,     /* what the optimizer keeps of a parameter */
  PARTITA_STATISTIC,     /* of the model, changed by its steps */
  PARTITA_CARRIED        /* what a step leaves for the next one */
} partita_role;

/* A value that steps change. The pointers live as long as the model, or the
 * trainer. */
typedef struct partita_state {
  size_t size;      /* sizeof(partita_state), set by the caller */
  const char *name; /* as in the ONNX model; of the optimizer's, a name of its
                       own */
  partita_role role;
  partita_type type;
  int rank;
  const int64_t *shape;
  int64_t bytes;
} partita_state;

/* The states of a model that was compiled with partita-compile --state: what
 * was an input, and is what the step before has left. They lie on the devices,
 * and begin with zeros. Each micro-batch of a step has its own; `shape` is that
 * of all of them, one after another along dimension 0. A call computes as many
 * steps as it has samples for, in their order, and calls follow one another as
 * they come; so one thread should make them. Where plans differ in sizes, wait
 * for a call before one of other sizes. A call that is refused for an index in
 * an input may have written states. */
PARTITA_API size_t partita_state_count(const partita_model *model);
PARTITA_API partita_status partita_describe_state(const partita_model *model,
                                                  size_t index,
                                                  partita_state *state);
PARTITA_API partita_status partita_find_state(const partita_model *model,
                                              const char *name, size_t *index);
/* Copies a state out, or in, when the samples that were submitted before are
 * done. `bytes` is partita_state.bytes. */
PARTITA_API partita_status partita_get_state(partita_model *model, size_t index,
                                             void *to, size_t bytes);
PARTITA_API partita_status partita_set_state(partita_model *model, size_t index,
                                             const void *from, size_t bytes);
/* Makes all states 0, for the calls that follow. */
PARTITA_API partita_status partita_reset_states(partita_model *model);

/* With partita-compile --sequences N, each of N sequences has states of its
 * own: texts or sounds of clients that know nothing of each other. A call is of
 * one of them, 0 to N - 1; the functions above are of sequence 0. Each sequence
 * may have a thread that makes its calls. Steps of several sequences are under
 * way at the same time, so that the stages of a pipeline have something to do.
 * Calls of sequences that wait share a step, if the model has such steps
 * (docs/sequences.md). */
PARTITA_API int partita_sequence_count(const partita_model *model);
/* partita_submit_sized for a sequence. `sizes` may be NULL. */
PARTITA_API partita_status partita_submit_sequence(
    partita_model *model, int sequence, const int64_t *sizes,
    const void *const *inputs, int64_t samples, void *const *outputs,
    uint64_t *ticket);
PARTITA_API partita_status partita_get_sequence_state(partita_model *model,
                                                      int sequence,
                                                      size_t index, void *to,
                                                      size_t bytes);
PARTITA_API partita_status partita_set_sequence_state(partita_model *model,
                                                      int sequence,
                                                      size_t index,
                                                      const void *from,
                                                      size_t bytes);
/* Makes the states of a sequence 0, for the calls of it that follow. */
PARTITA_API partita_status partita_reset_sequence(partita_model *model,
                                                  int sequence);

/* A model that learns: an artifact of partita-compile --train, with all its
 * devices. It has a thread of its own, in which calls follow one another. So
 * any thread may call any function, but for partita_trainer_close, at any time.
 *
 *   partita_trainer *trainer;
 *   if (partita_trainer_open("learning.partita", NULL, &trainer) != PARTITA_OK)
 *     die(partita_last_error());
 *   int64_t samples = partita_trainer_step_samples(trainer);
 *   partita_step_result result = {sizeof result};
 *   const void *inputs[] = {images, labels};
 *   if (partita_trainer_step(trainer, inputs, samples, &result) != PARTITA_OK)
 *     die(partita_last_error());
 *   partita_trainer_export(trainer, "trained.onnx");
 *   partita_trainer_close(trainer);
 *
 * The states are what partita-run --train computes from the same samples in the
 * same order, to the last bit. */
typedef struct partita_trainer partita_trainer;

typedef struct partita_trainer_options {
  size_t size; /* sizeof(partita_trainer_options) */
  int threads; /* cores per device; 0: the cores of the machine, divided by the
                  devices */
  int pin;     /* keep devices on their cores; default 1 */
  int trust_weights; /* do not check the weights; default 0 */
  int cpu_level;     /* as in partita_options; default 0 */
  double timeout_s;  /* deadline of every wait between devices; default 60 */
  uint64_t seed;     /* of initial values that are drawn, and of dropout;
                        default 0 */
  int allow_changes; /* go on from checkpoints of another seed, order or set-up,
                        such as another learning rate; default 0 */
} partita_trainer_options;

typedef struct partita_step_result {
  size_t size;  /* sizeof(partita_step_result), set by the caller */
  int64_t step; /* steps so far, this one included */
  double loss;
  double learning_rate; /* of the parameters that no group names */
  double gradient_norm; /* before it was clipped; 0 if nobody asks for it */
  int skipped; /* 1: loss or gradients are not finite, and no state changed */
} partita_step_result;

typedef struct partita_evaluation {
  size_t size; /* sizeof(partita_evaluation), set by the caller */
  double loss; /* the mean: loss_sum / loss_count; of a loss that is a sum, the
                  sum */
  double loss_sum;
  double loss_count;     /* 0 of a loss that is a sum */
  int64_t labels;        /* that count, if the loss compares with labels */
  int64_t right;         /* those whose score is the largest */
  int64_t right_of_five; /* or one of the five largest */
} partita_evaluation;

/* Where a program is in its samples, kept in checkpoints for it. */
typedef struct partita_position {
  size_t size;       /* sizeof(partita_position), set by the caller */
  int64_t epoch;     /* of the next sample */
  int64_t sample;    /* its place in the epoch */
  const char *order; /* a name for the order of samples, or NULL; a checkpoint
                        of another one is refused. partita-run has "shuffled",
                        "in-order" and "drawn" */
} partita_position;

/* Fills in the defaults, as far as the `size` bytes of the options go. */
PARTITA_API void
partita_default_trainer_options_sized(partita_trainer_options *options,
                                      size_t size);
#define partita_default_trainer_options(options)                               \
  partita_default_trainer_options_sized((options), sizeof(*(options)))

/* Loads an artifact onto its devices. States begin as the model has them, or
 * are drawn by the seed where the artifact says so. `options` may be NULL. */
PARTITA_API partita_status
partita_trainer_open(const char *path, const partita_trainer_options *options,
                     partita_trainer **trainer);
/* Frees the trainer; what it has learned and was not saved is lost. Does
 * nothing for NULL. */
PARTITA_API void partita_trainer_close(partita_trainer *trainer);
/* What the user should know of how the trainer was loaded, how it went on from
 * a checkpoint, or what it did not take of loaded weights, in lines; "" if
 * nothing. The text is valid until the trainer's next call of
 * partita_trainer_resume, _load_checkpoint or _load_weights. */
PARTITA_API const char *partita_trainer_remark(const partita_trainer *trainer);

/* The inputs of the model and of its loss, with the shapes of one sample.
 * Samples follow one another along axis 0. */
PARTITA_API size_t partita_trainer_input_count(const partita_trainer *trainer);
PARTITA_API partita_status partita_trainer_input(const partita_trainer *trainer,
                                                 size_t index,
                                                 partita_port *port);
PARTITA_API partita_status partita_trainer_find_input(
    const partita_trainer *trainer, const char *name, size_t *index);
/* The samples that a step takes. */
PARTITA_API int64_t
partita_trainer_step_samples(const partita_trainer *trainer);
/* The samples of which an evaluation takes any multiple: those of a
 * micro-batch. */
PARTITA_API int64_t
partita_trainer_evaluation_samples(const partita_trainer *trainer);

/* Learns from samples: one update. There is one pointer for each input;
 * `samples` is partita_trainer_step_samples. `result` may be NULL.
 *
 * A wrong label or index in an input is refused before the step: no state has
 * changed, partita_last_error_in_input is 1, and the trainer goes on. A loss
 * that is not finite changes no state, either, if the artifact was compiled
 * with
 * --on-nonfinite. Another error within a step loses the states. The error says
 * so, and steps, evaluations, checkpoints and exports fail until a checkpoint
 * is loaded. */
PARTITA_API partita_status partita_trainer_step(partita_trainer *trainer,
                                                const void *const *inputs,
                                                int64_t samples,
                                                partita_step_result *result);
/* Computes the loss of samples, and how many labels the model predicts. No
 * state changes. Devices work side by side on as many samples as a step takes,
 * so it is faster to give many at once. */
PARTITA_API partita_status
partita_trainer_evaluate(partita_trainer *trainer, const void *const *inputs,
                         int64_t samples, partita_evaluation *evaluation);
/* The number of steps so far, by which the learning rate changes. */
PARTITA_API int64_t partita_trainer_steps(const partita_trainer *trainer);
PARTITA_API partita_status partita_trainer_set_steps(partita_trainer *trainer,
                                                     int64_t steps);

PARTITA_API size_t partita_trainer_state_count(const partita_trainer *trainer);
PARTITA_API partita_status partita_trainer_state(const partita_trainer *trainer,
                                                 size_t index,
                                                 partita_state *state);
PARTITA_API partita_status partita_trainer_find_state(
    const partita_trainer *trainer, const char *name, size_t *index);
/* Copies a state out, or in. `bytes` is partita_state.bytes. */
PARTITA_API partita_status partita_trainer_get_state(
    const partita_trainer *trainer, size_t index, void *to, size_t bytes);
PARTITA_API partita_status partita_trainer_set_state(partita_trainer *trainer,
                                                     size_t index,
                                                     const void *from,
                                                     size_t bytes);

/* Writes a checkpoint, `folder`/step-NNNNNNNN, which is whole or not there. The
 * newest `keep` stay, at least 1. `position` may be NULL. */
PARTITA_API partita_status
partita_trainer_save(partita_trainer *trainer, const char *folder, int keep,
                     const partita_position *position);
/* Goes on from the newest whole checkpoint in the folder. The trainer must have
 * the seed of the checkpoint, and the set-up, unless it allows changes.
 * partita_trainer_remark says what differs. `position` may be NULL; its order
 * is given, and the rest is filled in. After an error the states are as before.
 * Damaged checkpoints are passed over, and renamed, as the remark says, too. */
PARTITA_API partita_status partita_trainer_resume(partita_trainer *trainer,
                                                  const char *folder,
                                                  partita_position *position);
/* The same from one checkpoint, such as "run/step-00000120". */
PARTITA_API partita_status partita_trainer_load_checkpoint(
    partita_trainer *trainer, const char *checkpoint,
    partita_position *position);
/* Loads the parameters that a file of safetensors has, by their names. After an
 * error the states are as before. */
PARTITA_API partita_status
partita_trainer_load_weights(partita_trainer *trainer, const char *path);
/* Writes the trained ONNX file: the model that was compiled, with the trained
 * weights in it. */
PARTITA_API partita_status
partita_trainer_export(const partita_trainer *trainer, const char *path);

#ifdef __cplusplus
}
#endif

#endif /* PARTITA_H */
