//===- Programs.cpp - The programs that follow from orders ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Schedule.h"

#include <algorithm>
#include <deque>
#include <map>

namespace partita::schedule {
namespace {

using Action = ScheduleAction;
using Kind = ScheduleAction::Kind;

class ProgramBuilder {
public:
  ProgramBuilder(const ScheduleProblem &problem, Schedule &schedule)
      : problem(problem), schedule(schedule), reads(problem.stages.size()),
        makes(problem.stages.size()), channelsOf(problem.values.size()),
        held(problem.devices), sent(problem.devices),
        unwaited(problem.values.size()), made(problem.values.size()) {
    schedule.programs.resize(problem.devices);
    for (int v = 0; v < static_cast<int>(problem.values.size()); ++v)
      addValue(v);
  }

  void build(const UnitOrders &orders) {
    const std::vector<ScheduledUnit> &token = orders.token;
    sendsEarly = token.empty();
    for (size_t i = 0; i < token.size(); ++i) {
      if (i > 0)
        passToken(token[i - 1], token[i]);
      addUnit(token[i]);
    }
    if (token.empty())
      for (const std::vector<ScheduledUnit> &order : orders.ofDevice)
        for (ScheduledUnit unit : order)
          addUnit(unit);
    for (int d = 0; d < problem.devices; ++d)
      for (const Sent &one : sent[d])
        if (!one.isWaitedFor)
          schedule.programs[d].push_back(one.wait);
  }

private:
  /// A send, and whether its wait already stands in the program.
  struct Sent {
    Action wait;
    int count = 0; ///< of the value before it
    bool isWaitedFor = false;
  };

  int deviceOf(int stage) const { return problem.stages[stage].device; }

  void addValue(int v) {
    const ScheduleValue &value = problem.values[v];
    // An input that is an output as it stands leaves with its first reader.
    int owner = value.producer >= 0 ? value.producer : value.consumers[0];
    makes[owner].push_back(v);
    for (int consumer : value.consumers)
      if (consumer != value.producer) {
        reads[consumer].push_back(v);
        readers[{v, deviceOf(consumer)}] += problem.countReads(v, consumer);
      }
    if (value.producer < 0)
      return;
    std::map<int, int> targets; // device -> first reader
    for (int consumer : value.consumers)
      if (deviceOf(consumer) != deviceOf(owner))
        targets.emplace(deviceOf(consumer), consumer);
    for (auto [device, consumer] : targets) {
      channelsOf[v].push_back(schedule.channels.size());
      channelTo[{v, device}] = schedule.channels.size();
      schedule.channels.push_back(
          {v, deviceOf(owner), device, owner, consumer});
    }
  }

  void addUnit(ScheduledUnit unit) {
    int device = deviceOf(unit.stage), m = unit.microBatch;
    std::vector<Action> &program = schedule.programs[device];
    for (int v : makes[unit.stage])
      awaitBuffer(v, device);
    for (int v : reads[unit.stage])
      bring(v, device, problem.versionOf(v, m));
    Action run{Kind::run, m};
    run.stage = unit.stage;
    const bool isSplit = sendsEarly && problem.stages[unit.stage].lateNs > 0;
    if (isSplit) {
      run.part = Action::Part::early;
      program.push_back(run);
      for (int v : makes[unit.stage])
        send(v, device, m);
      run.part = Action::Part::late;
    }
    program.push_back(run);
    for (int v : reads[unit.stage])
      giveBack(v, device, problem.versionOf(v, m));
    for (int v : makes[unit.stage]) {
      if (!isSplit)
        send(v, device, m);
      store(v, device, m);
    }
  }

  /// The buffer that a unit writes was last read by sends of earlier
  /// micro-batches.
  void awaitBuffer(int v, int device) {
    if (problem.values[v].isConstant || problem.values[v].producer < 0)
      return;
    for (std::deque<size_t> &queue = unwaited[v]; !queue.empty();
         queue.pop_front()) {
      Sent &one = sent[device][queue.front()];
      if (one.count > made[v] - schedule.transfers.buffers[v])
        return;
      schedule.programs[device].push_back(one.wait);
      one.isWaitedFor = true;
    }
  }

  /// Brings an operand to the device, unless it is there.
  void bring(int v, int device, int m) {
    const ScheduleValue &value = problem.values[v];
    if (value.producer >= 0 && deviceOf(value.producer) == device)
      return;
    if (!held[device].emplace(std::pair(v, m), 0).second)
      return;
    Action action{value.producer < 0 ? Kind::load_input : Kind::recv, m};
    action.value = v;
    if (value.producer < 0)
      action.port = value.input;
    else
      action.channel = channelTo.at({v, device});
    schedule.programs[device].push_back(action);
  }

  /// After the last of the device's units that read it.
  void giveBack(int v, int device, int m) {
    auto it = held[device].find({v, m});
    if (it == held[device].end() || ++it->second < readers.at({v, device}))
      return;
    held[device].erase(it);
    if (problem.values[v].producer < 0 || !schedule.transfers.borrowed[v])
      return;
    Action action{Kind::release, m};
    action.value = v;
    action.channel = channelTo.at({v, device});
    schedule.programs[device].push_back(action);
  }

  void send(int v, int device, int m) {
    std::vector<Action> &program = schedule.programs[device];
    for (int channel : channelsOf[v]) {
      Action send{Kind::send, m};
      send.value = v;
      send.channel = channel;
      program.push_back(send);
      send.kind = Kind::wait;
      unwaited[v].push_back(sent[device].size());
      sent[device].push_back({send, made[v]});
    }
    ++made[v];
  }

  void store(int v, int device, int m) {
    std::vector<Action> &program = schedule.programs[device];
    for (int output : problem.values[v].outputs) {
      Action store{Kind::store_output, m};
      store.value = v;
      store.port = output;
      program.push_back(store);
    }
  }

  /// The next unit's device begins when the last one's has ended, by a value
  /// that goes that way, or else by a token. A token belongs to the later
  /// unit's micro-batch: if that is absent from an action, so is the token.
  void passToken(ScheduledUnit last, ScheduledUnit unit) {
    int source = deviceOf(last.stage), target = deviceOf(unit.stage);
    if (source == target)
      return;
    if (last.microBatch == unit.microBatch)
      for (int v : makes[last.stage])
        if (channelTo.count({v, target}) &&
            !held[target].count({v, unit.microBatch}) &&
            std::count(reads[unit.stage].begin(), reads[unit.stage].end(), v))
          return;
    auto [it, isNew] = tokens.emplace(std::pair(last.stage, unit.stage),
                                      schedule.channels.size());
    if (isNew)
      schedule.channels.push_back({-1, source, target, last.stage, unit.stage});
    Action action{Kind::send, unit.microBatch};
    action.channel = it->second;
    schedule.programs[source].push_back(action);
    action.kind = Kind::recv;
    schedule.programs[target].push_back(action);
    action.kind = Kind::wait;
    sent[source].push_back({action});
  }

  const ScheduleProblem &problem;
  Schedule &schedule;
  bool sendsEarly = true; ///< not where one device works at a time
  std::vector<std::vector<int>> reads, makes;   ///< values, by stage
  std::vector<std::vector<int>> channelsOf;     ///< by value
  std::map<std::pair<int, int>, int> channelTo; ///< (value, device)
  std::map<std::pair<int, int>, int> readers;   ///< (value, device) -> units
  /// (value, micro-batch) -> units that have read it, by device.
  std::vector<std::map<std::pair<int, int>, int>> held;
  std::vector<std::vector<Sent>> sent;       ///< by device
  std::vector<std::deque<size_t>> unwaited;  ///< in `sent`, by value
  std::vector<int> made;                     ///< units so far, by value
  std::map<std::pair<int, int>, int> tokens; ///< (stage, stage) -> channel
};

} // namespace

void buildPrograms(const ScheduleProblem &problem, const UnitOrders &orders,
                   Schedule &schedule) {
  ProgramBuilder(problem, schedule).build(orders);
}

} // namespace partita::schedule
