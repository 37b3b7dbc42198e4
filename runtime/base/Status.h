//===- Status.h - Success or a message in words -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_STATUS_H
#define PARTITA_RUNTIME_BASE_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace partita::runtime {

/// Success, or a message that says what is wrong, where, and what to do. A
/// success allocates nothing, so Status may be used within a step.
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status error(std::string message) {
    Status status;
    status.text = std::move(message);
    return status;
  }
  /// An error whose reason is a value in an input. Whoever gave the input can
  /// give another one; nothing else is wrong.
  static Status inputError(std::string message) {
    Status status = error(std::move(message));
    status.input = true;
    return status;
  }
  bool ok() const { return !text.has_value(); }
  bool isInputError() const { return input; }
  /// Empty on success.
  std::string message() const { return text.value_or(std::string()); }

private:
  std::optional<std::string> text;
  bool input = false;
};

/// A value, or a Status that is an error.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : content(std::move(value)) {}
  Expected(Status status) : failure(std::move(status)) {}
  bool ok() const { return content.has_value(); }
  explicit operator bool() const { return ok(); }
  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }
  const Status &status() const { return failure; }

private:
  std::optional<T> content;
  Status failure;
};

/// An error with `before` in front of its message, and no input error any
/// more. Not for what runs within a step: the text is made in any case.
inline Status within(const std::string &before, const Status &status) {
  return status.ok() ? Status() : Status::error(before + status.message());
}
template <typename T>
Expected<T> within(const std::string &before, Expected<T> made) {
  if (!made)
    return within(before, made.status());
  return made;
}

namespace tried {
inline const Status &statusOf(const Status &status) { return status; }
template <typename T> const Status &statusOf(const Expected<T> &expected) {
  return expected.status();
}
inline void valueOf(Status &&) {}
template <typename T> T valueOf(Expected<T> &&expected) {
  return std::move(*expected);
}
} // namespace tried

} // namespace partita::runtime

/// The value of an Expected that a call returns, or nothing of a Status; an
/// error is returned from the function, which itself returns a Status or an
/// Expected:
///
///   PARTITA_TRY(file.write(header));
///   auto plan = PARTITA_TRY(readPlan(file));
///
/// It is a statement expression, as GCC and Clang have them.
#define PARTITA_TRY(...)                                                       \
  ({                                                                           \
    auto partita_tried = (__VA_ARGS__);                                        \
    if (!partita_tried.ok())                                                   \
      return partita::runtime::tried::statusOf(partita_tried);                 \
    partita::runtime::tried::valueOf(std::move(partita_tried));                \
  })

#endif // PARTITA_RUNTIME_BASE_STATUS_H
