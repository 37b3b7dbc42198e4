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
#include <utility>

namespace partita::abi {
namespace {

using Kind = CheckedStep::Kind;
using Key = std::pair<int, int>; // channel, micro-batch

struct Place {
  int device = -1;
  int step = -1;
};

const char *verb(Kind kind) {
  switch (kind) {
  case Kind::send:
    return "send";
  case Kind::recv:
    return "recv";
  case Kind::wait:
    return "wait";
  case Kind::release:
    return "release";
  case Kind::local:
    break;
  }
  return "step";
}

std::string describe(const CheckedStep &step) {
  std::string text = verb(step.kind);
  if (step.kind == Kind::local)
    text += " '" + step.name + "'";
  else
    text += " of channel " + std::to_string(step.channel);
  text += ", micro-batch " + std::to_string(step.micro_batch);
  if (step.kind != Kind::local && !step.name.empty())
    text += " (" + step.name + ")";
  return text;
}

/// Matches sends, receives, releases and waits, and runs the programs.
class Progress {
public:
  explicit Progress(const std::vector<CheckedDevice> &devices)
      : devices(devices) {}

  /// Every key has exactly one send, one recv, one wait after the send, and at
  /// most one release after the recv.
  std::string match() {
    for (int d = 0; d < static_cast<int>(devices.size()); ++d)
      for (int s = 0; s < static_cast<int>(devices[d].steps.size()); ++s)
        if (std::string error = enter({d, s}); !error.empty())
          return error;
    for (const auto &[key, place] : sends) {
      if (!recvs.count(key))
        return text(place) + ": nobody receives it";
      if (!waits.count(key))
        return text(place) +
               " has no wait: its bytes could never be written again";
    }
    for (const auto &[key, place] : recvs)
      if (!sends.count(key))
        return text(place) + ": nobody sends it";
    if (std::string error = follows(waits, sends, "sends it", "send");
        !error.empty())
      return error;
    return follows(releases, recvs, "receives it", "recv");
  }

  /// Runs all programs as far as they go; empty if all finish.
  std::string run() {
    next.assign(devices.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int d = 0; d < static_cast<int>(devices.size()); ++d)
        while (next[d] < static_cast<int>(devices[d].steps.size()) &&
               ready({d, next[d]})) {
          ++next[d];
          moved = true;
        }
    }
    return shortestCycle();
  }

private:
  const CheckedStep &step(Place place) const {
    return devices[place.device].steps[place.step];
  }
  std::string text(Place place) const {
    return devices[place.device].name + ": " + describe(step(place));
  }

  std::map<Key, Place> *placesOf(Kind kind) {
    switch (kind) {
    case Kind::send:
      return &sends;
    case Kind::recv:
      return &recvs;
    case Kind::wait:
      return &waits;
    case Kind::release:
      return &releases;
    case Kind::local:
      break;
    }
    return nullptr;
  }

  std::string enter(Place place) {
    const CheckedStep &entry = step(place);
    std::map<Key, Place> *places = placesOf(entry.kind);
    if (!places ||
        places->emplace(Key(entry.channel, entry.micro_batch), place).second)
      return "";
    return text(place) + ": there are two steps of this kind";
  }

  /// Each of `later` has one of `first` before it on its device.
  std::string follows(const std::map<Key, Place> &later,
                      const std::map<Key, Place> &first, const char *does,
                      const char *name) const {
    for (const auto &[key, place] : later) {
      auto found = first.find(key);
      if (found == first.end())
        return text(place) + ": nobody " + does;
      if (found->second.device != place.device)
        return text(place) + ": it is " + devices[found->second.device].name +
               " that " + does;
      if (found->second.step > place.step)
        return text(place) + " comes before its " + name;
    }
    return "";
  }

  /// What a blocked step waits for: the other side's step with its key.
  Place awaited(Place place) const {
    const CheckedStep &entry = step(place);
    Key key(entry.channel, entry.micro_batch);
    if (entry.kind == Kind::recv)
      return sends.at(key);
    auto release = releases.find(key);
    return release != releases.end() ? release->second : recvs.at(key);
  }

  bool done(Place place) const { return place.step < next[place.device]; }

  bool ready(Place place) const {
    Kind kind = step(place).kind;
    if (kind == Kind::recv || kind == Kind::wait)
      return done(awaited(place));
    return true;
  }

  bool blocked(int device) const {
    return next[device] < static_cast<int>(devices[device].steps.size());
  }

  /// A blocked device waits for exactly one other blocked device, so every
  /// chain of waits ends in a cycle; of these the shortest is the message.
  std::string shortestCycle() const {
    std::vector<int> best;
    for (int start = 0; start < static_cast<int>(devices.size()); ++start) {
      if (!blocked(start))
        continue;
      std::vector<int> cycle = {start};
      int device = awaited({start, next[start]}).device;
      while (device != start && cycle.size() <= devices.size()) {
        cycle.push_back(device);
        device = awaited({device, next[device]}).device;
      }
      if (device == start && (best.empty() || cycle.size() < best.size()))
        best = cycle;
    }
    if (best.empty())
      return "";
    std::string message =
        "the schedule deadlocks: these steps wait for one another";
    for (int device : best) {
      Place place{device, next[device]};
      message += "\n" + text(place) + " waits for " + text(awaited(place));
    }
    return message;
  }

  const std::vector<CheckedDevice> &devices;
  std::map<Key, Place> sends, recvs, releases, waits;
  std::vector<int> next;
};

/// What the bytes of one device's arena hold while its program is walked.
class Bytes {
public:
  explicit Bytes(const CheckedDevice &device) : device(device) {}

  std::string walk() {
    // The second walk starts with what the first one left, as a second step
    // of the session does.
    for (int round = 0; round < 2; ++round)
      for (int s = 0; s < static_cast<int>(device.steps.size()); ++s)
        if (std::string error = execute(s); !error.empty())
          return error;
    return "";
  }

private:
  struct Held {
    int64_t end;
    int64_t value;
    int step;
  };
  struct Outstanding {
    CheckedRange range;
    Key key;
    int step;
  };

  std::string where(int step) const {
    return device.name + ": " + describe(device.steps[step]);
  }
  static std::string bytes(int64_t begin, int64_t end) {
    return "bytes " + std::to_string(begin) + " to " + std::to_string(end);
  }

  std::string execute(int index) {
    const CheckedStep &step = device.steps[index];
    for (const CheckedRange &range : step.reads) {
      if (std::string error = bounds(index, range); !error.empty())
        return error;
      if (std::string error = read(index, range); !error.empty())
        return error;
    }
    for (const CheckedRange &range : step.writes) {
      if (std::string error = bounds(index, range); !error.empty())
        return error;
      if (std::string error = write(index, range); !error.empty())
        return error;
    }
    Key key(step.channel, step.micro_batch);
    if (step.kind == Kind::send)
      for (const CheckedRange &range : step.reads)
        outstanding.push_back({range, key, index});
    if (step.kind == Kind::recv)
      received[key] = index;
    if (step.kind == Kind::release)
      forget(received.at(key));
    if (step.kind == Kind::wait)
      std::erase_if(outstanding,
                    [&](const Outstanding &sent) { return sent.key == key; });
    return "";
  }

  std::string bounds(int index, const CheckedRange &range) const {
    if (range.begin >= 0 && range.begin <= range.end &&
        range.end <= device.arena_bytes)
      return "";
    return where(index) + " uses " + bytes(range.begin, range.end) +
           ", outside the arena of " + std::to_string(device.arena_bytes) +
           " bytes";
  }

  std::string read(int index, const CheckedRange &range) const {
    int64_t at = range.begin;
    auto it = held.upper_bound(at);
    if (it != held.begin())
      --it;
    while (at < range.end) {
      if (it == held.end() || it->first > at || it->second.end <= at) {
        if (it != held.end() && it->second.end <= at) {
          ++it;
          continue;
        }
        int64_t until =
            it == held.end() ? range.end : std::min(range.end, it->first);
        return where(index) + " reads " + bytes(at, until) +
               " before anything is written there";
      }
      if (it->second.value != range.value)
        return where(index) + " reads " +
               bytes(at, std::min(range.end, it->second.end)) + ", which " +
               describe(device.steps[it->second.step]) +
               " has overwritten with another value";
      at = it->second.end;
      ++it;
    }
    return "";
  }

  std::string write(int index, const CheckedRange &range) {
    if (range.begin == range.end)
      return "";
    for (const Outstanding &sent : outstanding)
      if (sent.range.begin < range.end && range.begin < sent.range.end)
        return where(index) + " writes " +
               bytes(std::max(sent.range.begin, range.begin),
                     std::min(sent.range.end, range.end)) +
               " while " + describe(device.steps[sent.step]) +
               " of them is outstanding";
    split(range.begin);
    split(range.end);
    held.erase(held.lower_bound(range.begin), held.lower_bound(range.end));
    held.emplace(range.begin, Held{range.end, range.value, index});
    return "";
  }

  /// The bytes that still hold what a step wrote hold nothing any more.
  void forget(int writer) {
    for (const CheckedRange &range : device.steps[writer].writes)
      for (auto it = held.lower_bound(range.begin);
           it != held.end() && it->first < range.end;)
        it = it->second.step == writer ? held.erase(it) : std::next(it);
  }

  /// Makes `at` a border between two entries.
  void split(int64_t at) {
    auto it = held.lower_bound(at);
    if (it == held.begin())
      return;
    --it;
    if (it->second.end <= at)
      return;
    Held tail = it->second;
    it->second.end = at;
    held.emplace(at, tail);
  }

  const CheckedDevice &device;
  std::map<int64_t, Held> held; // by first byte
  std::map<Key, int> received;  // the step that received it
  std::vector<Outstanding> outstanding;
};

} // namespace

std::string checkSchedule(const std::vector<CheckedDevice> &devices) {
  Progress progress(devices);
  if (std::string error = progress.match(); !error.empty())
    return error;
  if (std::string error = progress.run(); !error.empty())
    return error;
  for (const CheckedDevice &device : devices)
    if (std::string error = Bytes(device).walk(); !error.empty())
      return error;
  return "";
}

} // namespace partita::abi
