//===- CallPlan.h - Library calls of a GPU, run -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_CALLPLAN_H
#define PARTITA_TEST_UNIT_CUDA_CALLPLAN_H

#include "runtime/device/cuda/cublaslt/Api.h"
#include "test/unit/cuda/Loaded.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

/// Skips a test where there is no GPU, or no cuBLASLt for its driver.
#define SKIP_WITHOUT_CUBLASLT()                                                \
  SKIP_WITHOUT_GPU();                                                          \
  if (auto blas = installedBlas(); !blas)                                      \
  GTEST_SKIP() << blas.status().message()

namespace partita::test {

/// The cuBLASLt for the driver that there is.
inline runtime::Expected<const runtime::cuda::cublaslt::Api *> installedBlas() {
  auto api = runtime::cuda::loadApi();
  if (!api)
    return api.status();
  int version = 0;
  (void)(*api)->driverGetVersion(&version);
  return runtime::cuda::cublaslt::loadApi(version);
}

/// Where choices of libraries are kept, for a test; empty: nowhere.
class CacheFolder {
public:
  explicit CacheFolder(const std::string &folder) { use(folder); }
  CacheFolder(const CacheFolder &) = delete;
  ~CacheFolder() {
    if (before)
      use(*before);
    else
      ::unsetenv("PARTITA_CACHE");
  }
  void use(const std::string &folder) {
    ::setenv("PARTITA_CACHE", folder.c_str(), 1);
  }

private:
  static std::optional<std::string> current() {
    const char *folder = std::getenv("PARTITA_CACHE");
    return folder ? std::optional<std::string>(folder) : std::nullopt;
  }
  const std::optional<std::string> before = current();
};

inline int64_t bytesOf(abi::DType type) { return runtime::elementBytes(type); }

inline float numberAt(abi::DType type, const uint8_t *data) {
  uint32_t bits = 0;
  std::memcpy(&bits, data, static_cast<size_t>(bytesOf(type)));
  switch (type) {
  case abi::DType::f16:
    return static_cast<float>(
        std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  case abi::DType::bf16:
    return std::bit_cast<float>(bits << 16);
  case abi::DType::i8:
    return static_cast<int8_t>(bits);
  case abi::DType::i32:
    return static_cast<float>(static_cast<int32_t>(bits));
  default:
    return std::bit_cast<float>(bits);
  }
}

/// A plan of a GPU with calls in one unit, whose operands are weights.
class CallPlan {
public:
  struct Call {
    InstructionSpec spec;
    int slot;
    abi::DType type;
    int64_t count;
  };

  CallPlan() {
    spec.addDevice();
    spec.programs[0].units.push_back({"F0", 0, {}});
    spec.programs[0].workspace_bytes = 1 << 20;
  }

  /// Random numbers. The last two dimensions may lie the other way round.
  ViewSpec tensor(abi::DType type, const Shape &shape,
                  bool columns_inside = false) {
    const int64_t count = product(shape), bytes = bytesOf(type);
    std::vector<float> words(static_cast<size_t>((count * bytes + 3) / 4));
    auto *data = reinterpret_cast<uint8_t *>(words.data());
    std::uniform_int_distribution<int> draw(-128, 127);
    for (int64_t i = 0; i < count; ++i) {
      const int number = draw(random);
      const float value = static_cast<float>(number) / 64;
      uint32_t bits = std::bit_cast<uint32_t>(value);
      if (type == abi::DType::f16)
        bits = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
      else if (type == abi::DType::bf16)
        bits >>= 16;
      else if (type == abi::DType::i8)
        bits = static_cast<uint8_t>(number);
      std::memcpy(data + i * bytes, &bits, static_cast<size_t>(bytes));
    }
    const int slot = spec.addWeight(0, shape, words);
    spec.weights.back().dtype = type;
    spec.weights.back().bytes = count * bytes;
    spec.weights.back().hash =
        XXH3_64bits(data, static_cast<size_t>(count * bytes));
    SlotSpec &described = spec.programs[0].slots[static_cast<size_t>(slot)];
    described.dtype = type;
    described.bytes = count * bytes;
    values[slot] = {type, {data, data + words.size() * 4}};
    ViewSpec view{slot, shape, denseStrides(shape), 0};
    if (columns_inside) {
      const size_t last = shape.size() - 1;
      view.strides[last] = shape[last - 1];
      view.strides[last - 1] = 1;
    }
    return view;
  }

  /// Puts a number of f32 into an operand.
  void put(const ViewSpec &view, const Shape &index, float value) {
    int64_t place = view.offset;
    for (size_t i = 0; i < index.size(); ++i)
      place += index[i] * view.strides[i];
    SlotSpec &slot = spec.programs[0].slots[static_cast<size_t>(view.slot)];
    WeightSpec &weight = spec.weights[static_cast<size_t>(slot.offset)];
    uint8_t *data = &spec.weight_bytes[static_cast<size_t>(weight.offset)];
    std::memcpy(data + place * 4, &value, 4);
    weight.hash = XXH3_64bits(data, static_cast<size_t>(weight.bytes));
  }

  /// Appends a call; its result is dense, in the order of its dimensions if
  /// `strides` are empty.
  void add(InstructionSpec call, abi::DType type, const Shape &result,
           const Shape &strides = {}) {
    const int slot = spec.addSlot(0, result);
    SlotSpec &described = spec.programs[0].slots[static_cast<size_t>(slot)];
    described.dtype = type;
    described.bytes = product(result) * bytesOf(type);
    call.views.push_back(
        {slot, result, strides.empty() ? denseStrides(result) : strides, 0});
    spec.programs[0].units[0].instructions.push_back(call);
    spec.outputs.push_back({"y" + std::to_string(calls.size()), type, result});
    calls.push_back({call, slot, type, product(result)});
  }

  std::shared_ptr<const runtime::Artifact> open() {
    PlanSpec plan = onGpus(spec);
    plan.programs[0].actions = {{abi::ActionKind::run, 0, 0}};
    for (size_t i = 0; i < calls.size(); ++i)
      plan.programs[0].actions.push_back({abi::ActionKind::store_output, 0,
                                          static_cast<int>(i), calls[i].slot});
    return openPlan(plan);
  }

  /// Runs all calls once, one by one and as a graph: the same bits come out.
  void run(runtime::DeviceOptions options = {}) {
    options.graphs = false;
    ASSERT_NO_FATAL_FAILURE(runOnce(options));
    std::vector<std::vector<uint8_t>> one_by_one;
    one_by_one.swap(results);
    options.graphs = true;
    ASSERT_NO_FATAL_FAILURE(runOnce(options));
    EXPECT_TRUE(results == one_by_one);
  }

  void runOnce(const runtime::DeviceOptions &options) {
    LoadedDevice loaded(open(), **runtime::cuda::loadApi(), 0, options);
    ASSERT_TRUE(loaded.device) << loaded.status.message();
    runtime::Device &device = *loaded.device;
    auto unit = device.prepare(0);
    ASSERT_TRUE(unit.ok()) << unit.status().message();
    ASSERT_TRUE(device.finish().ok());
    EXPECT_EQ(device.remark(), "");
    ASSERT_TRUE(device.beginStep().ok());
    ASSERT_TRUE(device.queue().run(**unit, 0, nullptr).ok());
    const runtime::Status status = device.endStep();
    ASSERT_TRUE(status.ok()) << status.message();
    results.clear();
    for (const Call &call : calls) {
      results.emplace_back(
          static_cast<size_t>(call.count * bytesOf(call.type)));
      const runtime::Status read =
          device.download(results.back().data(), device.slot(call.slot, 0),
                          results.back().size());
      ASSERT_TRUE(read.ok()) << read.message();
    }
  }

  double result(size_t call, int64_t element) const {
    const abi::DType type = calls[call].type;
    return numberAt(
        type, &results[call][static_cast<size_t>(element * bytesOf(type))]);
  }

  /// An element of an operand.
  double at(const ViewSpec &view, const Shape &index) const {
    const auto &[type, bytes] = values.at(view.slot);
    int64_t place = view.offset;
    for (size_t i = 0; i < index.size(); ++i)
      place += (view.shape[i] == 1 ? 0 : index[i]) * view.strides[i];
    return numberAt(type, &bytes[static_cast<size_t>(place * bytesOf(type))]);
  }

  PlanSpec spec;
  std::vector<Call> calls;

private:
  std::mt19937 random{1};
  std::map<int, std::pair<abi::DType, std::vector<uint8_t>>> values;
  std::vector<std::vector<uint8_t>> results;
};

/// cuBLASLt whose calls are counted, and of which one may fail. There is one at
/// a time.
class WrappedBlas {
public:
  using Api = runtime::cuda::cublaslt::Api;
  using Result = runtime::cuda::cublaslt::Result;

  WrappedBlas();
  ~WrappedBlas() { current = nullptr; }

  /// How many objects were made, and not given back.
  int live() const {
    int count = 0;
    for (const auto &[name, times] : succeeded)
      if (name.ends_with("reate"))
        count += times;
      else if (name.ends_with("estroy"))
        count -= times;
    return count;
  }

  Api api;
  std::map<std::string, int> called;
  std::string fail_name; ///< of the member of Api that fails
  int fail_at = 0;       ///< at this call

private:
  template <auto Member> struct Wrap;

  template <typename Call> Result watch(const char *name, const Call &call) {
    if (++called[name] == fail_at && name == fail_name)
      return Result::execution_failed;
    const Result result = call();
    succeeded[name] += result == Result::success;
    return result;
  }

  static inline WrappedBlas *current = nullptr;
  const Api real;
  std::map<std::string, int> succeeded;
};

template <typename... Types,
          WrappedBlas::Result (*WrappedBlas::Api::*Member)(Types...)>
struct WrappedBlas::Wrap<Member> {
  static inline const char *name = nullptr;
  static WrappedBlas::Result call(Types... values) {
    return current->watch(name,
                          [&] { return (current->real.*Member)(values...); });
  }
};

inline WrappedBlas::WrappedBlas() : real(**installedBlas()) {
  api = real;
  current = this;
#define PARTITA_CUBLASLT(MEMBER, NAME, TYPES)                                  \
  Wrap<&Api::MEMBER>::name = #MEMBER;                                          \
  api.MEMBER = Wrap<&Api::MEMBER>::call;
#include "runtime/device/cuda/cublaslt/Functions.def"
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_CALLPLAN_H
