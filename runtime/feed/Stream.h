//===- Stream.h - Samples from many, in steps of several --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any number of threads submit samples, each as many as it has. The stream
// groups them into steps (dynamic batching). A step begins when it is full. It
// also begins when its first sample has waited for as long as the options say
// and the devices are about to have nothing to do. Steps overlap.
//
//   auto stream = Stream::create(model, session_options, {.delay_s = 0.002});
//   auto ticket = (*stream)->submit({image});     // [n, 3, 224, 224]
//   auto answer = (*stream)->wait(*ticket);       // outputs[0]: [n, 1000]
//
// Where there are plans for steps of several sequences (Plan.step_sequences),
// the sequences that wait share a step. A step then waits a while for those
// that have just got their answers: they are about to have another sample.
//
// The results are those of single steps of a plan, bit for bit. They do not
// depend on which samples share a micro-batch, as long as the model computes
// samples independently. If it does not, and says so (Plan.full_micro_batches),
// each request must be whole micro-batches, which are then computed as they
// are. What plans of other sizes compute may be rounded in another way.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_STREAM_H
#define PARTITA_RUNTIME_FEED_STREAM_H

#include "runtime/feed/Model.h"
#include "runtime/feed/TicketLock.h"

#include "runtime/io/Tensor.h"
#include "runtime/session/Session.h"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace partita::feed {

struct StreamOptions {
  /// How long a sample may wait for others that fill up its step.
  double delay_s = 0;
  /// The number of samples that may wait to be computed; 0: as many as fill
  /// four steps. `submit` blocks while more samples wait.
  int64_t queued_samples = 0;
  /// Held by the stream that computes, of several whose sessions share memory.
  /// Null if there are no others.
  std::shared_ptr<TicketLock> devices_lock;
};

class Stream {
public:
  using Clock = std::chrono::steady_clock;

  struct Answer {
    std::vector<runtime::Tensor> outputs; ///< one for each of Model.outputs
    Clock::time_point finished;
  };

  /// Loads a session of all devices, on a thread of the stream's own. Fails if
  /// some port has no axis for samples while others have one, if its entries
  /// are not a whole number per sample, or if samples that cannot be split
  /// (Plan.mixes) are to wait for others. `model` must outlive the stream, and
  /// so must those whose steps are several steps of it, of as many sequences
  /// (PlanChoice::ofSeveral). The sessions share the devices' memory then.
  static runtime::Expected<std::unique_ptr<Stream>>
  create(const Model &model, const runtime::SessionOptions &session,
         const StreamOptions &options = {},
         const std::vector<const Model *> &several = {});
  /// Whether `create` accepts the ports of the model.
  static bool suits(const Model &model);
  /// Finishes what was submitted.
  ~Stream();

  /// Takes one tensor for each of Model.inputs, all with the same number of
  /// samples. Their bytes must not change until `wait` returns. An error says
  /// what is wrong with them, or why the session has failed. Any thread may
  /// call this.
  runtime::Expected<uint64_t>
  submit(const std::vector<runtime::Tensor> &inputs);

  /// The same with places for the results: one for each of Model.outputs, with
  /// room for all samples. The answer then has no tensors.
  /// `sequence`: of a plan with states, whose states they go on from; if it
  /// `begins`, from zeros.
  runtime::Expected<uint64_t> submit(const std::vector<runtime::Tensor> &inputs,
                                     const std::vector<uint8_t *> &outputs,
                                     int sequence = 0, bool begins = false);

  /// The number of entries along the batch axis of a port that belong to one
  /// sample. 1 if the port has no batch axis.
  int64_t inputEntries(size_t input) const;
  int64_t outputEntries(size_t output) const;
  /// The number of samples that fill a step.
  int64_t stepSamples() const;

  /// Waits for the results. Fails for those whose samples have an index that
  /// the model does not allow (Session::badIndices); others are not concerned.
  /// Call it once for each ticket, from any thread. When
  /// it returns, even with an error, nothing reads or writes the bytes of the
  /// samples any more.
  runtime::Expected<Answer> wait(uint64_t ticket);

  /// Calls `work` in the session's thread, when the samples that were submitted
  /// before are done and no other stream computes. Any thread may call this.
  /// Fails if the session has failed.
  runtime::Status
  whenIdle(const std::function<runtime::Status(runtime::Session &)> &work);

  /// Whether steps keep NaN now: because the options say so, or because a step
  /// has met one (SessionOptions.keep_nan).
  bool keepsNan() const;

  /// What the user should know of how the session was loaded (Session::remark).
  const std::string &remark() const;

  /// The steps that were computed, the samples in them, and the direct steps.
  /// In a direct step, each micro-batch belongs to one request, and its results
  /// were written to their final place at once.
  struct Counts {
    int64_t steps = 0, samples = 0, direct = 0;
  };
  Counts counts() const;
  /// Nanoseconds that each device was busy in these steps; negative: they were
  /// not measured (Device::busyNs).
  std::vector<int64_t> busyNs() const;

  struct Impl;

private:
  explicit Stream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_STREAM_H
