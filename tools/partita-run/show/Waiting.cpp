//===- Waiting.cpp - Waiting and moving, told apart -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/Waiting.h"

#include "runtime/base/Programs.h"
#include "runtime/session/Links.h"

#include <algorithm>
#include <map>

namespace partita::run {

using runtime::ProfileEvent;

namespace {

/// The devices of a program that work together in its collectives, each by the
/// first of its group; by collective and device.
std::map<std::pair<int, int>, int> groupsOf(const Model &model) {
  std::map<std::pair<int, int>, int> groups;
  for (int64_t i = 0; i < runtime::length(model.plan->collectives()); ++i) {
    const abi::Collective &each = *model.plan->collectives()->Get(unsigned(i));
    for (const std::vector<int> &group : model.mesh.groups(
             each.program(), {each.axes()->begin(), each.axes()->end()}))
      for (int device : group)
        groups[{int(i), device}] = group.front();
  }
  return groups;
}

} // namespace

abi::ProgramAction entryOf(const Model &model, const ProfileEvent &event) {
  return runtime::actionOf(runtime::programOf(*model.plan, event.device),
                           event.action);
}

std::optional<MessageKey> messageKeyOf(const Model &model,
                                       const Profile::Event &item) {
  const abi::ProgramAction entry = entryOf(model, item.event);
  if (item.event.instruction >= 0 || (entry.kind != abi::ActionKind::send &&
                                      entry.kind != abi::ActionKind::recv))
    return std::nullopt;
  return MessageKey{item.run,
                    runtime::linkOf(model.mesh, entry.subject,
                                    model.mesh.position(item.event.device)),
                    item.event.micro_batch};
}

std::vector<int64_t> findWaits(const Model &model,
                               const std::vector<Profile::Event> &events) {
  const std::map<std::pair<int, int>, int> groups = groupsOf(model);
  // A collective of a group, in a step, on a micro-batch of the replica.
  using Round = std::tuple<int, int, int, int>;
  auto roundOf = [&](const Profile::Event &item, int collective) {
    auto group = groups.find({collective, item.event.device});
    return Round{item.run, collective,
                 group == groups.end() ? item.event.device : group->second,
                 item.event.micro_batch};
  };
  std::map<MessageKey, int64_t> sent;
  std::map<Round, int64_t> met;
  for (const Profile::Event &item : events) {
    const abi::ProgramAction entry = entryOf(model, item.event);
    if (item.event.instruction >= 0)
      continue;
    if (entry.kind == abi::ActionKind::send)
      sent[*messageKeyOf(model, item)] = item.event.end_ns;
    if (entry.kind == abi::ActionKind::start) {
      int64_t &last = met[roundOf(item, entry.subject)];
      last = std::max(last, item.event.end_ns);
    }
  }
  std::vector<int64_t> waits;
  for (const Profile::Event &item : events) {
    const ProfileEvent &event = item.event;
    const abi::ProgramAction entry = entryOf(model, event);
    int64_t until = event.begin_ns;
    if (event.instruction < 0) {
      if (entry.kind == abi::ActionKind::wait)
        until = event.end_ns;
      if (entry.kind == abi::ActionKind::recv)
        if (auto at = sent.find(*messageKeyOf(model, item)); at != sent.end())
          until = at->second;
      if (entry.kind == abi::ActionKind::finish)
        if (auto at = met.find(roundOf(item, entry.subject)); at != met.end())
          until = at->second;
    }
    waits.push_back(std::clamp<int64_t>(until - event.begin_ns, 0,
                                        event.end_ns - event.begin_ns));
  }
  return waits;
}

} // namespace partita::run
