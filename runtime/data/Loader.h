//===- Loader.h - Steps of samples, filled ahead ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread of its own fills a ring of buffers with samples, while those that it
// filled before are computed:
//
//   LoaderInput image = {"image", *openDataset("train-images-idx3-ubyte"),
//                        abi::DType::f32, {1, 28, 28}, {.divide = 255}};
//   auto loader = Loader::create({image, label}, {.samplesPerStep = 64});
//   for (;;) {
//     auto step = (*loader)->next();       // waits
//     if (!step || !*step)                 // an error, or the last epoch's end
//       break;
//     train((*step)->inputs);              // f32 [64, 1, 28, 28], ...
//     (*loader)->release(*step);
//   }
//
// Samples that are left at the end of an epoch and do not fill a step, or a
// part of one (LoaderOptions.samplesPerPart), are dropped.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_LOADER_H
#define PARTITA_RUNTIME_DATA_LOADER_H

#include "runtime/data/Conversion.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/Order.h"
#include "runtime/io/Tensor.h"

#include <memory>
#include <vector>

namespace partita::data {

/// An input of the model and its samples.
struct LoaderInput {
  std::string name;
  std::shared_ptr<const Dataset> samples;
  abi::DType dtype = abi::DType::f32; ///< the input's
  /// Of one sample of the input. That of the dataset may be another with as
  /// many elements, e.g. [28, 28] for [1, 28, 28].
  std::vector<int64_t> shape;
  Scale scale = {};
};

struct LoaderOptions {
  int64_t samplesPerStep = 1;
  /// The last step of an epoch may have fewer samples, a multiple of this. 0:
  /// it may not.
  int64_t samplesPerPart = 0;
  Order::Kind order = Order::Kind::shuffled;
  uint64_t seed = 0;
  int buffers = 3; ///< steps that are filled ahead or in use; at least 1
  /// Where to begin: the epoch, and the samples of it that are left out, which
  /// were visited before.
  int64_t epoch = 0;
  int64_t position = 0;
  /// The epoch before which to end; -1: never.
  int64_t endEpoch = -1;
};

/// The samples of one step.
struct LoadedStep {
  int64_t epoch = 0;
  int64_t position = 0; ///< of the first sample in its epoch
  /// The running number of the first sample over all epochs, epoch * samples +
  /// position. The others follow. Dropped samples have numbers, so that these
  /// do not depend on how many samples a step has.
  int64_t firstSample = 0;
  int64_t samples = 0;
  /// For each input [samples per step, ...shape], on 64-byte boundaries, of
  /// which the first `samples` are filled. Not to be read after the step is
  /// released.
  std::vector<runtime::Tensor> inputs;
};

class Loader {
public:
  /// Makes all buffers and starts the thread. Fails if datasets have different
  /// numbers of samples, if there are fewer than a step takes, and if a
  /// dataset's type or shape cannot become those of its input.
  static runtime::Expected<std::unique_ptr<Loader>>
  create(std::vector<LoaderInput> inputs, const LoaderOptions &options);

  /// Ends the thread, at the latest when it has copied a sample, whatever is
  /// released.
  ~Loader();

  /// The next step; waits until it is filled. It is the caller's until it is
  /// released. Null after the last epoch. An error stands where the step with
  /// the wrong sample would be, and for all after it. Waits without an end if
  /// all buffers are the caller's. One thread at a time may call this.
  runtime::Expected<const LoadedStep *> next();

  /// Gives a step back, to be filled anew. From any thread, in any order, once
  /// for each step.
  void release(const LoadedStep *step);

  /// The samples of an epoch, with those that are dropped.
  int64_t samples() const;
  int64_t stepsPerEpoch() const;
  /// The samples of a whole epoch that are dropped.
  int64_t samplesDropped() const;
  /// Nanoseconds that `next` has waited, in all calls.
  int64_t waitedNs() const;

private:
  struct Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_LOADER_H
