//===- Calls.h - What all functions of the C interface share ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CAPI_CALLS_H
#define PARTITA_RUNTIME_CAPI_CALLS_H

#include "runtime/base/Status.h"
#include "runtime/capi/partita.h"

#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace partita::capi {

using runtime::Status;

/// Keeps the text for partita_last_error.
partita_status done(const Status &status);

/// What `function` returns; an exception as an error.
template <typename Function> Status caught(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc &) {
    return Status::error("there is no memory left");
  } catch (const std::exception &error) {
    return Status::error(error.what());
  }
}

/// No exception leaves the library.
template <typename Function> partita_status guard(Function function) {
  return done(caught(function));
}

/// `function`, for an object that must be there. `nothing` is the error of one
/// that is not.
template <typename T, typename Function>
partita_status guardOf(const T *object, const char *nothing,
                       Function function) {
  return guard(
      [&]() -> Status { return object ? function() : Status::error(nothing); });
}

/// What `function` returns; without an object, `standard` and an error.
template <typename R, typename T, typename Function>
R askOf(const T *object, const char *nothing, R standard, Function function) {
  if (!object)
    return (void)guard([&] { return Status::error(nothing); }), standard;
  return function();
}

/// What a caller of an older or newer interface knows of a structure.
template <typename T>
Status readStruct(const T *given, T &known, const char *name) {
  if (given->size < sizeof(size_t) || given->size > sizeof(T))
    return Status::error(std::string(name) + ".size is " +
                         std::to_string(given->size) + ": set it to sizeof(" +
                         name + ")");
  std::memcpy(&known, given, given->size);
  return Status();
}

/// Fills in what the caller knows of a structure, all but its size.
template <typename T>
Status fillIn(T *place, std::type_identity_t<T> known, const char *name) {
  if (!place)
    return Status::error(std::string("there is no place for a ") + name);
  T given;
  PARTITA_TRY(readStruct(place, given, name));
  known.size = given.size;
  std::memcpy(place, &known, given.size);
  return Status();
}

/// The error of an index that is too large: of the `object`'s `count` `what`.
Status noneOf(const char *object, size_t count, const char *what,
              int64_t index);

/// The position of a name. `object` has the names, and each is a `what`.
Status findName(const char *object, const std::vector<const char *> &names,
                const char *name, const char *what, size_t *index);

/// Options, by their whole names.
Status checkSeconds(const char *option, double seconds);
Status checkThreads(const char *option, int threads);
Status checkLevel(const char *option, int level);

} // namespace partita::capi

#endif // PARTITA_RUNTIME_CAPI_CALLS_H
