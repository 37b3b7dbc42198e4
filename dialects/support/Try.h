//===- Try.h - Failures are passed on ---------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What fails has said why, in a diagnostic. The one who called it passes the
// failure on:
//
//   PARTITA_TRY(checkNode(node));
//   Shape shape = PARTITA_TRY(n.constantInts(1, "shape"));
//   Value sum = PARTITA_TRY(n.add(x, y));
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_SUPPORT_TRY_H
#define PARTITA_DIALECTS_SUPPORT_TRY_H

#include "mlir/IR/OpDefinition.h"

namespace partita::tried {

template <typename T> bool isFailure(const T &tried) {
  if constexpr (requires { mlir::failed(tried); })
    return mlir::failed(tried);
  else
    return !tried;
}

inline void valueOf(mlir::LogicalResult) {}
template <typename T> T valueOf(mlir::FailureOr<T> &&result) {
  return std::move(*result);
}
template <typename T> T valueOf(T &&value) { return std::move(value); }

/// What is null when it was not made.
template <typename T>
concept Nullable =
    std::is_pointer_v<T> || std::derived_from<T, mlir::Value> ||
    std::derived_from<T, mlir::Type> || std::derived_from<T, mlir::Attribute> ||
    std::derived_from<T, mlir::OpState>;

/// What a function returns when a call in it failed.
struct Failure {
  operator mlir::LogicalResult() const { return mlir::failure(); }
  template <typename T> operator mlir::FailureOr<T>() const {
    return mlir::failure();
  }
  template <Nullable T> operator T() const { return T(nullptr); }
  /// It would hold null, and be taken for a success.
  template <typename T> operator std::optional<T>() const = delete;
};

} // namespace partita::tried

/// The value of a FailureOr, or what a call returns that is null when it
/// fails, or nothing of a LogicalResult. A failure is returned from the
/// function.
///
/// It is a statement expression, as GCC and Clang have them.
#define PARTITA_TRY(...)                                                       \
  ({                                                                           \
    auto partita_tried = (__VA_ARGS__);                                        \
    if (partita::tried::isFailure(partita_tried))                              \
      return partita::tried::Failure();                                        \
    partita::tried::valueOf(std::move(partita_tried));                         \
  })

#endif // PARTITA_DIALECTS_SUPPORT_TRY_H
