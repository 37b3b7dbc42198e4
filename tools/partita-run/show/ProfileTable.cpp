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

/// How long some work took, together in each step.
struct Sum {
  Times times;
  int count = 0; ///< of all steps

  void add(int run, double ns, bool counts = true) {
    times[run] += ns;
    count += counts;
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
  // Instruction -1 is the unit.
  std::map<std::tuple<int, int, int>, Sum> work;
  std::map<std::pair<int, int>, Sum> together;
  /// Receives by device and channel: the waiting, and the rest.
  struct Received {
    Sum waiting, moving;
  };
  std::map<std::pair<int, int>, Received> received;
  std::map<int, Times> units, ports, waiting, moving, collective, all;
  std::map<std::string, Sum> sums;
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
      work[{event.device, entry.subject, event.instruction}].add(item.run, ns);
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
      together[{event.device, entry.subject}].add(
          item.run, ns - waited, entry.kind == abi::ActionKind::finish);
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
        sum.waiting.add(item.run, waited);
        sum.moving.add(item.run, ns - waited);
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
  auto costOf = [&](const Sum &sum, int64_t flops, int64_t bytes,
                    int64_t predicted) {
    const int runs = sum.count / recorded;
    return Cost{runs,
                median(sum.times),
                least(sum.times),
                double(flops) * runs,
                double(bytes) * runs,
                double(predicted) * runs};
  };
  for (const auto &[key, sum] : work) {
    const auto [d, u, i] = key;
    const abi::Unit &unit =
        runtime::at(runtime::programOf(*model.plan, d).units(), u);
    const std::string name = runtime::text(unit.name());
    if (i < 0) {
      int64_t flops = 0, bytes = 0;
      for (const abi::Instruction &each : runtime::each(unit.instructions())) {
        flops += each.flops();
        bytes += each.bytes();
      }
      this->units.push_back(
          {costOf(sum, flops, bytes, unit.duration_ns()), d, name});
      continue;
    }
    const abi::Instruction &each = runtime::at(unit.instructions(), i);
    instructions.push_back(
        {costOf(sum, each.flops(), each.bytes(), each.duration_ns()), d, name,
         runtime::text(each.label()), kindOf(model, each), scopesOf(each)});
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
    row.runs = sum.moving.count / recorded;
    row.bytes = channel.bytes();
    row.waiting = median(sum.waiting.times);
    row.moving = median(sum.moving.times);
    row.predicted = double(channel.duration_ns()) * row.runs;
    transfers.push_back(row);
  }
  for (const auto &[key, sum] : together) {
    const abi::Collective &each =
        runtime::at(model.plan->collectives(), key.second);
    collectives.push_back({costOf(sum, 0, runtime::sentBytes(*model.plan, each),
                                  each.duration_ns()),
                           key.first, runtime::text(each.name()),
                           model.collectiveText(each)});
  }
}

} // namespace partita::run
