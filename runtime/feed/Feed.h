//===- Feed.h - Samples cut into micro-batches ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan computes micro-batches of a fixed shape. Any number of samples is cut
// along the batch axis. Copies of the last sample fill up the last micro-batch,
// and the results of the copies are dropped. If samples are combined with each
// other (Plan.full_micro_batches), that is an error instead. A step takes up to
// Plan.micro_batches micro-batches. If micro-batches are contiguous in the
// caller's tensor, a step reads and writes them there. Otherwise they go
// through a buffer, which is made when it is first needed.
//
//   port [4, 3], batch axis 0; plan of 2 micro-batches; input [10, 3]
//   step 0: samples 0..3 and 4..7    step 1: samples 8, 9, 9, 9
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_FEED_H
#define PARTITA_RUNTIME_FEED_FEED_H

#include "runtime/feed/MadeUpInputs.h"
#include "runtime/feed/Model.h"

#include "runtime/session/Session.h"

#include <array>

namespace partita::feed {

class Feed {
public:
  /// Checks type, shape and number of samples of every input. `devices`:
  /// those of this process; none stands for all. Ports that they do not use
  /// stay null.
  static runtime::Expected<Feed> create(const Model &model,
                                        const InputTensors &inputs,
                                        const std::vector<int> &devices);

  /// The number of samples of the inputs that have a batch axis. 1 if none has.
  int64_t samples() const { return total; }
  int64_t microBatches() const { return batches; }
  /// Whether the last micro-batch is not full.
  bool partial() const { return total % perBatch != 0; }
  int64_t steps() const { return (batches + stepBatches - 1) / stepBatches; }

  /// Binds the inputs of step `step`. Each of kLanes consecutive steps has its
  /// own buffers.
  static constexpr int kLanes = runtime::Session::kMostSteps;
  void fill(int64_t step, runtime::StepBinding &binding);
  /// Binds all micro-batches of a step. If there are too few samples, they are
  /// repeated from the first one.
  void fillWhole(runtime::StepBinding &binding);

  /// The size of a port's batch axis for all samples together. Empty if it is
  /// not a whole number.
  std::optional<int64_t> extent(const Port &port) const;

private:
  /// Copies a micro-batch of input `i` into a buffer.
  void stage(size_t i, int64_t micro_batch, int place,
             std::vector<uint8_t> &buffer) const;
  void bind(int64_t first, int count, int lane, runtime::StepBinding &binding);

  const std::vector<Port> *ports = nullptr;
  std::vector<runtime::Tensor> tensors;
  std::vector<bool> used; ///< by port: this process uses elements of it
  /// The buffers, by lane and port.
  std::array<std::vector<std::vector<uint8_t>>, kLanes> staging;
  int64_t total = 1;
  int64_t perBatch = 1;
  int64_t batches = 1;
  int stepBatches = 1;
};

/// Gathers the outputs of the steps.
class Collector {
public:
  /// Fails if an output without a batch axis would have to be joined from
  /// several micro-batches.
  static runtime::Expected<Collector>
  create(const Model &model, const Feed &feed, const std::vector<int> &devices);

  /// Binds the outputs of a step of `count` micro-batches to the places where
  /// `take` expects them; see Feed::kLanes.
  void bind(int64_t step, int count, runtime::StepBinding &binding);
  /// Copies the outputs of step `step` to their places in the results.
  void take(int64_t step, int count);

  /// One tensor for each of Model.outputs.
  std::vector<runtime::Tensor> &results() { return tensors; }

private:
  const std::vector<Port> *ports = nullptr;
  std::vector<runtime::Tensor> tensors;
  std::vector<bool> used;
  std::array<std::vector<std::vector<uint8_t>>, Feed::kLanes> staging;
  int stepBatches = 1;
};

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_FEED_H
