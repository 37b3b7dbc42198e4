//===- Metrics.cpp - What a server has done -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Metrics.h"

#include <algorithm>
#include <charconv>

namespace {

std::string number(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, std::end(digits), value).ptr};
}

void addHead(std::string &text, const std::string &name, const char *type,
             const char *help) {
  text +=
      "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

} // namespace

void Metrics::count(int status, double duration) {
  ++answers[status];
  seconds += duration;
  ++durations[size_t(
      std::lower_bound(kBounds.begin(), kBounds.end(), duration) -
      kBounds.begin())];
}

void Metrics::add(std::string &text, const std::string &name, const char *type,
                  const char *help, double value) {
  addHead(text, name, type, help);
  text += name + " " + number(value) + "\n";
}

std::string Metrics::text() const {
  std::string text;
  std::string name = "partita_http_requests_total";
  addHead(text, name, "counter", "Requests that were answered, by status.");
  for (const auto &[status, times] : answers)
    text += name + "{code=\"" + std::to_string(status) + "\"} " +
            std::to_string(times) + "\n";
  name = "partita_http_request_duration_seconds";
  addHead(text, name, "histogram",
          "From the first byte of a request until its answer is sent.");
  uint64_t all = 0;
  for (size_t i = 0; i < durations.size(); ++i) {
    all += durations[i];
    text += name + "_bucket{le=\"" +
            (i < kBounds.size() ? number(kBounds[i]) : "+Inf") + "\"} " +
            std::to_string(all) + "\n";
  }
  text += name + "_sum " + number(seconds) + "\n";
  text += name + "_count " + std::to_string(all) + "\n";
  add(text, "partita_http_requests_in_work", "gauge",
      "Requests that workers compute, or that wait for a worker.",
      double(in_work));
  add(text, "partita_http_held_bytes", "gauge",
      "Memory of requests that arrive and of answers that are sent.",
      double(held_bytes));
  add(text, "partita_http_connections", "gauge", "Connections that are open.",
      double(connections));
  add(text, "partita_http_connections_accepted_total", "counter",
      "Connections that were accepted.", double(connections_accepted));
  add(text, "partita_http_connections_cut_total", "counter",
      "Connections that were cut: past a deadline, or to make room.",
      double(connections_cut));
  add(text, "partita_http_received_bytes_total", "counter",
      "Bytes that clients have sent.", double(received_bytes));
  add(text, "partita_http_sent_bytes_total", "counter",
      "Bytes of the bodies of answers.", double(sent_bytes));
  return text;
}
