//===- CallProbe.h - A library call to be timed -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CALIBRATE_CALLPROBE_H
#define PARTITA_RUNTIME_CALIBRATE_CALLPROBE_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

#include <memory>
#include <span>

namespace partita::runtime {

/// Library calls on generated operands, prepared exactly as a device prepares
/// them.
class CallProbe {
public:
  /// Operands are allocated one after another in `space`, which the probe may
  /// write.
  explicit CallProbe(std::span<float> space, const ThreadTeam &team)
      : space(space), team(team) {}

  /// Prepares `result[rows, columns] = lhs . rhs + bias`, with a post-op or
  /// none. With `batch` above 1 it is `batch` such products, without bias.
  Status dot(int64_t batch, int64_t rows, int64_t columns, int64_t depth,
             bool constant, const abi::PostOpKind *post = nullptr);
  /// The same with integers of 8 bits, without bias.
  Status integerDot(int64_t rows, int64_t columns, int64_t depth);
  /// Prepares a channels-last convolution with bias. If `depthwise`, it has
  /// `in` groups.
  Status conv(int64_t side, int64_t in, int64_t out, int64_t window,
              int64_t stride, bool depthwise);
  /// The same with 3x3 windows, by Winograd's method if the library has it.
  Status winograd(int64_t side, int64_t in, int64_t out);
  Status pool(int64_t side, int64_t channels, int64_t window);
  Status attention(int64_t heads, int64_t rows, int64_t columns, int64_t depth);

  bool run() { return task->run(); }
  /// Sets the address of the weights of the next call. Without this call they
  /// follow its other operands in `space`.
  void keepWeightsAt(float *data) { weights = data; }
  /// Sets the address of a product's result in the same way.
  void keepResultAt(float *data) { result = data; }

private:
  float *take(int64_t elements);
  Operand dense(std::vector<int64_t> dims, bool constant = false);
  Operand image(int64_t channels, int64_t side);
  Status convolve(int64_t side, int64_t in, int64_t out, int64_t window,
                  int64_t stride, int64_t groups, int64_t workspace = 0);
  Status prepare(abi::CallKind kind, ResolvedCall call, int64_t window,
                 int64_t stride, int64_t groups, int64_t workspace = 0);

  std::span<float> space;
  const ThreadTeam &team;
  size_t used = 0;
  float *weights = nullptr, *result = nullptr;
  flatbuffers::FlatBufferBuilder buffer;
  PackedWeights packs;
  std::unique_ptr<OnednnContext> context;
  std::unique_ptr<Task> task;
  Arena scratch;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_CALIBRATE_CALLPROBE_H
