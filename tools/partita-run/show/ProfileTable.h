//===- ProfileTable.h - Where the time of a step goes -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILETABLE_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILETABLE_H

#include "tools/partita-run/show/Profile.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace partita::run {

/// Medians over the recorded steps. Times are nanoseconds of one step, all its
/// micro-batches together, unless said otherwise.
struct ProfileTable {
  struct Device {
    int device = 0;
    double units = 0;      ///< in units
    double ports = 0;      ///< inputs loaded, outputs stored
    double transfer = 0;   ///< sends and receives, waiting for peers included
    double collective = 0; ///< the same of collectives
    /// Share of the step that these are.
    double covered = 0;
  };
  struct Work {
    int device = 0;
    std::string unit, name; ///< `name` empty: the unit as a whole
    std::string kind;
    int runs = 0;                  ///< a step
    double ns = 0, least = 0;      ///< median and least of all steps
    double gflops = 0, gbytes = 0; ///< a second
    double predicted = 0;
  };
  /// A collective on a device: its start and finish, waiting for others
  /// included.
  struct Collective {
    int device = 0;
    std::string value, kind;
    int runs = 0; ///< a step
    double ns = 0, least = 0;
    double gbytes = 0; ///< sent, a second
    double predicted = 0;
  };

  int steps = 0;
  double step = 0; ///< time of a step as its caller sees it
  std::vector<Device> devices;
  std::vector<Work> units, instructions; ///< in the plan's order
  std::vector<Collective> collectives;   ///< likewise

  ProfileTable(const Model &model, const std::vector<Profile::Event> &events,
               const std::vector<double> &stepNs);

  /// Three tables or four; instructions by time, no more than fit a few
  /// screens.
  std::string text(const Model &model) const;
  nlohmann::ordered_json json(const Model &model) const;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILETABLE_H
