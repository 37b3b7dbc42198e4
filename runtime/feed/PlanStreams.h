//===- PlanStreams.h - Samples of several sizes -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each plan of an artifact (PlanChoice.h) has a stream. The streams share the
// devices' memory and take turns. So together they need little more memory than
// the largest of them.
//
//   auto streams = PlanStreams::create(*Artifact::openAll(path), session);
//   // 50 tokens
//   auto ticket = (*streams)->submit({50}, {ids, mask}, {logits});
//   Status status = (*streams)->wait(*ticket);
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_PLANSTREAMS_H
#define PARTITA_RUNTIME_FEED_PLANSTREAMS_H

#include "runtime/feed/PlanChoice.h"
#include "runtime/feed/Stream.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace partita::feed {

class PlanStreams {
public:
  /// Loads a session for each plan; see Stream::create.
  static runtime::Expected<std::unique_ptr<PlanStreams>>
  create(std::vector<std::shared_ptr<const runtime::Artifact>> artifacts,
         runtime::SessionOptions session, StreamOptions options);

  const PlanChoice &plans() const { return choice; }
  const Stream &stream(size_t plan) const { return *streams[plan]; }

  /// Whether steps of some plan keep NaN now (Stream::keepsNan).
  bool keepsNan() const;
  /// The lines of all plans' remarks (Stream::remark), each once.
  std::string remark() const;

  /// `sizes`: the sizes of the samples, one for each of PlanChoice::dimensions.
  /// `inputs` and `outputs` have these sizes, and each output has a place. They
  /// must not change until `wait` returns. Any thread may call this.
  runtime::Expected<uint64_t> submit(const std::vector<int64_t> &sizes,
                                     const std::vector<runtime::Tensor> &inputs,
                                     const std::vector<uint8_t *> &outputs,
                                     int sequence = 0);
  /// Call it once for each ticket, from any thread.
  runtime::Status wait(uint64_t ticket);

  /// Copies a state of the largest plan (Plan.states) out, or in; other plans
  /// have the same. Samples that were submitted before for this plan are done
  /// then; those of other plans should have been waited for.
  runtime::Status readState(int64_t state, void *to, int sequence = 0);
  runtime::Status writeState(int64_t state, const void *from, int sequence = 0);
  /// Makes what steps of a sequence leave for others 0, before its next step.
  runtime::Status reset(int sequence);
  int sequences() const { return static_cast<int>(begins.size()); }

private:
  explicit PlanStreams(
      std::vector<std::shared_ptr<const runtime::Artifact>> artifacts)
      : choice(std::move(artifacts)) {}

  /// Samples that a plan of larger sizes computes.
  struct Padded {
    PlanChoice::Choice choice;
    std::vector<uint8_t *> outputs;
  };

  runtime::Status checkSequence(int sequence) const;
  runtime::Expected<uint64_t> submit(size_t plan,
                                     const std::vector<runtime::Tensor> &inputs,
                                     const std::vector<uint8_t *> &outputs,
                                     int sequence);

  PlanChoice choice;
  std::vector<std::unique_ptr<Stream>> streams; ///< by plan
  std::mutex mutex;
  std::map<uint64_t, Padded> padded; ///< by ticket
  std::vector<bool> begins; ///< by sequence: it is reset before its next step
};

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_PLANSTREAMS_H
