//===- ScheduleCheck.cpp - Proof that a schedule cannot deadlock ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/ScheduleCheck.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace partita::abi {
namespace {

/// Of a transfer: its channel and micro-batch.
using Key = uint64_t;

Key keyOf(const ProgramAction &action) {
  return (uint64_t(static_cast<uint32_t>(action.subject)) << 32) |
         static_cast<uint32_t>(action.micro_batch);
}

struct Place {
  int program = -1;
  int action = -1;

  explicit operator bool() const { return program >= 0; }
};

/// "recv of channel 1, micro-batch 0 (x)", or "action 'F1: conv3', micro-batch
/// 2"; `instruction` counts those of a run's unit.
std::string describe(const CheckedProgram &program, const CheckedNames &names,
                     const ProgramAction &action, int instruction = 0) {
  auto lookup = [&](const std::vector<std::string> &list) {
    return action.subject >= 0 &&
                   static_cast<size_t>(action.subject) < list.size()
               ? list[static_cast<size_t>(action.subject)]
               : std::string();
  };
  const std::string batch =
      ", micro-batch " + std::to_string(action.micro_batch);
  switch (getInfo(action.kind).subject) {
  case ActionSubject::unit: {
    const CheckedUnit &unit = program.units[action.subject];
    return "action '" +
           (unit.empty() ? "unit " + std::to_string(action.subject)
                         : unit[static_cast<size_t>(instruction)].name) +
           "'" + batch;
  }
  case ActionSubject::input:
    return "action 'input " + lookup(names.inputs) + "'" + batch;
  case ActionSubject::output:
    return "action 'output " + lookup(names.outputs) + "'" + batch;
  case ActionSubject::check:
    return "action 'check of " + lookup(names.checks) + "'" + batch;
  case ActionSubject::sent_channel:
  case ActionSubject::received_channel:
  case ActionSubject::collective:
    break;
  }
  const bool isTransfer = usesChannel(action.kind);
  std::string name = lookup(isTransfer ? names.channels : names.collectives);
  return std::string(getInfo(action.kind).name) + " of " +
         (isTransfer ? "channel " : "collective ") +
         std::to_string(action.subject) + batch +
         (name.empty() ? "" : " (" + name + ")");
}

/// Matches sends, receives, releases and waits, and runs the programs.
class Progress {
public:
  Progress(const std::vector<CheckedProgram> &programs,
           const CheckedNames &names)
      : programs(programs), names(names) {}

  /// Every key has exactly one send, one recv, one wait after the send, and at
  /// most one release after the recv.
  std::string match() {
    for (int p = 0; p < static_cast<int>(programs.size()); ++p)
      for (int s = 0; s < static_cast<int>(programs[p].actions.size()); ++s)
        PARTITA_RETURN_ERROR(enter({p, s}));
    for (Key key : order)
      PARTITA_RETURN_ERROR(matchKey(transfers.at(key)));
    return "";
  }

  /// Runs all programs as far as they go; empty if all finish.
  std::string run() {
    next.assign(programs.size(), 0);
    std::vector<int> runnable;
    for (int p = static_cast<int>(programs.size()); p-- > 0;)
      runnable.push_back(p);
    while (!runnable.empty()) {
      const int p = runnable.back();
      runnable.pop_back();
      const int end = static_cast<int>(programs[p].actions.size());
      while (next[p] < end && ready({p, next[p]})) {
        const Place woken = awaiting({p, next[p]++});
        // Who waits for this very action can go on now.
        if (woken && woken.program != p && next[woken.program] == woken.action)
          runnable.push_back(woken.program);
      }
    }
    return shortestCycle();
  }

private:
  struct Transfer {
    Place send, recv, wait, release;
  };

  const ProgramAction &action(Place place) const {
    return programs[place.program].actions[place.action];
  }
  std::string text(Place place) const {
    const CheckedProgram &program = programs[place.program];
    return program.device + ": " + describe(program, names, action(place));
  }

  static Place *placeOf(Transfer &transfer, ActionKind kind) {
    switch (kind) {
    case ActionKind::send:
      return &transfer.send;
    case ActionKind::recv:
      return &transfer.recv;
    case ActionKind::wait:
      return &transfer.wait;
    case ActionKind::release:
      return &transfer.release;
    default:
      return nullptr;
    }
  }

  std::string enter(Place place) {
    const ProgramAction &entry = action(place);
    if (!usesChannel(entry.kind))
      return "";
    auto [it, isNew] = transfers.try_emplace(keyOf(entry));
    if (isNew)
      order.push_back(keyOf(entry));
    Place *mine = placeOf(it->second, entry.kind);
    if (!mine)
      return "";
    if (*mine)
      return text(place) + ": there are two actions of this kind";
    *mine = place;
    return "";
  }

  std::string matchKey(const Transfer &transfer) const {
    const auto &[send, recv, wait, release] = transfer;
    if (send && !recv)
      return text(send) + ": nobody receives it";
    if (recv && !send)
      return text(recv) + ": nobody sends it";
    if (send && !wait)
      return text(send) +
             " has no wait: its bytes could never be written again";
    PARTITA_RETURN_ERROR(follows(wait, send, "sends it", "send"));
    return follows(release, recv, "receives it", "recv");
  }

  /// `later`, if there is such an action, has `first` before it in its program.
  std::string follows(Place later, Place first, const char *does,
                      const char *name) const {
    if (!later)
      return "";
    if (!first)
      return text(later) + ": nobody " + does;
    if (first.program != later.program)
      return text(later) + ": it is " + programs[first.program].device +
             " that " + does;
    if (first.action > later.action)
      return text(later) + " comes before its " + name;
    return "";
  }

  /// What a blocked action waits for: the other side's action with its key.
  Place awaited(Place place) const {
    const Transfer &transfer = transfers.at(keyOf(action(place)));
    if (action(place).kind == ActionKind::recv)
      return transfer.send;
    return transfer.release ? transfer.release : transfer.recv;
  }

  /// The action that waits for this one; no place if none does.
  Place awaiting(Place place) const {
    const ActionKind kind = action(place).kind;
    if (!usesChannel(kind) || kind == ActionKind::wait)
      return {};
    const Transfer &transfer = transfers.at(keyOf(action(place)));
    if (kind == ActionKind::send)
      return transfer.recv;
    return kind == ActionKind::release || !transfer.release ? transfer.wait
                                                            : Place();
  }

  bool ready(Place place) const {
    const ActionKind kind = action(place).kind;
    if (kind != ActionKind::recv && kind != ActionKind::wait)
      return true;
    const Place other = awaited(place);
    return other.action < next[other.program];
  }

  bool blocked(int program) const {
    return next[program] < static_cast<int>(programs[program].actions.size());
  }

  /// A blocked program waits for exactly one other blocked program, so every
  /// chain of waits ends in a cycle; of these the shortest is the message.
  std::string shortestCycle() const {
    std::vector<int> best, seen(programs.size(), -1);
    for (int start = 0; start < static_cast<int>(programs.size()); ++start) {
      std::vector<int> chain;
      int program = start;
      for (; blocked(program) && seen[program] < 0;
           program = awaited({program, next[program]}).program) {
        seen[program] = start;
        chain.push_back(program);
      }
      if (!blocked(program) || seen[program] != start)
        continue; // finished, or a cycle that is known
      std::vector<int> cycle(std::find(chain.begin(), chain.end(), program),
                             chain.end());
      if (best.empty() || cycle.size() < best.size())
        best = cycle;
    }
    if (best.empty())
      return "";
    std::rotate(best.begin(), std::min_element(best.begin(), best.end()),
                best.end());
    std::string message =
        "the schedule deadlocks: these actions wait for one another";
    for (int program : best) {
      Place place{program, next[program]};
      message += "\n" + text(place) + " waits for " + text(awaited(place));
    }
    return message;
  }

  const std::vector<CheckedProgram> &programs;
  const CheckedNames &names;
  std::unordered_map<Key, Transfer> transfers;
  std::vector<Key> order; ///< of their first actions, for messages
  std::vector<int> next;
};

/// Ranges of bytes, each with what it holds.
template <typename Held> class ByteMap {
public:
  struct Range {
    int64_t end;
    Held held;
  };
  using Ranges = std::map<int64_t, Range>; // by first byte

  /// Calls `visit(begin, end, held)` for the parts of [begin, end), with null
  /// for those that hold nothing, until it returns false.
  template <typename Visit>
  void visit(int64_t begin, int64_t end, Visit visit) const {
    auto it = ranges.upper_bound(begin);
    if (it != ranges.begin() && std::prev(it)->second.end > begin)
      --it;
    while (begin < end) {
      const bool empty = it == ranges.end() || it->first > begin;
      int64_t until =
          empty ? (it == ranges.end() ? end : it->first) : it->second.end;
      until = std::min(until, end);
      if (!visit(begin, until, empty ? nullptr : &it->second.held))
        return;
      if (!empty)
        ++it;
      begin = until;
    }
  }

  void set(int64_t begin, int64_t end, const Held &held) {
    if (begin == end)
      return;
    erase(begin, end);
    ranges.emplace(begin, Range{end, held});
  }

  void erase(int64_t begin, int64_t end) {
    split(begin);
    split(end);
    ranges.erase(ranges.lower_bound(begin), ranges.lower_bound(end));
  }

  Ranges ranges;

private:
  /// Makes `at` a border between two ranges.
  void split(int64_t at) {
    auto it = ranges.lower_bound(at);
    if (it == ranges.begin())
      return;
    --it;
    if (it->second.end <= at)
      return;
    Range tail = it->second;
    it->second.end = at;
    ranges.emplace(at, tail);
  }
};

/// What the bytes of one device hold while its program is walked.
class Memory {
public:
  Memory(const CheckedProgram &program, const CheckedNames &names)
      : program(program), names(names), slots(program.slots),
        micro_batches(program.micro_batches) {
    for (const ProgramAction &action : program.actions)
      micro_batches = std::max(micro_batches, action.micro_batch + 1);
    for (const CheckedSlot &slot : slots)
      if (slot.space == Space::state && slot.carried)
        carried.insert(slot.offset);
    findLanes();
    escapes.resize(slots.size());
    framesOf.resize(program.units.size());
    findEscaping();
  }

  std::string walk() {
    PARTITA_RETURN_ERROR(matchCollectives());
    const Summary load = summarise(program.load, 0);
    if (!load.error.empty())
      return program.device + ": load action " + load.error;
    if (!load.reads.empty())
      return program.device + ": load action '" +
             program.load[load.reads[0].instruction].name +
             "' reads what nothing before it writes";
    leave(load, 0, -1);
    // A step begins with an arena that may hold anything.
    held.erase(0, program.arena_bytes);
    // The second walk starts with what the first one left, as a second step
    // of the session does.
    for (int round = 0; round < 2; ++round) {
      renewed.clear();
      computed.clear();
      added.clear();
      for (int s = 0; s < static_cast<int>(program.actions.size()); ++s)
        PARTITA_RETURN_ERROR(execute(s));
    }
    return "";
  }

  /// States that the program writes.
  std::set<int64_t> writtenStates() const {
    std::set<int64_t> states;
    for (const auto &[state, by] : renewed)
      states.insert(state.first);
    return states;
  }

private:
  /// The number of a state, and the micro-batch that it is of: 0 if all share
  /// it.
  using OneState = std::pair<int64_t, int>;
  /// A use of bytes, by absolute addresses.
  struct Use {
    int64_t begin, end;
    int slot;
    int instruction;
  };
  /// What a unit does, as its surroundings see it.
  struct Summary {
    std::string error;
    std::vector<Use> reads;   ///< of what was there before
    std::vector<Use> written; ///< all bytes that it writes, without overlap
    std::vector<Use> left;    ///< what it leaves there; slot -1: nothing of use
    std::set<int> adds;       ///< sums that it reads, and then writes
    /// States that it reads and writes, by number, each with an instruction.
    std::map<int64_t, int> state_reads, state_writes;
    /// Those whose new value it reads, and has not written.
    std::map<int64_t, int> news_read;
  };
  struct Writer {
    int64_t value;
    int action, instruction;
  };
  struct Outstanding {
    int64_t begin, end;
    Key key;
    int action;
    OneState state = {-1, 0}; ///< that is read instead of the arena's bytes
  };
  /// Nobody means to read it.
  static constexpr int64_t kNoValue = -1;

  /// Each start has a finish after it, on the same micro-batch.
  std::string matchCollectives() {
    finishOf.assign(program.actions.size(), -1);
    startOf.assign(program.actions.size(), -1);
    std::map<Key, int> started;
    for (int s = 0; s < static_cast<int>(program.actions.size()); ++s) {
      const ProgramAction &action = program.actions[s];
      if (action.kind == ActionKind::start) {
        if (!started.emplace(keyOf(action), s).second)
          return where(s) + ": it is under way";
      } else if (action.kind == ActionKind::finish) {
        auto it = started.find(keyOf(action));
        if (it == started.end())
          return where(s) + ": nothing starts it";
        finishOf[it->second] = s;
        startOf[s] = it->second;
        started.erase(it);
      }
    }
    return started.empty()
               ? ""
               : where(started.begin()->second) + ": nothing finishes it";
  }

  /// From a start on, its own slot must not be written, and that of its finish
  /// not be used.
  std::string start(int index) {
    ProgramAction finish = program.actions[finishOf[index]];
    finish.slot = resolve(finish.slot, finish.micro_batch);
    if (isOutside(finish.slot))
      return "";
    Use use;
    PARTITA_RETURN_ERROR(
        useWhole(finishOf[index], finish.slot, finish.micro_batch, use));
    PARTITA_RETURN_ERROR(mayWrite(index, use));
    held.set(use.begin, use.end, {kNoValue, index, 0});
    if (use.begin != use.end)
      outstanding.push_back({use.begin, use.end, keyOf(finish), index});
    return "";
  }

  //===--- Lanes ----------------------------------------------------------===//

  /// Each lane of a sum gets a slot, if it has none.
  void findLanes() {
    lanesOf.resize(slots.size());
    for (size_t s = 0; s < lanesOf.size(); ++s) {
      const CheckedSlot sum = slots[s];
      if (sum.span != Span::sum || sum.space != Space::frame)
        continue;
      for (int64_t begin : program.frames[sum.frame].copies) {
        lanesOf[s].push_back(static_cast<int>(slots.size()));
        slots.push_back(
            {Space::arena, -1, begin + sum.offset, sum.bytes, sum.span});
      }
    }
    for (size_t s = 0; s < program.slots.size(); ++s)
      if (slots[s].sum >= 0)
        lanesOf[s] = {lanesOf[static_cast<size_t>(slots[s].sum)]
                             [static_cast<size_t>(slots[s].lane)]};
    lanesOf.resize(slots.size());
    summands.assign(slots.size(), micro_batches);
    for (const std::vector<int> &lanes : lanesOf)
      if (const int count = static_cast<int>(lanes.size()); count > 1)
        for (int lane = 0; lane < count; ++lane)
          summands[static_cast<size_t>(lanes[lane])] =
              (micro_batches - lane + count - 1) / count;
  }

  /// The slot that a micro-batch uses: of a sum with lanes, one of these.
  int resolve(int slot, int micro_batch) const {
    if (slot < 0 || lanesOf[slot].empty())
      return slot;
    const std::vector<int> &lanes = lanesOf[slot];
    return lanes[static_cast<size_t>(micro_batch) % lanes.size()];
  }

  CheckedUnit resolve(CheckedUnit unit, int micro_batch) const {
    forEachUse(unit, [&](CheckedUse &use) {
      use.slot = resolve(use.slot, micro_batch);
    });
    return unit;
  }

  template <typename Unit, typename Visit>
  static void forEachUse(Unit &unit, Visit visit) {
    for (auto &instruction : unit)
      for (auto *uses : {&instruction.reads, &instruction.writes})
        for (auto &use : *uses)
          visit(use);
  }

  /// Slots that more than one unit or action uses. What a unit leaves in others
  /// is not told apart.
  void findEscaping() {
    std::vector<int> user(slots.size(), -1);
    auto use = [&](int slot, int by) {
      if (slot < 0)
        return;
      escapes[slot] = escapes[slot] || (user[slot] >= 0 && user[slot] != by);
      user[slot] = by;
    };
    for (size_t u = 0; u < program.units.size(); ++u) {
      std::set<int> frames;
      forEachUse(program.units[u], [&](const CheckedUse &each) {
        use(each.slot, static_cast<int>(u));
        if (slots[each.slot].space == Space::frame)
          frames.insert(slots[each.slot].frame);
      });
      framesOf[u].assign(frames.begin(), frames.end());
    }
    const int others = static_cast<int>(program.units.size());
    forEachUse(program.load,
               [&](const CheckedUse &each) { use(each.slot, others); });
    for (const ProgramAction &action : program.actions) {
      use(action.slot, others + 1);
      if (action.slot >= 0)
        for (int member :
             program.slots[static_cast<size_t>(action.slot)].members)
          use(member, others + 1);
    }
    for (const std::vector<int> &lanes : lanesOf)
      for (int lane : lanes)
        escapes[lane] = true;
  }

  //===--- Addresses and values -------------------------------------------===//

  int64_t addressOf(int index, int micro_batch) const {
    const CheckedSlot &slot = slots[index];
    switch (slot.space) {
    case Space::frame: {
      const std::vector<int64_t> &copies = program.frames[slot.frame].copies;
      return copies[static_cast<size_t>(micro_batch) % copies.size()] +
             slot.offset;
    }
    case Space::constant:
      return program.arena_bytes + slot.offset;
    case Space::arena:
    case Space::weight:
    case Space::state:
      break;
    }
    return slot.offset;
  }

  OneState stateOf(int64_t state, int micro_batch) const {
    return {state, carried.count(state) ? micro_batch : 0};
  }

  bool isState(int slot) const {
    return slot >= 0 && slots[slot].space == Space::state;
  }

  /// Of no memory that is told apart by its bytes.
  bool isOutside(int slot) const {
    return slot < 0 || isState(slot) || slots[slot].space == Space::weight;
  }

  bool isSum(int slot) const {
    return slot >= 0 && slots[slot].span == Span::sum;
  }

  bool isOfStep(int slot) const {
    return slot >= 0 && slots[slot].span == Span::step;
  }

  /// A slot on a micro-batch; a constant is the same on all, and so is what is
  /// computed once a step.
  int64_t valueOf(int slot, int micro_batch) const {
    const CheckedSlot &described = slots[slot];
    const bool isOne = described.space == Space::constant ||
                       described.span != Span::micro_batch;
    return (int64_t(slot) << 32) + (isOne ? 0 : micro_batch + 1);
  }
  /// How many micro-batches have been added to a sum.
  int countAdded(int slot) const {
    auto found = added.find(slot);
    return found == added.end() ? 0 : static_cast<int>(found->second.size());
  }
  /// A sum to which so many micro-batches were added.
  static int64_t sumOf(int slot, int added) {
    return (int64_t(slot) << 32) + added;
  }
  int64_t valueRead(int slot, int micro_batch,
                    const std::set<int> &adds) const {
    if (!isSum(slot))
      return valueOf(slot, micro_batch);
    return sumOf(slot, adds.count(slot) ? countAdded(slot) : summands[slot]);
  }
  int64_t valueLeft(int slot, int micro_batch) const {
    return isSum(slot) ? sumOf(slot, countAdded(slot))
                       : valueOf(slot, micro_batch);
  }

  /// What a `recv` or a `finish` leaves. A sum that devices add up where it is
  /// has the same micro-batches as before.
  int64_t valueReceived(const ProgramAction &action, int index) const {
    if (isSum(action.slot) && action.kind == ActionKind::finish &&
        resolve(program.actions[startOf[index]].slot, action.micro_batch) ==
            action.slot)
      return valueLeft(action.slot, action.micro_batch);
    return valueOf(action.slot, action.micro_batch);
  }

  std::string boundsError(const CheckedUse &use, int64_t address) const {
    const CheckedSlot &slot = slots[use.slot];
    const bool isConstant = slot.space == Space::constant;
    const int64_t low = isConstant ? program.arena_bytes : 0,
                  high = isConstant ? low + program.constant_bytes
                                    : program.arena_bytes;
    const int64_t begin = address + use.begin, end = address + use.end;
    if (begin >= low && begin <= end && end <= high)
      return "";
    return "uses " + bytes(begin, end) + ", outside the arena of " +
           std::to_string(program.arena_bytes) + " bytes";
  }

  /// All bytes of a slot, as an action uses them; an error if they lie
  /// outside of what the slot may use.
  std::string useWhole(int index, int slot, int micro_batch, Use &use) const {
    const CheckedUse whole{slot, 0, slots[slot].bytes};
    const int64_t address = addressOf(slot, micro_batch);
    const std::string error = boundsError(whole, address);
    if (!error.empty())
      return where(index) + " " + error;
    use = {address, address + whole.end, slot, 0};
    return "";
  }

  static std::string bytes(int64_t begin, int64_t end) {
    return "bytes " + std::to_string(begin) + " to " + std::to_string(end);
  }

  //===--- Units ----------------------------------------------------------===//

  /// What a unit does on a micro-batch; an error if it does something wrong by
  /// itself. The error begins with the name of an instruction.
  Summary summarise(const CheckedUnit &written, int micro_batch) const {
    Summary summary;
    const CheckedUnit unit = resolve(written, micro_batch);
    ByteMap<std::pair<int, int>> inside; // (slot, instruction)
    std::set<std::tuple<int, int64_t, int64_t>> known;
    auto fail = [&](int i, const std::string &text) {
      summary.error = "'" + unit[static_cast<size_t>(i)].name +
                      "', micro-batch " + std::to_string(micro_batch) + " " +
                      text;
    };
    // Where a use begins; false if it is of no memory that a program writes, or
    // wrong.
    auto locate = [&](int i, const CheckedUse &use, int64_t &address) {
      if (isOutside(use.slot))
        return false;
      address = addressOf(use.slot, micro_batch);
      std::string error = boundsError(use, address);
      if (!error.empty())
        fail(i, error);
      return error.empty();
    };
    std::set<int> changed; // sums that it has written
    // Sums that it has read, with them all that it has made of them.
    std::map<int, std::set<int>> made;
    auto readsOneOf = [&](int i, const std::set<int> &slots) {
      return std::ranges::any_of(unit[i].reads, [&](const CheckedUse &use) {
        return slots.count(use.slot) != 0;
      });
    };
    auto hasRead = [&](const CheckedUse &use) {
      const int64_t address = addressOf(use.slot, micro_batch);
      return std::ranges::any_of(summary.reads, [&](const Use &read) {
        return read.slot == use.slot && read.begin <= address + use.begin &&
               address + use.end <= read.end;
      });
    };
    for (int i = 0; i < static_cast<int>(unit.size()); ++i) {
      int64_t address = 0;
      for (const CheckedUse &use : unit[i].reads) {
        if (isState(use.slot)) {
          const int64_t state = slots[use.slot].offset;
          const auto by = summary.state_writes.find(state);
          const bool isWritten = by != summary.state_writes.end();
          if (!slots[use.slot].renewed)
            summary.state_reads.emplace(state, i);
          else if (!isWritten)
            summary.news_read.emplace(state, i);
          if (isWritten && !slots[use.slot].renewed)
            fail(i, "reads a state that action '" +
                        unit[static_cast<size_t>(by->second)].name +
                        "' has written for the next step");
        }
        if (changed.count(use.slot))
          fail(i, "reads a sum that it has added to");
        if (!summary.error.empty())
          return summary;
        auto visit = [&](int64_t begin, int64_t end,
                         const std::pair<int, int> *held) {
          if (held && held->first != use.slot)
            fail(i, "reads " + bytes(begin, end) + ", which action '" +
                        unit[static_cast<size_t>(held->second)].name +
                        "' has overwritten with another value");
          else if (!held && known.emplace(use.slot, begin, end).second)
            summary.reads.push_back({begin, end, use.slot, i});
          return summary.error.empty();
        };
        if (locate(i, use, address))
          inside.visit(address + use.begin, address + use.end, visit);
        if (!summary.error.empty())
          return summary;
        if (isSum(use.slot))
          made[use.slot].insert(use.slot);
      }
      for (auto &[sum, slots] : made)
        if (readsOneOf(i, slots))
          for (const CheckedUse &use : unit[i].writes)
            slots.insert(use.slot);
      for (const CheckedUse &use : unit[i].writes) {
        if (isState(use.slot) &&
            !summary.state_writes.emplace(slots[use.slot].offset, i).second)
          fail(i, "writes a state that is written already");
        if (isSum(use.slot)) {
          const auto read = made.find(use.slot);
          if (!changed.insert(use.slot).second)
            fail(i, "writes a sum that it has written");
          else if (read != made.end() &&
                   !(readsOneOf(i, read->second) && hasRead(use)))
            fail(i, "writes a sum that it has read, and does not add to it");
          else if (read != made.end())
            summary.adds.insert(use.slot);
        }
        if (locate(i, use, address))
          inside.set(address + use.begin, address + use.end, {use.slot, i});
        if (!summary.error.empty())
          return summary;
      }
    }
    // Nothing that was written is taken away, so this is all of it, too.
    for (const auto &[begin, range] : inside.ranges) {
      const auto [slot, instruction] = range.held;
      append(summary.written, {begin, range.end, -1, instruction});
      append(summary.left,
             {begin, range.end, escapes[slot] ? slot : -1, instruction});
    }
    return summary;
  }

  /// Joins what adjoins and is not told apart.
  static void append(std::vector<Use> &uses, const Use &use) {
    if (use.slot < 0 && !uses.empty() && uses.back().slot < 0 &&
        uses.back().end == use.begin)
      uses.back().end = use.end;
    else
      uses.push_back(use);
  }

  /// The summary depends on where the copies of the frames lie, and on nothing
  /// else of the micro-batch.
  const Summary &summaryOf(const ProgramAction &action) {
    std::vector<int> variant = {action.subject};
    for (int frame : framesOf[action.subject])
      variant.push_back(static_cast<int>(
          action.micro_batch %
          static_cast<int64_t>(program.frames[frame].copies.size())));
    auto [it, isNew] = summaries.try_emplace(std::move(variant));
    if (isNew)
      it->second = summarise(program.units[action.subject], action.micro_batch);
    return it->second;
  }

  void leave(const Summary &summary, int micro_batch, int action) {
    for (const Use &use : summary.left)
      held.set(use.begin, use.end,
               {use.slot < 0 ? kNoValue : valueLeft(use.slot, micro_batch),
                action, use.instruction});
  }

  //===--- Actions --------------------------------------------------------===//

  std::string where(int action, int instruction = 0) const {
    return program.device + ": " + actionText(action, instruction);
  }
  std::string actionText(int action, int instruction) const {
    return action < 0
               ? "load action '" +
                     program.load[static_cast<size_t>(instruction)].name + "'"
               : describe(program, names, program.actions[action], instruction);
  }

  /// A collective adds up several slots, each where it is.
  std::string addUpMembers(int index, const ProgramAction &action) {
    const bool starts = action.kind == ActionKind::start;
    if (!starts && action.kind != ActionKind::finish)
      return where(index) + " uses joined slots, which only a collective may";
    if (program.actions[starts ? finishOf[index] : startOf[index]].slot !=
        action.slot)
      return where(index) + ": joined slots are added up elsewhere";
    if (!starts)
      endOutstanding(action, ActionKind::start);
    Use whole;
    PARTITA_RETURN_ERROR(useWhole(index, action.slot, 0, whole));
    std::vector<Use> members;
    for (int member : slots[action.slot].members) {
      const int64_t at = addressOf(member, 0);
      members.push_back({at, at + slots[member].bytes, member, 0});
      if (slots[member].space != Space::arena || at < whole.begin ||
          members.back().end > whole.end)
        return where(index) + " joins what lies elsewhere";
    }
    if (starts)
      for (const Use &member : members)
        PARTITA_RETURN_ERROR(read(index, member, action.micro_batch, {}));
    PARTITA_RETURN_ERROR(mayWrite(index, whole));
    held.set(whole.begin, whole.end, {kNoValue, index, 0});
    if (starts)
      outstanding.push_back({whole.begin, whole.end, keyOf(action), index});
    else
      for (const Use &member : members)
        held.set(member.begin, member.end,
                 {valueLeft(member.slot, action.micro_batch), index, 0});
    return "";
  }

  std::string execute(int index) {
    ProgramAction action = program.actions[index];
    const int m = action.micro_batch;
    action.slot = resolve(action.slot, m);
    if (action.kind == ActionKind::run) {
      const Summary &summary = summaryOf(action);
      if (!summary.error.empty())
        return program.device + ": action " + summary.error;
      PARTITA_RETURN_ERROR(useStates(index, summary));
      for (const Use &use : summary.reads)
        PARTITA_RETURN_ERROR(read(index, use, m, summary.adds));
      for (const Use &use : summary.written)
        PARTITA_RETURN_ERROR(mayWrite(index, use));
      for (const Use &use : summary.left)
        PARTITA_RETURN_ERROR(compute(index, use.slot, use.instruction));
      PARTITA_RETURN_ERROR(addToSums(index, summary));
      leave(summary, m, index);
      return "";
    }
    if (action.slot >= 0 && !slots[action.slot].members.empty())
      return addUpMembers(index, action);
    if (action.kind == ActionKind::finish)
      endOutstanding(action, ActionKind::start);
    Use use{0, 0, action.slot, 0};
    if (isState(action.slot)) {
      if (action.kind != ActionKind::store_output &&
          action.kind != ActionKind::start)
        return where(index) + " uses a state, which it may not";
      Summary summary;
      (slots[action.slot].renewed ? summary.news_read : summary.state_reads)
          .emplace(slots[action.slot].offset, 0);
      PARTITA_RETURN_ERROR(useStates(index, summary));
    }
    if (!isOutside(action.slot)) {
      PARTITA_RETURN_ERROR(useWhole(index, action.slot, m, use));
      if (getInfo(action.kind).access == SlotAccess::read)
        PARTITA_RETURN_ERROR(read(index, use, m, {}));
      if (getInfo(action.kind).access == SlotAccess::written) {
        PARTITA_RETURN_ERROR(mayWrite(index, use));
        PARTITA_RETURN_ERROR(compute(index, action.slot, 0));
        held.set(use.begin, use.end, {valueReceived(action, index), index, 0});
      }
    }
    switch (action.kind) {
    case ActionKind::send:
      if (use.begin != use.end)
        outstanding.push_back({use.begin, use.end, keyOf(action), index});
      break;
    case ActionKind::wait:
      endOutstanding(action, ActionKind::send);
      break;
    case ActionKind::start:
      PARTITA_RETURN_ERROR(start(index));
      if (use.begin != use.end)
        outstanding.push_back({use.begin, use.end, keyOf(action), index});
      else if (isState(action.slot))
        outstanding.push_back({0, 0, keyOf(action), index,
                               stateOf(slots[action.slot].offset, m)});
      break;
    case ActionKind::recv:
      received[keyOf(action)] = {use.begin, use.end, keyOf(action), index};
      break;
    case ActionKind::release:
      forget(received.at(keyOf(action)));
      received.erase(keyOf(action));
      break;
    default:
      break;
    }
    return "";
  }

  /// What the action of a kind with this subject and micro-batch began.
  void endOutstanding(const ProgramAction &action, ActionKind begun) {
    std::erase_if(outstanding, [&](const Outstanding &each) {
      return each.key == keyOf(action) &&
             program.actions[each.action].kind == begun;
    });
  }

  /// A step reads what the one before it has left of a state, and writes it
  /// once.
  std::string useStates(int index, const Summary &summary) {
    const int m = program.actions[index].micro_batch;
    for (auto [state, instruction] : summary.state_reads)
      if (auto by = renewed.find(stateOf(state, m)); by != renewed.end())
        return where(index, instruction) + " reads a state that " +
               actionText(by->second.first, by->second.second) +
               " has written for the next step";
    for (auto [state, instruction] : summary.news_read)
      if (!renewed.count(stateOf(state, m)))
        return where(index, instruction) +
               " reads the new value of a state, which nothing has written";
    for (auto [number, instruction] : summary.state_writes) {
      const OneState state = stateOf(number, m);
      if (auto [by, isNew] =
              renewed.try_emplace(state, std::pair(index, instruction));
          !isNew)
        return where(index, instruction) + " writes a state that " +
               actionText(by->second.first, by->second.second) + " has written";
      for (const Outstanding &sent : outstanding)
        if (sent.state == state)
          return where(index, instruction) + " writes a state while " +
                 actionText(sent.action, 0) + " of it is outstanding";
    }
    return "";
  }

  /// Each micro-batch is added to a sum once. What writes one without adding to
  /// it begins it anew.
  std::string addToSums(int index, const Summary &summary) {
    for (const Use &use : summary.left) {
      if (!isSum(use.slot))
        continue;
      if (!summary.adds.count(use.slot)) {
        added[use.slot].clear();
        continue;
      }
      auto [by, isNew] =
          added[use.slot].try_emplace(program.actions[index].micro_batch,
                                      std::pair(index, use.instruction));
      if (!isNew && by->second.first != index)
        return where(index, use.instruction) +
               " adds to a sum what is in it already: " +
               actionText(by->second.first, by->second.second) +
               " has added it";
    }
    return "";
  }

  /// What has the span of a step has one value in it.
  std::string compute(int index, int slot, int instruction) {
    if (!isOfStep(slot))
      return "";
    auto [by, isNew] =
        computed.try_emplace(slot, std::pair(index, instruction));
    if (isNew || by->second.first == index)
      return "";
    return where(index, instruction) +
           " writes a value of the whole step that " +
           actionText(by->second.first, by->second.second) + " has written";
  }

  std::string read(int index, const Use &use, int micro_batch,
                   const std::set<int> &adds) const {
    const int64_t value = valueRead(use.slot, micro_batch, adds);
    std::string error;
    held.visit(
        use.begin, use.end,
        [&](int64_t begin, int64_t end, const Writer *writer) {
          if (!writer)
            error = where(index, use.instruction) + " reads " +
                    bytes(begin, end) + " before anything is written there";
          else if (isSum(use.slot) && writer->value != value &&
                   writer->value != kNoValue && writer->value >> 32 == use.slot)
            error = where(index, use.instruction) + " reads a sum of " +
                    std::to_string(writer->value & 0xffffffff) +
                    " micro-batches, and needs one of " +
                    std::to_string(value & 0xffffffff);
          else if (writer->value != value)
            error = where(index, use.instruction) + " reads " +
                    bytes(begin, end) + ", which " +
                    actionText(writer->action, writer->instruction) +
                    " has overwritten with another value";
          return error.empty();
        });
    return error;
  }

  std::string mayWrite(int index, const Use &use) const {
    for (const Outstanding &sent : outstanding)
      if (sent.begin < use.end && use.begin < sent.end) {
        const int64_t begin = std::max(sent.begin, use.begin),
                      end = std::min(sent.end, use.end);
        return where(index, writerOf(index, begin, use.instruction)) +
               " writes " + bytes(begin, end) + " while " +
               actionText(sent.action, 0) + " of them is outstanding";
      }
    return "";
  }

  /// The instruction of a run that writes a byte, of several that were joined.
  int writerOf(int index, int64_t at, int standard) const {
    const ProgramAction &action = program.actions[index];
    if (action.kind != ActionKind::run)
      return 0;
    const CheckedUnit &unit = program.units[action.subject];
    for (int i = 0; i < static_cast<int>(unit.size()); ++i)
      for (const CheckedUse &use : unit[i].writes) {
        const int64_t address = addressOf(use.slot, action.micro_batch);
        if (!isOutside(use.slot) && address + use.begin <= at &&
            at < address + use.end)
          return i;
      }
    return standard;
  }

  /// The bytes that still hold what an action received hold nothing any more.
  void forget(const Outstanding &gone) {
    std::vector<std::pair<int64_t, int64_t>> parts;
    held.visit(gone.begin, gone.end,
               [&](int64_t begin, int64_t end, const Writer *writer) {
                 if (writer && writer->action == gone.action)
                   parts.push_back({begin, end});
                 return true;
               });
    for (auto [begin, end] : parts)
      held.erase(begin, end);
  }

  const CheckedProgram &program;
  const CheckedNames &names;
  std::vector<CheckedSlot> slots;        ///< with one for each lane
  std::vector<std::vector<int>> lanesOf; ///< by slot: if it is a sum of several
  std::vector<int> summands;             ///< by slot: of a sum
  std::vector<bool> escapes;             ///< by slot
  std::vector<std::vector<int>> framesOf; ///< by unit
  std::map<std::vector<int>, Summary> summaries;
  int micro_batches;
  std::set<int64_t> carried; ///< states of which a micro-batch has its own
  /// States that a step has written, with that step and its instruction.
  std::map<OneState, std::pair<int, int>> renewed;
  /// Slots with the span of a step that it has written, likewise.
  std::map<int, std::pair<int, int>> computed;
  /// Of each sum: the micro-batches that were added, each with an action and
  /// its instruction.
  std::map<int, std::map<int, std::pair<int, int>>> added;
  ByteMap<Writer> held;
  std::map<Key, Outstanding> received; ///< and not released
  std::vector<Outstanding> outstanding;
  std::vector<int> finishOf; ///< by action: of a start
  std::vector<int> startOf;  ///< by action: of a finish
};

/// A state that one program writes is used by no other.
std::string checkStates(const std::vector<CheckedProgram> &programs,
                        const std::map<int64_t, const CheckedProgram *> &by) {
  for (const CheckedProgram &program : programs)
    for (const CheckedSlot &slot : program.slots)
      if (slot.space == Space::state)
        if (auto found = by.find(slot.offset);
            found != by.end() && found->second != &program)
          return program.device + " uses a state that " +
                 found->second->device + " writes";
  return "";
}

/// A collective that nobody starts would leave each device what it has alone.
std::string checkStarted(const std::vector<CheckedProgram> &programs,
                         const CheckedNames &names) {
  std::set<int> started;
  for (const CheckedProgram &program : programs)
    for (const ProgramAction &action : program.actions)
      if (action.kind == ActionKind::start)
        started.insert(action.subject);
  for (size_t c = 0; c < names.collectives.size(); ++c)
    if (!started.count(static_cast<int>(c)))
      return "collective " + std::to_string(c) + " (" + names.collectives[c] +
             ") never starts";
  return "";
}

} // namespace

std::string checkSchedule(const std::vector<CheckedProgram> &programs,
                          const CheckedNames &names) {
  PARTITA_RETURN_ERROR(checkStarted(programs, names));
  Progress progress(programs, names);
  PARTITA_RETURN_ERROR(progress.match());
  PARTITA_RETURN_ERROR(progress.run());
  std::map<int64_t, const CheckedProgram *> writerOf; // of each state
  for (const CheckedProgram &program : programs) {
    Memory memory(program, names);
    PARTITA_RETURN_ERROR(memory.walk());
    for (int64_t state : memory.writtenStates())
      writerOf[state] = &program;
  }
  return checkStates(programs, writerOf);
}

} // namespace partita::abi
