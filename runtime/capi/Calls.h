//===- Calls.h - What all functions of the C interface share ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CAPI_CALLS_H
#define PARTITA_RUNTIME_CAPI_CALLS_H

#include "runtime/base/Cores.h"
#include "runtime/base/Elements.h"
#include "runtime/base/Status.h"
#include "runtime/capi/partita.h"
#include "runtime/feed/Model.h"
#include "runtime/session/Session.h"

#include <algorithm>
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

/// An error if there is no object.
inline Status needs(const partita_model *model) {
  return model ? Status()
               : Status::error("there is no model: give one that partita_open "
                               "made");
}
inline Status needs(const partita_trainer *trainer) {
  return trainer ? Status()
                 : Status::error("there is no trainer: give one that "
                                 "partita_trainer_open made");
}

/// `function`, for an object that must be there.
template <typename T, typename Function>
partita_status guardOf(const T *object, Function function) {
  return guard([&]() -> Status {
    PARTITA_TRY(needs(object));
    return function();
  });
}

/// What `function` returns; without an object, `nothing` and an error.
template <typename R, typename T, typename Function>
R ask(const T *object, R nothing, Function function) {
  if (!object)
    return (void)guard([&] { return needs(object); }), nothing;
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

/// A port with what partita_port points to.
struct PortInfo {
  feed::Port port;
  std::vector<int64_t> shape;  ///< of one sample
  std::vector<int> dimensions; ///< by axis
  std::vector<int64_t> extra;  ///< entries besides the dimension's, likewise
  int64_t bytes = 0;

  /// `entries`: of one sample on the batch axis.
  PortInfo(const feed::Port &port, int64_t entries, std::vector<int> dimensions,
           std::vector<int64_t> extra)
      : port(port), shape(port.shape), dimensions(std::move(dimensions)),
        extra(std::move(extra)), bytes(port.bytes()) {
    if (port.batchAxis < 0)
      return;
    int64_t &axis = shape[static_cast<size_t>(port.batchAxis)];
    bytes = bytes / axis * entries;
    axis = entries;
  }

  /// Of so many samples, and of these sizes of dimensions (null: the largest).
  std::vector<int64_t> shapeOf(int64_t samples, const int64_t *sizes) const {
    std::vector<int64_t> all = shape;
    for (size_t axis = 0; sizes && axis < all.size(); ++axis)
      if (dimensions[axis] >= 0)
        all[axis] = sizes[dimensions[axis]] + extra[axis];
    if (port.batchAxis >= 0)
      all[static_cast<size_t>(port.batchAxis)] *= samples;
    return all;
  }
};

/// Of the `object`'s ports, each of which is a `what`.
Status describe(const char *object, const std::vector<PortInfo> &ports,
                size_t index, const char *what, partita_port *place);
Status find(const char *object, const std::vector<PortInfo> &ports,
            const char *name, const char *what, size_t *index);

/// Options, by their whole names.
Status checkSeconds(const std::string &option, double seconds);
Status checkThreads(const std::string &option, int threads);
Status checkLevel(const std::string &option, int level);

/// What partita_options and partita_trainer_options have in common; `name` is
/// that of the structure.
template <typename Options>
Status checkOptions(const Options &options, const std::string &name) {
  PARTITA_TRY(checkSeconds(name + ".timeout_s", options.timeout_s));
  if constexpr (requires { options.batch_delay_s; })
    PARTITA_TRY(checkSeconds(name + ".batch_delay_s", options.batch_delay_s));
  PARTITA_TRY(checkThreads(name + ".threads", options.threads));
  return checkLevel(name + ".cpu_level", options.cpu_level);
}

template <typename Options>
runtime::SessionOptions sessionOf(const Options &options,
                                  const abi::Plan &plan) {
  runtime::SessionOptions session;
  const int devices = static_cast<int>(runtime::length(plan.devices()));
  const int cores = static_cast<int>(runtime::availableCores().size());
  session.threads_per_device = options.threads > 0
                                   ? options.threads
                                   : std::max(1, cores / std::max(1, devices));
  session.pin = options.pin != 0;
  session.trust_weights = options.trust_weights != 0;
  session.timeout_s = options.timeout_s;
  if (options.cpu_level != 0)
    session.max_cpu_level = options.cpu_level;
  return session;
}

} // namespace partita::capi

#endif // PARTITA_RUNTIME_CAPI_CALLS_H
