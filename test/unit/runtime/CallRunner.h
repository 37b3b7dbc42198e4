//===- CallRunner.h - A library call, run, and its reference ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_RUNTIME_CALLRUNNER_H
#define PARTITA_TEST_UNIT_RUNTIME_CALLRUNNER_H

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"
#include "runtime/session/Session.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <random>

namespace partita::test {

using Values = std::vector<float>;

inline Values randomValues(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Values values(static_cast<size_t>(count));
  for (float &value : values)
    value = uniform(generator);
  return values;
}

/// A tensor in memory, seen through strides.
struct Tensor {
  Shape shape, strides;
  Values values;
  bool weight = false;
  abi::DType type = abi::DType::f32; ///< of what the memory holds

  int64_t elements() const {
    return 4 * static_cast<int64_t>(values.size()) /
           runtime::elementBytes(type);
  }

  /// Random elements; `order` lists the axes from the outermost in memory to
  /// the innermost (empty: row major).
  static Tensor random(const Shape &shape, unsigned seed,
                       std::vector<int> order = {}) {
    Tensor tensor;
    tensor.shape = shape;
    tensor.strides = denseStrides(shape);
    if (!order.empty()) {
      int64_t stride = 1;
      for (int i = static_cast<int>(order.size()) - 1; i >= 0; --i) {
        tensor.strides[order[i]] = stride;
        stride *= shape[order[i]];
      }
    }
    tensor.values = randomValues(product(shape), seed);
    return tensor;
  }
  Tensor asWeight() const {
    Tensor copy = *this;
    copy.weight = true;
    return copy;
  }
  /// The same memory with other extents and strides.
  Tensor seenAs(const Shape &other, const Shape &steps) const {
    Tensor copy = *this;
    copy.shape = other;
    copy.strides = steps;
    return copy;
  }
  size_t at(const Shape &index) const {
    int64_t position = 0;
    for (size_t i = 0; i < index.size(); ++i)
      position += (shape[i] == 1 ? 0 : index[i]) * strides[i];
    return static_cast<size_t>(position);
  }
  float get(const Shape &index) const { return values[at(index)]; }
};

inline void forEachIndex(const Shape &shape,
                         const std::function<void(const Shape &)> &visit) {
  Shape index(shape.size(), 0);
  for (int64_t n = product(shape); n > 0; --n) {
    visit(index);
    for (int i = static_cast<int>(shape.size()) - 1;
         i >= 0 && ++index[i] == shape[i]; --i)
      index[i] = 0;
  }
}

/// A call with its tensors. `result` has the shape and strides of the
/// destination, and its content before the call, which the post-op `sum` reads.
struct CallCase {
  InstructionSpec spec;
  std::vector<Tensor> operands;
  Tensor result;
  std::vector<std::pair<int, Tensor>> post_operands; ///< post-op, its operand
  Tensor bias, mask_mul, mask_add, zeros, experts;   ///< no shape: none
  std::optional<int64_t> packed_room, workspace;     ///< of the plan
};

/// A plan of one device that loads the tensors, makes the call and stores the
/// result. It has two micro-batches, and the loaded tensors are in frames.
inline PlanSpec planOf(const CallCase &call) {
  PlanSpec plan;
  plan.micro_batches = 2;
  int device = plan.addDevice();
  InstructionSpec spec = call.spec;
  std::vector<int> loaded; // slots, by input
  auto place = [&](const Tensor &tensor) {
    const int64_t count = tensor.elements();
    int slot;
    if (tensor.weight) {
      slot = plan.addWeight(device, {count}, tensor.values);
      plan.weights.back().dtype = tensor.type;
      plan.weights.back().bytes = count * runtime::elementBytes(tensor.type);
    } else {
      slot = plan.addFrameSlot(device, {int64_t(tensor.values.size())},
                               plan.micro_batches);
      plan.inputs.push_back(
          {"i" + std::to_string(loaded.size()), tensor.type, {count}});
      loaded.push_back(slot);
    }
    SlotSpec &made = plan.programs[size_t(device)].slots[size_t(slot)];
    made.dtype = tensor.type;
    made.shape = {count};
    made.bytes = count * runtime::elementBytes(tensor.type);
    return ViewSpec{slot, tensor.shape, tensor.strides, 0};
  };
  for (const Tensor &operand : call.operands)
    spec.views.push_back(place(operand));
  ViewSpec result = place(call.result);
  spec.views.push_back(result);
  for (const auto &[post, operand] : call.post_operands)
    spec.post_ops[post].view = place(operand);
  if (!call.bias.values.empty())
    spec.bias = place(call.bias);
  if (!call.mask_mul.values.empty())
    spec.mask_mul = place(call.mask_mul);
  if (!call.mask_add.values.empty())
    spec.mask_add = place(call.mask_add);
  if (!call.zeros.values.empty())
    spec.zeros = place(call.zeros);
  if (!call.experts.values.empty())
    spec.experts = place(call.experts);

  ProgramSpec &owner = plan.programs[device];
  owner.packed_bytes = call.packed_room.value_or(owner.packed_bytes);
  owner.workspace_bytes = call.workspace.value_or(owner.workspace_bytes);
  owner.units.push_back({"F0", 0, {spec}});
  for (int m = 0; m < plan.micro_batches; ++m) {
    for (size_t i = 0; i < loaded.size(); ++i)
      owner.actions.push_back(
          {abi::ActionKind::load_input, m, static_cast<int>(i), loaded[i]});
    owner.actions.push_back({abi::ActionKind::run, m, 0});
    owner.actions.push_back({abi::ActionKind::store_output, m, 0, result.slot});
  }
  plan.outputs.push_back({"y", call.result.type, {call.result.elements()}});
  return plan;
}

/// What is wrong with a plan of the call, as the artifact's check says it.
inline std::string errorOf(const CallCase &call) {
  const std::string path = temporary("call.partita");
  writeArtifact(path, planOf(call));
  auto artifact = runtime::Artifact::open(path);
  ::unlink(path.c_str());
  return artifact ? "" : artifact.status().message();
}

/// Options of a run of a call.
struct RunOptions {
  int threads = 2;
  bool keep_nan = false; ///< from the first step on
};
struct RunReport {
  runtime::DeviceMemory memory;
  bool keeps_nan; ///< at the end
};

/// Runs the call. Returns the memory of the result.
inline Values runCall(const CallCase &call, const RunOptions &run = {},
                      RunReport *report = nullptr) {
  std::string path = temporary("call.partita");
  writeArtifact(path, planOf(call));
  auto artifact = runtime::Artifact::open(path);
  ::unlink(path.c_str());
  if (!artifact) {
    ADD_FAILURE() << artifact.status().message();
    return {};
  }
  runtime::SessionOptions options;
  options.threads_per_device = run.threads;
  options.keep_nan = run.keep_nan;
  auto session = runtime::Session::create(*artifact, options);
  if (!session) {
    ADD_FAILURE() << session.status().message();
    return {};
  }
  runtime::StepBinding binding;
  std::vector<Values> fed; // each tensor once for each of two micro-batches
  auto feed = [&](const Tensor &tensor) {
    if (tensor.weight || tensor.values.empty())
      return;
    fed.push_back(tensor.values);
    fed.back().insert(fed.back().end(), tensor.values.begin(),
                      tensor.values.end());
    binding.inputs.push_back(
        reinterpret_cast<const uint8_t *>(fed.back().data()));
  };
  for (const Tensor &operand : call.operands)
    feed(operand);
  feed(call.result);
  for (const auto &post : call.post_operands)
    feed(post.second);
  feed(call.bias);
  feed(call.mask_mul);
  feed(call.mask_add);
  feed(call.zeros);
  feed(call.experts);
  const size_t count = call.result.values.size();
  Values results(2 * count);
  binding.outputs.push_back(reinterpret_cast<uint8_t *>(results.data()));
  // Twice, since the second step finds what the first one left.
  for (int step = 1; step <= 2; ++step) {
    binding.micro_batches = step;
    runtime::Status status = (*session)->run(binding);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  const Values first(results.begin(), results.begin() + count),
      result(results.begin() + count, results.end());
  EXPECT_EQ(std::memcmp(first.data(), result.data(), count * sizeof(float)), 0)
      << "the second micro-batch gives other numbers";
  if (report)
    *report = {(*session)->memory()[0], (*session)->keepsNan()};
  return result;
}

/// Compares the elements of `call.result` with `reference(index)`.
inline void expectCall(const CallCase &call,
                       const std::function<double(const Shape &)> &reference,
                       double tolerance = 1e-4, const RunOptions &run = {}) {
  Values got = runCall(call, run);
  if (got.empty())
    return;
  int wrong = 0;
  forEachIndex(call.result.shape, [&](const Shape &index) {
    double expected = reference(index), value = got[call.result.at(index)];
    if (std::abs(value - expected) > tolerance * (1 + std::abs(expected)) &&
        ++wrong <= 3)
      ADD_FAILURE() << "got " << value << ", expected " << expected;
  });
  EXPECT_EQ(wrong, 0);
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_RUNTIME_CALLRUNNER_H
