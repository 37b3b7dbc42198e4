//===- Calls.cpp - What all functions of the C interface share ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/Calls.h"

namespace {
thread_local std::string last_error;
thread_local bool last_error_in_input = false;
} // namespace

namespace partita::capi {

partita_status done(const Status &status) {
  last_error_in_input = status.isInputError();
  if (status.ok())
    last_error.clear();
  else
    last_error = status.message();
  return status.ok() ? PARTITA_OK : PARTITA_ERROR;
}

Status noneOf(const char *object, size_t count, const char *what,
              int64_t index) {
  return Status::error(std::string("the ") + object + " has " +
                       std::to_string(count) + " " + what +
                       ": there is none of index " + std::to_string(index));
}

Status findName(const char *object, const std::vector<const char *> &names,
                const char *name, const char *what, size_t *index) {
  if (!index)
    return Status::error("there is no place for the index");
  std::string known;
  for (size_t i = 0; i < names.size(); ++i) {
    if (name && std::strcmp(names[i], name) == 0) {
      *index = i;
      return Status();
    }
    known += std::string(i ? ", '" : " '") + names[i] + "'";
  }
  return Status::error(std::string("the ") + object + " has no " + what + " '" +
                       (name ? name : "") + "'; it has" +
                       (known.empty() ? " none" : known));
}

Status describe(const char *object, const std::vector<PortInfo> &ports,
                size_t index, const char *what, partita_port *place) {
  if (index >= ports.size())
    return noneOf(object, ports.size(), what, static_cast<int64_t>(index));
  const PortInfo &info = ports[index];
  return fillIn(place,
                {0, info.port.name.c_str(),
                 static_cast<partita_type>(info.port.dtype),
                 static_cast<int>(info.shape.size()), info.shape.data(),
                 info.port.batchAxis, info.bytes, info.dimensions.data(),
                 info.port.whole.empty() ? nullptr : info.port.whole.c_str(),
                 info.extra.data()},
                "partita_port");
}

Status find(const char *object, const std::vector<PortInfo> &ports,
            const char *name, const char *what, size_t *index) {
  std::vector<const char *> names;
  for (const PortInfo &info : ports)
    names.push_back(info.port.name.c_str());
  return findName(object, names, name, what, index);
}

Status checkSeconds(const std::string &option, double seconds) {
  constexpr double kLongest = 1e6;
  if (seconds >= 0 && seconds <= kLongest)
    return Status();
  return Status::error(option + " is " + std::to_string(seconds) +
                       ": give seconds from 0 to 1000000");
}

Status checkThreads(const std::string &option, int threads) {
  if (threads >= 0)
    return Status();
  return Status::error(option + " is " + std::to_string(threads) +
                       ": give cores per device, or 0 for the machine's, "
                       "divided by the devices");
}

Status checkLevel(const std::string &option, int level) {
  if (level == 0 || level == 3 || level == 4)
    return Status();
  return Status::error(option + " is " + std::to_string(level) +
                       ": give 3, 4, or 0 for the best there is");
}

} // namespace partita::capi

extern "C" {

const char *partita_last_error(void) { return last_error.c_str(); }

int partita_last_error_in_input(void) { return last_error_in_input; }
}
