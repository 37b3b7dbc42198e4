//===- ProfileTable.cpp - Where the time of a step goes -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/ProfileTable.h"

#include "tools/partita-run/measure/Benchmark.h"
#include "tools/partita-run/show/Stages.h"
#include "tools/partita-run/show/Waiting.h"

#include "runtime/base/Programs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace partita::run {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return percentile(values, 0.5);
}

/// Nanoseconds, by step.
using Times = std::map<int, double>;

double median(const Times &times) {
  std::vector<double> values;
  for (const auto &[step, ns] : times)
    values.push_back(ns);
  return median(std::move(values));
}

double least(const Times &times) {
  double result = 0;
  for (const auto &[step, ns] : times)
    result = result > 0 ? std::min(result, ns) : ns;
  return result;
}

/// What is not computed, by kind.
const char *const kPorts = "inputs, outputs";
const char *const kCollectives = "collectives";
const char *const kWaiting = "waiting";
const char *const kMoving = "moving bytes";

struct KindSum {
  Times times;
  int count = 0; ///< of all steps

  void add(int run, double ns) {
    times[run] += ns;
    ++count;
  }
};

/// The kind of an instruction: the library call's, or what the kernel does,
/// which stands in its name after its number ("k5_reduce").
std::string workKind(const Model &model, const runtime::ProfileEvent &event,
                     const abi::ProgramAction &entry) {
  const abi::Program &program = runtime::programOf(*model.plan, event.device);
  const abi::Instruction &instruction =
      runtime::at(runtime::at(program.units(), entry.subject).instructions(),
                  event.instruction);
  std::string kind = kindOf(model, instruction);
  if (!instruction.work_as_Dispatch())
    return kind;
  const size_t dash = kind.find('_');
  return "kernel " + (dash == std::string::npos ? kind : kind.substr(dash + 1));
}

} // namespace

ProfileTable::ProfileTable(const Model &model,
                           const std::vector<Profile::Event> &events,
                           const std::vector<double> &stepNs)
    : steps(int(stepNs.size())), step(median(stepNs)) {
  // Instruction -1 is the unit; counts are of all steps.
  std::map<std::tuple<int, int, int>, std::pair<Times, int>> work;
  std::map<std::pair<int, int>, std::pair<Times, int>> together;
  /// Receives and waits by device and channel: the waiting, and the rest.
  struct Received {
    Times waiting, moving;
    int count = 0;
  };
  std::map<std::pair<int, int>, Received> received;
  std::map<int, Times> units, ports, waiting, moving, collective, all;
  std::map<std::string, KindSum> sums;
  std::set<int> seen;
  const std::vector<int64_t> waits = findWaits(model, events);
  for (size_t at = 0; at < events.size(); ++at) {
    const Profile::Event &item = events[at];
    const double waited = double(waits[at]);
    const runtime::ProfileEvent &event = item.event;
    const abi::ProgramAction entry = entryOf(model, event);
    const double ns = double(event.end_ns - event.begin_ns);
    seen.insert(item.run);
    if (event.instruction < 0)
      all[event.device][item.run] += ns;
    if (entry.kind == abi::ActionKind::run) {
      auto &[times, count] =
          work[{event.device, entry.subject, event.instruction}];
      times[item.run] += ns;
      ++count;
      if (event.instruction < 0)
        units[event.device][item.run] += ns;
      else
        sums[workKind(model, event, entry)].add(item.run, ns);
    } else if (entry.kind == abi::ActionKind::load_input ||
               entry.kind == abi::ActionKind::store_output ||
               entry.kind == abi::ActionKind::examine) {
      ports[event.device][item.run] += ns;
      sums[kPorts].add(item.run, ns);
    } else if (abi::getInfo(entry.kind).subject ==
               abi::ActionSubject::collective) {
      auto &[times, count] = together[{event.device, entry.subject}];
      times[item.run] += ns - waited;
      count += entry.kind == abi::ActionKind::finish;
      collective[event.device][item.run] += ns - waited;
      waiting[event.device][item.run] += waited;
      sums[kCollectives].add(item.run, ns - waited);
      sums[kWaiting].add(item.run, waited);
    } else {
      waiting[event.device][item.run] += waited;
      moving[event.device][item.run] += ns - waited;
      sums[kWaiting].add(item.run, waited);
      sums[kMoving].add(item.run, ns - waited);
      if (entry.kind == abi::ActionKind::recv) {
        Received &sum = received[{event.device, entry.subject}];
        sum.waiting[item.run] += waited;
        sum.moving[item.run] += ns - waited;
        ++sum.count;
      }
    }
  }
  const int recorded = std::max(1, int(seen.size()));
  for (int d = 0; d < model.devices; ++d) {
    Device row{d,
               median(units[d]),
               median(ports[d]),
               median(waiting[d]),
               median(moving[d]),
               median(collective[d]),
               0};
    std::vector<double> shares;
    for (const auto &[run, ns] : all[d])
      if (run >= 0 && run < int(stepNs.size()) && stepNs[size_t(run)] > 0)
        shares.push_back(ns / stepNs[size_t(run)]);
    row.covered = median(std::move(shares));
    devices.push_back(row);
  }
  for (const auto &[key, value] : work) {
    const auto [d, u, i] = key;
    const abi::Unit &unit =
        runtime::at(runtime::programOf(*model.plan, d).units(), u);
    Work row;
    row.device = d;
    row.unit = runtime::text(unit.name());
    row.runs = value.second / recorded;
    row.ns = median(value.first);
    row.least = least(value.first);
    int64_t flops = 0, bytes = 0, predicted = 0;
    auto add = [&](const abi::Instruction &instruction) {
      flops += instruction.flops();
      bytes += instruction.bytes();
      predicted += instruction.duration_ns();
    };
    if (i < 0) {
      for (const abi::Instruction &each : runtime::each(unit.instructions()))
        add(each);
      predicted = unit.duration_ns();
    } else {
      const abi::Instruction &instruction = runtime::at(unit.instructions(), i);
      add(instruction);
      row.name = runtime::text(instruction.label());
      row.kind = kindOf(model, instruction);
      row.scopes = scopesOf(instruction);
    }
    row.predicted = double(predicted) * row.runs;
    if (row.ns > 0) {
      row.gflops = double(flops) * row.runs / row.ns;
      row.gbytes = double(bytes) * row.runs / row.ns;
    }
    (i < 0 ? this->units : instructions).push_back(row);
  }
  addModules();
  for (auto &[name, sum] : sums)
    kinds.push_back({name, sum.count / recorded, median(sum.times)});
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const Kind &a, const Kind &b) { return a.ns > b.ns; });
  for (const auto &[key, sum] : received) {
    const abi::Channel &channel =
        runtime::at(model.plan->channels(), key.second);
    Transfer row;
    row.device = key.first;
    row.from =
        model.mesh.device(channel.source(), model.mesh.position(key.first));
    row.value = runtime::text(channel.name());
    row.runs = sum.count / recorded;
    row.bytes = channel.bytes();
    row.waiting = median(sum.waiting);
    row.moving = median(sum.moving);
    row.predicted = double(channel.duration_ns()) * row.runs;
    transfers.push_back(row);
  }
  for (const auto &[key, value] : together) {
    const abi::Collective &described =
        runtime::at(model.plan->collectives(), key.second);
    Collective row;
    row.device = key.first;
    row.value = runtime::text(described.name());
    row.kind = model.collectiveText(described);
    row.runs = value.second / recorded;
    row.ns = median(value.first);
    row.least = least(value.first);
    row.predicted = double(described.duration_ns()) * row.runs;
    if (row.ns > 0)
      row.gbytes = double(runtime::sentBytes(*model.plan, described)) *
                   row.runs / row.ns;
    collectives.push_back(row);
  }
}

} // namespace partita::run
