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

/// Medians over the recorded steps. Times are nanoseconds per step, for all its
/// micro-batches together, unless said otherwise.
struct ProfileTable {
  struct Device {
    int device = 0;
    double units = 0;      ///< in units
    double ports = 0;      ///< inputs loaded, outputs stored
    double waiting = 0;    ///< for other devices (Waiting.h)
    double moving = 0;     ///< sends and receives, without waiting
    double collective = 0; ///< collectives, without waiting
    /// The share of the step that these times cover.
    double covered = 0;
  };
  /// What some work takes.
  struct Cost {
    int runs = 0;                ///< per step
    double ns = 0, least = 0;    ///< median and minimum of all steps
    double flops = 0, bytes = 0; ///< per step; of a collective, those sent
    double predicted = 0;

    double gflops() const { return ns > 0 ? flops / ns : 0; } ///< per second
    double gbytes() const { return ns > 0 ? bytes / ns : 0; }
    /// Adds all but the runs.
    void add(const Cost &other);
  };
  struct Work : Cost {
    int device = 0;
    std::string unit, name; ///< `name` empty: the whole unit
    std::string kind;
    std::vector<std::string> scopes; ///< modules of an instruction
  };
  /// All work of a module of the model and of those within it, on all devices
  /// together. Modules that differ in numbers alone, repeated layers, are one.
  struct Module : Cost {
    std::string name; ///< e.g. "encoder.layer.*.attention"
    int depth = 0;    ///< modules around it that have a row
  };
  /// All work of a kind, on all devices together. Kinds are calls of the
  /// library, kernels by what they do, moving bytes, and waiting.
  struct Kind {
    std::string name;
    int runs = 0; ///< per step
    double ns = 0;
  };
  /// The messages that a device receives on a channel.
  struct Transfer {
    int device = 0, from = 0;
    std::string value;
    int runs = 0;      ///< per step
    int64_t bytes = 0; ///< per run
    /// The time until the message was sent, and then until it was there.
    double waiting = 0, moving = 0;
    double predicted = 0; ///< of `moving`
  };
  /// A collective on a device. Its time is that of its start and finish,
  /// without waiting for other devices.
  struct Collective : Cost {
    int device = 0;
    std::string value, kind;
  };

  int steps = 0;
  double step = 0; ///< time of a step for its caller
  std::vector<Device> devices;
  std::vector<Kind> kinds;               ///< the longest first
  std::vector<Work> units, instructions; ///< in the plan's order
  /// A module before those within it, which are sorted by time; empty if the
  /// model says nothing of modules.
  std::vector<Module> modules;
  std::vector<Transfer> transfers;     ///< by receiver, in the plan's order
  std::vector<Collective> collectives; ///< in the plan's order

  ProfileTable(const Model &model, const std::vector<Profile::Event> &events,
               const std::vector<double> &stepNs);

  /// Several tables, with the stages first. Instructions are sorted by time;
  /// only `top` of them are shown, and of modules.
  std::string text(const Model &model, int top) const;
  nlohmann::ordered_json json(const Model &model) const;

private:
  void addModules();
  /// The share of the step, in percent.
  std::string share(double ns) const;
  /// The cells of a row, behind the first ones.
  std::vector<std::string> cells(std::vector<std::string> first,
                                 const Cost &cost) const;
  std::string modulesText(size_t shown) const;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILETABLE_H
