//===- Metrics.h - What a server has done -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLES_EMBED_SERVE_METRICS_H
#define EXAMPLES_EMBED_SERVE_METRICS_H

#include <array>
#include <cstdint>
#include <map>
#include <string>

/// Only the server's thread uses it.
class Metrics {
public:
  /// Counts an answer. `seconds` begin with the first byte of its request.
  void count(int status, double seconds);
  /// In Prometheus' text format.
  std::string text() const;

  /// Adds a figure to a text. `type`: "counter" or "gauge".
  static void add(std::string &text, const std::string &name, const char *type,
                  const char *help, double value);

  uint64_t connections_accepted = 0, connections_cut = 0;
  uint64_t received_bytes = 0, sent_bytes = 0;
  size_t connections = 0, in_work = 0, held_bytes = 0; ///< now

private:
  static constexpr std::array<double, 13> kBounds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  std::map<int, uint64_t> answers; ///< by status
  std::array<uint64_t, kBounds.size() + 1> durations = {};
  double seconds = 0; ///< of all answers
};

#endif // EXAMPLES_EMBED_SERVE_METRICS_H
