//===- WrappedNccl.h - An NCCL whose calls are watched ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_NCCL_WRAPPEDNCCL_H
#define PARTITA_TEST_UNIT_NCCL_WRAPPEDNCCL_H

#include "runtime/comm/nccl/library/Api.h"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace partita::test {

/// Counts the calls of NCCL, and lets a test answer them in its place. There is
/// one at a time.
class WrappedNccl {
public:
  using Api = runtime::nccl::Api;
  using Result = runtime::nccl::Result;

  explicit WrappedNccl(const Api &real);
  ~WrappedNccl() { current = nullptr; }

  Api api;
  runtime::nccl::Library library() const { return {&api, false, {}}; }

  /// Called before each call, with the name of the member of Api and how often
  /// it was called. What it returns is the call's result; nothing: NCCL is
  /// called.
  std::function<std::optional<Result>(const std::string &, int)> answer;

  std::map<std::string, int> allCalls() {
    std::lock_guard<std::mutex> lock(mutex);
    return called;
  }

private:
  template <auto Member> struct Wrap;
  template <typename Call> Result watch(const char *name, const Call &call) {
    const std::string member = name;
    int number;
    {
      std::lock_guard<std::mutex> lock(mutex);
      number = ++called[member];
    }
    std::optional<Result> given;
    if (answer)
      given = answer(member, number);
    return given ? *given : call();
  }

  static inline WrappedNccl *current = nullptr;
  const Api real;
  std::mutex mutex;
  std::map<std::string, int> called;
};

template <typename... Types,
          runtime::nccl::Result (*runtime::nccl::Api::*Member)(Types...)>
struct WrappedNccl::Wrap<Member> {
  static inline const char *name = nullptr;
  static Result call(Types... values) {
    return current->watch(name,
                          [&] { return (current->real.*Member)(values...); });
  }
};

inline WrappedNccl::WrappedNccl(const Api &real) : api(real), real(real) {
  current = this;
#define PARTITA_NCCL(MEMBER, NAME, TYPES)                                      \
  Wrap<&Api::MEMBER>::name = #MEMBER;                                          \
  api.MEMBER = Wrap<&Api::MEMBER>::call;
#include "runtime/comm/nccl/library/Functions.def"
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_NCCL_WRAPPEDNCCL_H
