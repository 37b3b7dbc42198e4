//===- Schedule.cpp - Order of units on every device ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Schedule.h"

#include <algorithm>
#include <map>

namespace partita::pipeline {

bool FillDrain::isBefore(ScheduledUnit a, ScheduledUnit b) const {
  return a.microBatch != b.microBatch ? a.microBatch < b.microBatch
                                      : a.stage > b.stage;
}

bool Sharded::isBefore(ScheduledUnit a, ScheduledUnit b) const {
  return a.microBatch != b.microBatch ? a.microBatch < b.microBatch
                                      : a.stage < b.stage;
}

namespace {

using Step = ScheduleStep;
using Kind = ScheduleStep::Kind;

/// The order of all units, with their simulated times.
class Simulation {
public:
  Simulation(const ScheduleProblem &problem, const UnitOrder &order,
             const std::vector<bool> &borrowed)
      : problem(problem), order(order), borrowed(borrowed),
        reads(problem.stages.size()), sends(problem.stages.size()),
        receivers(problem.values.size()), next(problem.stages.size(), 0),
        deviceFree(problem.devices, 0), busy(problem.devices, 0),
        begin(problem.stages.size()), work(problem.stages.size()),
        end(problem.stages.size()) {
    for (int v = 0; v < static_cast<int>(problem.values.size()); ++v) {
      const ScheduleValue &value = problem.values[v];
      for (int consumer : value.consumers)
        reads[consumer].push_back(v);
      if (value.producer < 0)
        continue;
      sends[value.producer].push_back(v);
      std::map<int, std::vector<Reader>> byDevice;
      for (size_t i = 0; i < value.consumers.size(); ++i)
        if (int stage = value.consumers[i];
            deviceOf(stage) != deviceOf(value.producer))
          byDevice[deviceOf(stage)].push_back(
              {stage, i < value.readNs.size() ? value.readNs[i]
                                              : problem.stages[stage].ns});
      for (auto &entry : byDevice)
        receivers[v].push_back(std::move(entry.second));
    }
  }

  std::vector<ScheduledUnit> run() {
    std::vector<ScheduledUnit> units;
    size_t count = problem.stages.size() * problem.microBatches;
    while (units.size() < count) {
      ScheduledUnit unit = choose();
      commit(unit);
      units.push_back(unit);
    }
    return units;
  }

  double finish() const {
    return *std::max_element(deviceFree.begin(), deviceFree.end());
  }

  double bubble() const {
    double work = 0;
    int devices = 0;
    for (double ns : busy) {
      work += ns;
      devices += ns > 0;
    }
    double room = finish() * devices;
    return room > 0 ? 1 - work / room : 0;
  }

private:
  /// A stage on another device that reads a value, and how long it does.
  struct Reader {
    int stage;
    double ns;
  };

  int deviceOf(int stage) const { return problem.stages[stage].device; }

  /// When the unit's operands are there and its buffers free, or -1 if a unit
  /// that decides that is not yet placed.
  double earliest(ScheduledUnit unit) const {
    double at = 0;
    for (int v : reads[unit.stage]) {
      int producer = problem.values[v].producer;
      if (producer < 0 || producer == unit.stage)
        continue;
      if (next[producer] <= unit.microBatch)
        return -1;
      at = std::max(at, end[producer][unit.microBatch]);
    }
    int sent = unit.microBatch - kSendBuffers;
    if (sent < 0)
      return at;
    for (int v : sends[unit.stage])
      for (const std::vector<Reader> &readers : receivers[v]) {
        double taken = borrowed[v] ? whenReleased(readers, sent)
                                   : whenCopied(readers, sent);
        if (taken < 0)
          return -1;
        at = std::max(at, taken);
      }
    return at;
  }

  /// By the first of them; -1 if none is placed yet.
  double whenCopied(const std::vector<Reader> &readers, int microBatch) const {
    double taken = -1;
    for (const Reader &reader : readers)
      if (next[reader.stage] > microBatch) {
        double at = begin[reader.stage][microBatch];
        taken = taken < 0 ? at : std::min(taken, at);
      }
    return taken;
  }

  /// By the last of them; -1 if one is not placed yet.
  double whenReleased(const std::vector<Reader> &readers,
                      int microBatch) const {
    double taken = 0;
    for (const Reader &reader : readers) {
      if (next[reader.stage] <= microBatch)
        return -1;
      taken = std::max(taken, work[reader.stage][microBatch] + reader.ns);
    }
    return taken;
  }

  /// The unit that begins first; at the same time on one device, and among
  /// devices if they exclude each other, the one the order puts first.
  ScheduledUnit choose() const {
    ScheduledUnit best{-1, -1};
    double bestAt = 0;
    for (int s = 0; s < static_cast<int>(problem.stages.size()); ++s) {
      ScheduledUnit unit{s, next[s]};
      if (unit.microBatch >= problem.microBatches)
        continue;
      double at = earliest(unit);
      if (at < 0)
        continue;
      at = std::max(at, deviceFree[deviceOf(s)]);
      bool together = order.isExclusive() ||
                      (best.stage >= 0 && deviceOf(s) == deviceOf(best.stage));
      bool better = best.stage < 0 ||
                    (order.isExclusive() ? order.isBefore(unit, best)
                     : at != bestAt ? at < bestAt
                                    : together && order.isBefore(unit, best));
      if (better) {
        best = unit;
        bestAt = at;
      }
    }
    return best;
  }

  void commit(ScheduledUnit unit) {
    int device = deviceOf(unit.stage);
    double at = std::max(earliest(unit), deviceFree[device]);
    if (order.isExclusive())
      at = std::max(at, lastEnd);
    double ns = problem.stages[unit.stage].ns;
    for (int v : reads[unit.stage]) { // the receiver copies
      const ScheduleValue &value = problem.values[v];
      if (value.producer >= 0 && deviceOf(value.producer) != device &&
          isFirstReader(v, unit))
        ns += borrowed[v] ? value.borrowNs : value.transferNs;
    }
    begin[unit.stage].push_back(at);
    work[unit.stage].push_back(at + ns - problem.stages[unit.stage].ns);
    end[unit.stage].push_back(at + ns);
    deviceFree[device] = lastEnd = at + ns;
    busy[device] += ns;
    ++next[unit.stage];
  }

  bool isFirstReader(int v, ScheduledUnit unit) const {
    for (int consumer : problem.values[v].consumers)
      if (consumer != unit.stage &&
          deviceOf(consumer) == deviceOf(unit.stage) &&
          next[consumer] > unit.microBatch)
        return false;
    return true;
  }

  const ScheduleProblem &problem;
  const UnitOrder &order;
  const std::vector<bool> &borrowed;
  std::vector<std::vector<int>> reads, sends;              // values, by stage
  std::vector<std::vector<std::vector<Reader>>> receivers; // by value, device
  std::vector<int> next;                                   // by stage
  std::vector<double> deviceFree, busy;
  // By stage and micro-batch; work begins when the operands are there.
  std::vector<std::vector<double>> begin, work, end;
  double lastEnd = 0;
};

/// The programs that follow from an order of units.
class ProgramBuilder {
public:
  ProgramBuilder(const ScheduleProblem &problem, Schedule &schedule)
      : problem(problem), schedule(schedule) {
    schedule.programs.resize(problem.devices);
    reads.resize(problem.stages.size());
    makes.resize(problem.stages.size());
    channelsOf.resize(problem.values.size());
    for (int v = 0; v < static_cast<int>(problem.values.size()); ++v) {
      const ScheduleValue &value = problem.values[v];
      // An input that is an output as it stands leaves with its first reader.
      int owner = value.producer >= 0 ? value.producer : value.consumers[0];
      makes[owner].push_back(v);
      for (int consumer : value.consumers)
        if (consumer != value.producer)
          reads[consumer].push_back(v);
      if (value.producer < 0)
        continue;
      std::map<int, int> targets; // device -> first reader
      for (int consumer : value.consumers)
        if (deviceOf(consumer) != deviceOf(owner)) {
          targets.emplace(deviceOf(consumer), consumer);
          ++readers[{v, deviceOf(consumer)}];
        }
      for (auto [device, consumer] : targets) {
        channelsOf[v].push_back(schedule.channels.size());
        schedule.channels.push_back(
            {v, deviceOf(owner), device, owner, consumer});
      }
    }
    held.resize(problem.devices);
    pending.resize(problem.devices);
  }

  void build(const std::vector<ScheduledUnit> &units, bool tokens) {
    for (size_t i = 0; i < units.size(); ++i) {
      if (tokens && i > 0)
        passToken(units[i - 1], units[i]);
      addUnit(units[i]);
    }
    for (int d = 0; d < problem.devices; ++d)
      for (Step wait : pending[d])
        schedule.programs[d].push_back(wait);
  }

private:
  int deviceOf(int stage) const { return problem.stages[stage].device; }

  void addUnit(ScheduledUnit unit) {
    int device = deviceOf(unit.stage), m = unit.microBatch;
    std::vector<Step> &program = schedule.programs[device];
    // The buffer that this unit writes was last read by these sends.
    std::erase_if(pending[device], [&](const Step &wait) {
      bool due = wait.value >= 0 &&
                 problem.values[wait.value].producer == unit.stage &&
                 !problem.values[wait.value].isConstant &&
                 wait.microBatch <= m - kSendBuffers;
      if (due)
        program.push_back(wait);
      return due;
    });
    for (int v : reads[unit.stage])
      bring(v, device, m);
    Step run{Kind::run, m};
    run.stage = unit.stage;
    program.push_back(run);
    for (int v : reads[unit.stage])
      giveBack(v, device, m);
    for (int v : makes[unit.stage])
      hand(v, device, m);
  }

  /// Brings an operand to the device, unless it is there.
  void bring(int v, int device, int m) {
    const ScheduleValue &value = problem.values[v];
    if (value.producer >= 0 && deviceOf(value.producer) == device)
      return;
    if (!held[device].emplace(std::pair(v, m), 0).second)
      return;
    Step step{value.producer < 0 ? Kind::loadInput : Kind::recv, m};
    step.value = v;
    if (value.producer < 0)
      step.port = value.input;
    step.channel = channelTo(v, device);
    schedule.programs[device].push_back(step);
  }

  /// After the last of the device's stages that read it.
  void giveBack(int v, int device, int m) {
    auto count = readers.find({v, device});
    if (count == readers.end() || !schedule.borrowed[v] ||
        ++held[device].at({v, m}) < count->second)
      return;
    Step step{Kind::release, m};
    step.value = v;
    step.channel = channelTo(v, device);
    schedule.programs[device].push_back(step);
  }

  int channelTo(int v, int device) const {
    for (int channel : channelsOf[v])
      if (schedule.channels[channel].target == device)
        return channel;
    return -1;
  }

  /// Sends and stores a result.
  void hand(int v, int device, int m) {
    std::vector<Step> &program = schedule.programs[device];
    for (int channel : channelsOf[v]) {
      Step send{Kind::send, m};
      send.value = v;
      send.channel = channel;
      program.push_back(send);
      send.kind = Kind::wait;
      pending[device].push_back(send);
    }
    for (int output : problem.values[v].outputs) {
      Step store{Kind::storeOutput, m};
      store.value = v;
      store.port = output;
      program.push_back(store);
    }
  }

  /// The next unit's device begins when the last one's has ended, by a value
  /// that goes that way, or else by a token. A token belongs to the later
  /// unit's micro-batch: if that is absent from a step, so is the token.
  void passToken(ScheduledUnit last, ScheduledUnit unit) {
    int source = deviceOf(last.stage), target = deviceOf(unit.stage);
    if (source == target)
      return;
    if (last.microBatch == unit.microBatch)
      for (int v : makes[last.stage])
        for (int channel : channelsOf[v])
          if (schedule.channels[channel].target == target &&
              !held[target].count({v, unit.microBatch}) &&
              std::count(reads[unit.stage].begin(), reads[unit.stage].end(), v))
            return;
    auto [it, isNew] = tokens.emplace(std::pair(last.stage, unit.stage),
                                      schedule.channels.size());
    if (isNew)
      schedule.channels.push_back({-1, source, target, last.stage, unit.stage});
    Step step{Kind::send, unit.microBatch};
    step.channel = it->second;
    schedule.programs[source].push_back(step);
    step.kind = Kind::recv;
    schedule.programs[target].push_back(step);
    step.kind = Kind::wait;
    pending[source].push_back(step);
  }

  const ScheduleProblem &problem;
  Schedule &schedule;
  std::vector<std::vector<int>> reads, makes, channelsOf;
  std::vector<std::map<std::pair<int, int>, int>>
      held; // (value, m), by device: stages that have read it
  std::map<std::pair<int, int>, int> readers; // (value, device) -> stages
  std::vector<std::vector<Step>> pending;     // waits, by device
  std::map<std::pair<int, int>, int> tokens;  // (stage, stage) -> channel
};

} // namespace

/// All values if that makes the step no longer; else those of which each does
/// not.
static std::vector<bool> chooseBorrowed(const ScheduleProblem &problem,
                                        const UnitOrder &order) {
  auto finish = [&](const std::vector<bool> &borrowed) {
    Simulation simulation(problem, order, borrowed);
    simulation.run();
    return simulation.finish();
  };
  std::vector<bool> all(problem.values.size(), true),
      chosen(problem.values.size(), false);
  double least = finish(chosen);
  if (finish(all) <= least)
    return all;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].producer < 0)
      continue;
    chosen[v] = true;
    double ns = finish(chosen);
    chosen[v] = ns <= least;
    least = std::min(least, ns);
  }
  return chosen;
}

Schedule buildSchedule(const ScheduleProblem &problem, const UnitOrder &order) {
  Schedule schedule;
  schedule.borrowed = chooseBorrowed(problem, order);
  Simulation simulation(problem, order, schedule.borrowed);
  std::vector<ScheduledUnit> units = simulation.run();
  ProgramBuilder(problem, schedule).build(units, order.isExclusive());
  schedule.stepNs = simulation.finish();
  schedule.bubble = simulation.bubble();
  return schedule;
}

} // namespace partita::pipeline
