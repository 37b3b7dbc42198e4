//===- Stream.h - Samples from many, in steps of several --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any number of threads submit samples, each as many as it has. They are put
// together to steps (dynamic batching): a step begins when it is full, or when
// its first sample has waited for as long as the options say and the devices
// are about to have nothing to do. Steps overlap.
//
//   auto stream = Stream::create(model, session_options, {.delay_s = 0.002});
//   auto ticket = (*stream)->submit({image});     // [n, 3, 224, 224]
//   auto answer = (*stream)->wait(*ticket);       // outputs[0]: [n, 1000]
//
// The results are those of single steps, bit for bit: which samples share a
// micro-batch changes none of them, as long as the model keeps samples apart.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_STREAM_H
#define PARTITA_RUNTIME_FEED_STREAM_H

#include "runtime/feed/Model.h"
#include "runtime/feed/Turns.h"

#include "runtime/io/Tensor.h"
#include "runtime/session/Session.h"

#include <chrono>
#include <memory>
#include <vector>

namespace partita::feed {

struct StreamOptions {
  /// How long a sample may wait for others that fill up its step.
  double delay_s = 0;
  /// Samples that may wait to be computed; 0: those of four steps. `submit`
  /// blocks while there are more.
  int64_t queued_samples = 0;
  /// Of streams whose sessions share memory; null: there are no others.
  std::shared_ptr<Turns> turns;
};

class Stream {
public:
  using Clock = std::chrono::steady_clock;

  struct Answer {
    std::vector<runtime::Tensor> outputs; ///< one for each of Model.outputs
    Clock::time_point finished;
  };

  /// Loads a session of all devices, on a thread of the stream's own. An error
  /// if some port has no axis for samples while others have, or has another
  /// number of entries than whole ones a sample. `model` outlives the stream.
  static runtime::Expected<std::unique_ptr<Stream>>
  create(const Model &model, const runtime::SessionOptions &session,
         const StreamOptions &options = {});
  /// Whether a model is none of those that `create` refuses for their ports.
  static bool suits(const Model &model);
  /// Finishes what was submitted.
  ~Stream();

  /// One tensor for each of Model.inputs, of the same number of samples. Their
  /// bytes must stay as they are until `wait` returns. An error says what is
  /// wrong with them, or why the session has failed. From any thread.
  runtime::Expected<uint64_t>
  submit(const std::vector<runtime::Tensor> &inputs);

  /// The same with places for the results: one for each of Model.outputs, with
  /// room for that of all samples. The answer has no tensors then.
  runtime::Expected<uint64_t> submit(const std::vector<runtime::Tensor> &inputs,
                                     const std::vector<uint8_t *> &outputs);

  /// Entries along the batch axis of a port that belong to one sample; 1 if
  /// it has none.
  int64_t inputEntries(size_t input) const;
  int64_t outputEntries(size_t output) const;
  /// Samples that fill a step.
  int64_t stepSamples() const;

  /// Waits for the results; once for each ticket. From any thread. Nothing of
  /// the samples is read or written any more when it returns, with an error
  /// too.
  runtime::Expected<Answer> wait(uint64_t ticket);

  /// Whether steps keep NaN now: as the options say, or since a step met one
  /// (SessionOptions.keep_nan).
  bool keepsNan() const;

  /// Steps that were computed, samples in them, and steps of whole
  /// micro-batches of one request, whose results were written where they go.
  struct Counts {
    int64_t steps = 0, samples = 0, direct = 0;
  };
  Counts counts() const;

  struct Impl;

private:
  explicit Stream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_STREAM_H
