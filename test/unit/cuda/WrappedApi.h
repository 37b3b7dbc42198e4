//===- WrappedApi.h - A driver whose calls are watched ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_WRAPPEDAPI_H
#define PARTITA_TEST_UNIT_CUDA_WRAPPEDAPI_H

#include "runtime/device/cuda/driver/Api.h"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace partita::test {

using runtime::cuda::Api;
using runtime::cuda::Result;

/// Counts the calls of a driver, and lets a test answer them in its place.
/// There is one at a time.
class WrappedApi {
public:
  explicit WrappedApi(const Api &real);
  ~WrappedApi() { current = nullptr; }

  Api api;

  /// Called before each call, with the name of the member of Api and how often
  /// it was called. What it returns is the call's result; nothing: the driver
  /// is called.
  std::function<std::optional<Result>(const std::string &, int)> answer;

  int calls(const std::string &name) {
    std::lock_guard<std::mutex> lock(mutex);
    return called[name];
  }
  std::map<std::string, int> allCalls() {
    std::lock_guard<std::mutex> lock(mutex);
    return called;
  }
  /// How many objects were made, and not given back.
  int live() {
    std::lock_guard<std::mutex> lock(mutex);
    int count = 0;
    for (const char *make :
         {"memAlloc", "memHostAlloc", "streamCreate", "eventCreate",
          "moduleLoadDataEx", "primaryCtxRetain", "streamEndCapture",
          "graphInstantiate"})
      count += succeeded[make];
    for (const char *release : kReleases)
      count -= succeeded[release];
    return count;
  }

  static constexpr const char *kReleases[] = {
      "memFree",      "memFreeHost",       "streamDestroy", "eventDestroy",
      "moduleUnload", "primaryCtxRelease", "graphDestroy",  "graphExecDestroy"};

private:
  template <auto Member> struct Wrap;
  template <typename Call> Result watch(const char *name, const Call &call) {
    int number;
    {
      std::lock_guard<std::mutex> lock(mutex);
      number = ++called[name];
    }
    std::optional<Result> given;
    if (answer)
      given = answer(name, number);
    const Result result = given ? *given : call();
    if (result == Result::success) {
      std::lock_guard<std::mutex> lock(mutex);
      ++succeeded[name];
    }
    return result;
  }

  static inline WrappedApi *current = nullptr;
  const Api real;
  std::mutex mutex;
  std::map<std::string, int> called, succeeded;
};

template <typename... Types, Result (*Api::*Member)(Types...)>
struct WrappedApi::Wrap<Member> {
  static inline const char *name = nullptr;
  static Result call(Types... values) {
    return current->watch(name,
                          [&] { return (current->real.*Member)(values...); });
  }
};

inline WrappedApi::WrappedApi(const Api &real) : real(real) {
  current = this;
#define PARTITA_CUDA(MEMBER, NAME, SYMBOL, TYPES)                              \
  Wrap<&Api::MEMBER>::name = #MEMBER;                                          \
  api.MEMBER = Wrap<&Api::MEMBER>::call;
#include "runtime/device/cuda/driver/Functions.def"
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_WRAPPEDAPI_H
