//===- Routes.cpp - Which bytes go through NCCL ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/Routes.h"

#include "runtime/comm/nccl/ElementTypes.h"
#include "runtime/comm/reduce/Group.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace partita::runtime::nccl {
namespace {

/// The devices that have a GPU for themselves.
std::vector<bool> haveGpus(const std::vector<Place> &places) {
  std::vector<bool> have(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    have[i] = places[i].is_gpu &&
              std::count_if(places.begin(), places.end(), [&](const Place &b) {
                return sameGpu(places[i], b);
              }) == 1;
  return have;
}

/// Messages of these channels as a device sends or receives them.
std::vector<std::pair<int, int>> orderOf(const std::vector<Message> &messages,
                                         bool is_send,
                                         const std::vector<int> &channels) {
  std::vector<std::pair<int, int>> order;
  for (const Message &each : messages)
    if (each.is_send == is_send && std::find(channels.begin(), channels.end(),
                                             each.channel) != channels.end())
      order.emplace_back(each.channel, each.micro_batch);
  return order;
}

class Choice {
public:
  Choice(const std::vector<Place> &places, const Traffic &traffic)
      : places(places), traffic(traffic), have(haveGpus(places)) {}

  Routes make() {
    chooseCollectives();
    chooseEdges();
    groupMessages();
    std::set<int> devices;
    for (const auto &groups : routes.splits)
      for (const std::vector<int> &group : groups)
        devices.insert(group.begin(), group.end());
    routes.devices.assign(devices.begin(), devices.end());
    return std::move(routes);
  }

private:
  bool carries(const CollectiveInfo &info,
               const std::vector<int> &group) const {
    return group.size() > 1 &&
           std::all_of(group.begin(), group.end(),
                       [&](int device) { return have[size_t(device)]; }) &&
           (!combines(info.kind) ||
            combinationOf(info.dtype, info.reduction).ok());
  }

  void chooseCollectives() {
    std::map<std::vector<std::vector<int>>, int> known;
    for (const CollectiveInfo &info : traffic.collectives) {
      std::vector<std::vector<int>> groups;
      for (const std::vector<int> &group : info.groups)
        if (carries(info, group)) {
          groups.push_back(group);
          // Its first device is the root, whatever rank that is.
          if (info.kind == CollectiveKind::broadcast)
            std::sort(groups.back().begin(), groups.back().end());
        }
      if (groups.empty()) {
        routes.split_of.push_back(-1);
        continue;
      }
      auto [it, is_new] =
          known.try_emplace(groups, static_cast<int>(routes.splits.size()));
      if (is_new)
        routes.splits.push_back(groups);
      routes.split_of.push_back(it->second);
    }
  }

  bool sameOrder(int source, int target,
                 const std::vector<int> &channels) const {
    return orderOf(traffic.messages[size_t(source)], true, channels) ==
           orderOf(traffic.messages[size_t(target)], false, channels);
  }

  void chooseEdges() {
    std::map<std::pair<int, int>, std::vector<int>> between;
    for (size_t i = 0; i < traffic.channels.size(); ++i) {
      const int source = traffic.channels[i].source,
                target = traffic.channels[i].target;
      if (have[size_t(source)] && have[size_t(target)] &&
          places[size_t(source)].process != places[size_t(target)].process)
        between[{source, target}].push_back(static_cast<int>(i));
    }
    routes.edge_of.assign(traffic.channels.size(), -1);
    for (const auto &[ends, channels] : between) {
      if (sameOrder(ends.first, ends.second, channels)) {
        addEdge(ends.first, ends.second, channels);
        continue;
      }
      for (int channel : channels)
        if (sameOrder(ends.first, ends.second, {channel}))
          addEdge(ends.first, ends.second, {channel});
    }
  }

  /// Edges that have no device in common are made by one split.
  void addEdge(int source, int target, const std::vector<int> &channels) {
    for (int channel : channels)
      routes.edge_of[size_t(channel)] = static_cast<int>(routes.edges.size());
    size_t round = 0;
    while (round < rounds.size() && (rounds[round].devices.count(source) ||
                                     rounds[round].devices.count(target)))
      ++round;
    if (round == rounds.size()) {
      rounds.push_back({static_cast<int>(routes.splits.size()), {}});
      routes.splits.emplace_back();
    }
    rounds[round].devices.insert({source, target});
    const int split = rounds[round].split;
    routes.splits[size_t(split)].push_back({source, target});
    routes.edges.push_back({source, target, channels, split});
  }

  void groupMessages() {
    const size_t keys =
        traffic.channels.size() * static_cast<size_t>(traffic.micro_batches);
    routes.sends_more.assign(keys, false);
    routes.receives_more.assign(keys, false);
    for (const std::vector<Message> &messages : traffic.messages)
      for (size_t i = 1; i < messages.size(); ++i) {
        const Message &a = messages[i - 1], &b = messages[i];
        const int edge = routes.edge_of[size_t(a.channel)];
        if (edge >= 0 && edge == routes.edge_of[size_t(b.channel)] &&
            a.is_send == b.is_send && a.micro_batch == b.micro_batch &&
            a.step + 1 == b.step)
          (a.is_send ? routes.sends_more : routes.receives_more)[traffic.keyOf(
              a.channel, a.micro_batch)] = true;
      }
  }

  const std::vector<Place> &places;
  const Traffic &traffic;
  const std::vector<bool> have;
  struct Round {
    int split;
    std::set<int> devices;
  };
  std::vector<Round> rounds;
  Routes routes;
};

} // namespace

const std::vector<int> *Routes::group(int split, int device) const {
  if (split >= 0)
    for (const std::vector<int> &group : splits[size_t(split)])
      if (std::find(group.begin(), group.end(), device) != group.end())
        return &group;
  return nullptr;
}

Routes chooseRoutes(const std::vector<Place> &places, const Traffic &traffic) {
  return Choice(places, traffic).make();
}

} // namespace partita::runtime::nccl
