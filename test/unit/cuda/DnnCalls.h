//===- DnnCalls.h - Calls of cuDNN, and how they fail -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_DNNCALLS_H
#define PARTITA_TEST_UNIT_CUDA_DNNCALLS_H

#include "runtime/device/cuda/cudnn/Api.h"
#include "test/unit/cuda/CallPlan.h"

/// Skips a test where there is no GPU, or no cuDNN.
#define SKIP_WITHOUT_CUDNN()                                                   \
  SKIP_WITHOUT_GPU();                                                          \
  if (auto dnn = runtime::cuda::cudnn::loadApi(); !dnn)                        \
  GTEST_SKIP() << dnn.status().message()

namespace partita::test {

/// Why the plan cannot be run, or nothing.
inline std::string refusal(CallPlan &plan, runtime::DeviceOptions options = {},
                           const runtime::cuda::cudnn::Api *api = nullptr) {
  LoadedDevice loaded(plan.open(), **runtime::cuda::loadApi(), 0, options,
                      {nullptr, api});
  return loaded.device ? loaded.device->prepare(0).status().message()
                       : loaded.status.message();
}

/// cuDNN, of which one call may fail.
struct WatchedDnn {
  static inline std::map<std::string, int> called;
  static inline std::map<std::string, int> succeeded;
  static inline std::string fail_name;
  static inline int fail_at = 0;
  static inline runtime::cuda::cudnn::Api real;

  template <auto Member> struct Wrap;
  static runtime::cuda::cudnn::Api api();
};
template <typename... Types, runtime::cuda::cudnn::Result (
                                 *runtime::cuda::cudnn::Api::*Member)(Types...)>
struct WatchedDnn::Wrap<Member> {
  static inline const char *name = nullptr;
  static runtime::cuda::cudnn::Result call(Types... values) {
    if (++called[name] == fail_at && fail_name == name)
      return runtime::cuda::cudnn::Result::execution_failed;
    const runtime::cuda::cudnn::Result result = (real.*Member)(values...);
    succeeded[name] += result == runtime::cuda::cudnn::Result::success;
    return result;
  }
};
inline runtime::cuda::cudnn::Api WatchedDnn::api() {
  runtime::cuda::cudnn::Api watched = real = **runtime::cuda::cudnn::loadApi();
#define PARTITA_CUDNN(MEMBER, NAME, TYPES)                                     \
  Wrap<&runtime::cuda::cudnn::Api::MEMBER>::name = #MEMBER;                    \
  watched.MEMBER = Wrap<&runtime::cuda::cudnn::Api::MEMBER>::call;
#include "runtime/device/cuda/cudnn/Functions.def"
  called.clear();
  succeeded.clear();
  return watched;
}

/// Calls that may fail, and what is computed is still right.
struct Harmless {
  int plans = 0;   ///< that an engine refused: another one is taken, if any
  int choices = 0; ///< of which the library did not tell what they were
  bool operator==(const Harmless &) const = default;
};

/// Runs a plan once for each call of the library, with that call failing.
/// Errors must be told, and nothing leak.
inline Harmless failEachCall(const std::function<void(CallPlan &)> &fill) {
  using runtime::Status;
  const CacheFolder none("");
  auto use = [&] {
    const runtime::cuda::cudnn::Api api = WatchedDnn::api();
    CallPlan plan;
    fill(plan);
    LoadedDevice loaded(plan.open(), **runtime::cuda::loadApi(), 0, {},
                        {nullptr, &api});
    if (!loaded.device)
      return loaded.status;
    auto unit = loaded.device->prepare(0);
    if (!unit)
      return unit.status();
    if (Status status = loaded.device->beginStep(); !status.ok())
      return status;
    (void)loaded.device->queue().run(**unit, 0, nullptr);
    return loaded.device->endStep();
  };
  auto live = [] {
    return WatchedDnn::succeeded["create"] +
           WatchedDnn::succeeded["descriptorCreate"] -
           WatchedDnn::succeeded["destroy"] -
           WatchedDnn::succeeded["descriptorDestroy"];
  };
  WatchedDnn::fail_name = "";
  const Status well = use();
  EXPECT_TRUE(well.ok()) << well.message();
  EXPECT_EQ(live(), 0);
  const std::map<std::string, int> calls = WatchedDnn::called;
  EXPECT_EQ(calls.size(), 9u);
  Harmless harmless;
  // The real library takes a second for a plan.
  const int step = std::getenv("CUDA_EMU_DEVICES") ? 1 : 5;
  for (const auto &[name, count] : calls)
    for (int at = 1; at <= count; at += step) {
      SCOPED_TRACE(name + ", call " + std::to_string(at));
      WatchedDnn::fail_name = name;
      WatchedDnn::fail_at = at;
      const Status status = use();
      if (name == "destroy" || name == "descriptorDestroy") {
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(live(), 1);
        continue;
      }
      EXPECT_EQ(live(), 0);
      if (name == "finalize" &&
          (status.ok() ||
           status.message().find(" has no engine for ") != std::string::npos)) {
        ++harmless.plans;
        continue;
      }
      if (status.ok() &&
          (name == "getAttribute" || name == "descriptorCreate")) {
        ++harmless.choices;
        continue;
      }
      EXPECT_NE(status.message().find(
                    "CUDNN_STATUS_EXECUTION_FAILED (5000) of cuDNN "),
                std::string::npos)
          << status.message();
    }
  WatchedDnn::fail_name = "";
  return harmless;
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_DNNCALLS_H
