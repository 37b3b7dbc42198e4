//===- Timing.cpp - How long a step takes ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Timing.h"

#include <algorithm>
#include <limits>
#include <map>

namespace partita::schedule {
namespace {

/// Stages of one device that read a value.
struct Readers {
  struct Reader {
    int stage;
    double ns; ///< from the begin of its work to the last that reads
  };
  int value;
  std::vector<Reader> stages;
};

/// One run of all devices. Units are numbered stage * micro-batches +
/// micro-batch; a stage that runs once a step has one of these numbers.
class Simulation {
public:
  Simulation(const ScheduleProblem &problem, const UnitOrders &orders,
             Transfers &transfers)
      : problem(problem), orders(orders), transfers(transfers),
        reads(problem.stages.size()), sends(problem.stages.size()),
        units(problem.stages.size() * problem.microBatches),
        batches(problem.stages.size()), devices(problem.devices) {
    for (const std::vector<ScheduledUnit> &order : orders.ofDevice) {
      count += order.size();
      for (ScheduledUnit unit : order) {
        units[number(unit)].count =
            static_cast<int>(batches[unit.stage].size());
        batches[unit.stage].push_back(unit.microBatch);
      }
    }
    for (int v = 0; v < static_cast<int>(problem.values.size()); ++v)
      addValue(v);
    for (const std::vector<ScheduledUnit> &order : orders.ofDevice)
      for (int i = 0; i < static_cast<int>(order.size()); ++i)
        units[number(order[i])].position = i;
    for (size_t i = 1; i < orders.token.size(); ++i)
      units[number(orders.token[i])].tokenFrom = number(orders.token[i - 1]);
  }

  /// False if no change of the transfers lets all units begin.
  bool run() {
    for (int d = 0; d < problem.devices; ++d)
      ready.push_back(d);
    while (true) {
      while (!ready.empty()) {
        int device = ready.back();
        ready.pop_back();
        advance(device);
      }
      if (done == count)
        return true;
      if (!unblock())
        return false;
    }
  }

  Timing getTiming() const {
    Timing timing;
    timing.looks = looks;
    double work = 0;
    int working = 0, last = -1;
    for (const Device &device : devices) {
      work += device.busy;
      working += device.busy > 0;
      if (device.last >= 0 && (last < 0 || device.free > timing.stepNs)) {
        timing.stepNs = device.free;
        last = device.last;
      }
    }
    double room = timing.stepNs * working;
    timing.bubble = room > 0 ? 1 - work / room : 0;
    for (int unit = last; unit >= 0; unit = units[unit].cause)
      if (int v = units[unit].heldUpBy; v >= 0)
        timing.bottlenecks.push_back(v);
    timing.inFlight.assign(problem.values.size(), 0);
    for (const std::vector<int> &sent : sends)
      for (int group : sent)
        timing.inFlight[groups[group].value] = std::max(
            timing.inFlight[groups[group].value], countInFlight(groups[group]));
    return timing;
  }

private:
  struct Unit {
    int position = -1;  ///< in its device's order
    int count = 0;      ///< of its stage's units before it
    int tokenFrom = -1; ///< the unit that hands the token on
    int waiting = -1;   ///< first device that waits for it
    int cause = -1;     ///< the unit that decides when it begins
    int heldUpBy = -1;  ///< the value whose buffer does
    bool isDone = false;
    double begin = 0, work = 0, end = 0; ///< work: when operands are there
  };
  struct Device {
    double free = 0, busy = 0;
    int last = -1;      ///< the last unit
    int next = 0;       ///< position of the next one
    int waitsFor = -1;  ///< a unit
    int alsoWaits = -1; ///< next device that waits for the same
    int heldUpBy = -1;  ///< value whose buffer it waits for; -1: another reason
  };

  int number(ScheduledUnit unit) const {
    return unit.stage * problem.microBatches + unit.microBatch;
  }
  int number(int stage, int m) const {
    return stage * problem.microBatches + problem.unitOf(stage, m);
  }
  int deviceOf(int stage) const { return problem.stages[stage].device; }

  void addValue(int v) {
    const ScheduleValue &value = problem.values[v];
    if (value.producer < 0)
      return;
    std::map<int, Readers> byDevice;
    for (size_t i = 0; i < value.consumers.size(); ++i) {
      int stage = value.consumers[i];
      if (stage == value.producer)
        continue;
      Readers &readers = byDevice[deviceOf(stage)];
      readers.value = v;
      readers.stages.push_back({stage, i < value.readNs.size()
                                           ? value.readNs[i]
                                           : problem.stages[stage].ns});
    }
    for (auto &[device, readers] : byDevice) {
      for (const Readers::Reader &reader : readers.stages)
        reads[reader.stage].push_back(groups.size());
      if (device != deviceOf(value.producer))
        sends[value.producer].push_back(groups.size());
      groups.push_back(std::move(readers));
    }
  }

  /// Most micro-batches of a value that are sent and not yet copied.
  int countInFlight(const Readers &readers) const {
    const int producer = problem.values[readers.value].producer;
    const std::vector<int> &order = batches[producer];
    int most = 0, taken = 0;
    for (int i = 0; i < static_cast<int>(order.size()); ++i) {
      double sent = units[number(producer, order[i])].begin;
      while (taken < i && units[findFirst(readers, order[taken])].begin <= sent)
        ++taken;
      most = std::max(most, i + 1 - taken);
    }
    return most;
  }

  /// The micro-batch whose buffer a unit writes again; -1: none.
  int findRewritten(ScheduledUnit unit, int value) const {
    const int before = units[number(unit)].count - transfers.buffers[value];
    return before < 0 ? -1 : batches[unit.stage][before];
  }

  /// Runs a device's units until one must wait.
  void advance(int d) {
    Device &device = devices[d];
    const std::vector<ScheduledUnit> &order = orders.ofDevice[d];
    while (device.next < static_cast<int>(order.size())) {
      ScheduledUnit unit = order[device.next];
      device.heldUpBy = -1;
      ++looks;
      int awaited = -1;
      visitAwaited(unit, [&](int other, double, int value) {
        if (units[other].isDone)
          return true;
        awaited = other;
        device.heldUpBy = value;
        return false;
      });
      if (awaited >= 0) {
        device.waitsFor = awaited;
        device.alsoWaits = units[awaited].waiting;
        units[awaited].waiting = d;
        return;
      }
      commit(unit, device);
      ++device.next;
    }
    device.waitsFor = -1;
  }

  /// Calls `visit` with each unit that must be timed before this one, the time
  /// from which that lets it begin, and the value whose buffer it waits for, -1
  /// if for none; as long as `visit` returns true.
  template <typename Visit>
  void visitAwaited(ScheduledUnit unit, Visit visit) const {
    if (const int from = units[number(unit)].tokenFrom;
        from >= 0 && !visit(from, units[from].end, -1))
      return;
    for (int group : reads[unit.stage]) {
      const int stage = problem.values[groups[group].value].producer,
                producer = number(stage, unit.microBatch);
      const bool isEarly =
          deviceOf(stage) != deviceOf(unit.stage) && orders.token.empty();
      const double late = isEarly ? problem.stages[stage].lateNs : 0;
      if (!visit(producer, units[producer].end - late, -1))
        return;
    }
    for (int group : sends[unit.stage]) {
      const Readers &readers = groups[group];
      const int v = readers.value, sent = findRewritten(unit, v);
      if (sent < 0)
        continue;
      if (!transfers.borrowed[v]) {
        const int first = findFirst(readers, sent);
        if (!visit(first, units[first].begin, v))
          return;
        continue;
      }
      for (const Readers::Reader &reader : readers.stages)
        if (const int last = number(reader.stage, sent);
            !visit(last, units[last].work + reader.ns, v))
          return;
    }
  }

  /// The first unit of a device that reads a value.
  int findFirst(const Readers &readers, int m) const {
    int first = number(readers.stages[0].stage, m);
    for (const Readers::Reader &reader : readers.stages)
      if (int unit = number(reader.stage, m);
          units[unit].position < units[first].position)
        first = unit;
    return first;
  }

  void commit(ScheduledUnit unit, Device &device) {
    int index = number(unit);
    Unit &timed = units[index];
    double at = device.free, ns = problem.stages[unit.stage].ns;
    timed.cause = device.last;
    visitAwaited(unit, [&](int other, double time, int value) {
      if (time > at) {
        at = time;
        timed.cause = other;
        timed.heldUpBy = value;
      }
      return true;
    });
    for (int group : reads[unit.stage]) {
      const Readers &readers = groups[group];
      const ScheduleValue &value = problem.values[readers.value];
      // The first of a device brings it there.
      const int version = problem.versionOf(readers.value, unit.microBatch);
      if (deviceOf(value.producer) != deviceOf(unit.stage) &&
          findFirst(readers, version) == index)
        ns += transfers.borrowed[readers.value] ? value.borrowNs
                                                : value.transferNs;
    }
    timed.begin = at;
    timed.work = at + ns - problem.stages[unit.stage].ns;
    timed.end = device.free = at + ns;
    timed.isDone = true;
    device.busy += ns;
    device.last = index;
    ++done;
    for (int waiting = timed.waiting; waiting >= 0;
         waiting = devices[waiting].alsoWaits)
      ready.push_back(waiting);
    timed.waiting = -1;
  }

  /// Changes how a value goes that is part of a cycle of waits.
  bool unblock() {
    int d = 0;
    while (devices[d].waitsFor < 0)
      ++d;
    auto follow = [&](int device) {
      return deviceOf(devices[device].waitsFor / problem.microBatches);
    };
    std::vector<bool> seen(devices.size(), false);
    for (; !seen[d]; d = follow(d))
      seen[d] = true;
    int changed = -1;
    for (int begin = d, first = true; first || d != begin;
         d = follow(d), first = false)
      if (int v = devices[d].heldUpBy;
          v >= 0 && (changed < 0 || transfers.borrowed[v]))
        changed = d;
    if (changed < 0)
      return false;
    Device &device = devices[changed];
    if (transfers.borrowed[device.heldUpBy])
      transfers.borrowed[device.heldUpBy] = false;
    else
      ++transfers.buffers[device.heldUpBy];
    // It waits no more for that.
    int *link = &units[device.waitsFor].waiting;
    while (*link != changed)
      link = &devices[*link].alsoWaits;
    *link = device.alsoWaits;
    ready.push_back(changed);
    return true;
  }

  const ScheduleProblem &problem;
  const UnitOrders &orders;
  Transfers &transfers;
  size_t count = 0; ///< of all units
  size_t done = 0;
  int64_t looks = 0;
  std::vector<Readers> groups;
  std::vector<std::vector<int>> reads, sends; ///< groups, by stage
  std::vector<Unit> units;
  std::vector<std::vector<int>> batches; ///< in order, by stage
  std::vector<Device> devices;
  std::vector<int> ready; ///< devices to look at
};

} // namespace

Timing timeOrders(const ScheduleProblem &problem, const UnitOrders &orders,
                  Transfers &transfers) {
  while (true) {
    Transfers before = transfers;
    Simulation simulation(problem, orders, transfers);
    if (!simulation.run())
      return {std::numeric_limits<double>::infinity(), 0, {}};
    // With what has changed on the way, the times are others.
    if (transfers.borrowed == before.borrowed &&
        transfers.buffers == before.buffers)
      return simulation.getTiming();
  }
}

} // namespace partita::schedule
