//===- Feed.h - Samples cut into micro-batches ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan computes micro-batches of a fixed shape. Any number of samples is cut
// along the batch axis; the last micro-batch is filled up by repeating the last
// sample, and what that gives is thrown away. A step takes up to
// Plan.micro_batches of them. Where micro-batches lie one after another in the
// caller's tensor, a step reads and writes them there; others go through a
// buffer, which is made when it is first needed.
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
  /// Checks type, shape and number of samples of every input. `device`: the
  /// only device of this process, or -1; ports it does not touch stay null.
  static runtime::Expected<Feed> create(const Model &model,
                                        const InputTensors &inputs, int device);

  /// Samples of the inputs that have a batch axis; 1 if none has.
  int64_t samples() const { return total; }
  int64_t microBatches() const { return batches; }
  /// Whether the last micro-batch is not full.
  bool partial() const { return total % perBatch != 0; }
  int64_t steps() const { return (batches + stepBatches - 1) / stepBatches; }

  /// Binds the inputs of step `step` of the samples' steps. So many steps that
  /// are filled one after another have buffers of their own.
  static constexpr int kLanes = runtime::Session::kMostSteps;
  void fill(int64_t step, runtime::StepBinding &binding);
  /// Binds all micro-batches of a step, repeating the samples from the first on
  /// if there are too few.
  void fillWhole(runtime::StepBinding &binding);

  /// How many elements a port's axis has for all samples together; empty if
  /// that is no whole number.
  std::optional<int64_t> extent(const Port &port) const;

private:
  /// Copies a micro-batch of input `i` into a buffer.
  void stage(size_t i, int64_t micro_batch, int place,
             std::vector<uint8_t> &buffer) const;
  void bind(int64_t first, int count, int lane, runtime::StepBinding &binding);

  const std::vector<Port> *ports = nullptr;
  std::vector<runtime::Tensor> tensors;
  std::vector<bool> used; ///< by port: has elements that this process touches
  /// By lane, and by port.
  std::array<std::vector<std::vector<uint8_t>>, kLanes> staging;
  int64_t total = 1;
  int64_t perBatch = 1;
  int64_t batches = 1;
  int stepBatches = 1;
};

/// Gathers the outputs of the steps.
class Collector {
public:
  /// An error if an output without a batch axis would have to be joined from
  /// several micro-batches.
  static runtime::Expected<Collector> create(const Model &model,
                                             const Feed &feed, int device);

  /// Points the outputs of a step of `count` micro-batches to where `take`
  /// expects them; see Feed::kLanes.
  void bind(int64_t step, int count, runtime::StepBinding &binding);
  /// Puts what step `step` gave in its place.
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
