//===- ProfileText.cpp - A profile's tables as text and JSON --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/Format.h"
#include "tools/partita-run/show/ProfileTable.h"
#include "tools/partita-run/show/Stages.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace partita::run {

/// Collectives of a device that differ in the numbers of their names alone are
/// one, with the sum of their times.
static std::vector<ProfileTable::Collective>
foldLayers(const std::vector<ProfileTable::Collective> &rows) {
  std::vector<ProfileTable::Collective> folded;
  std::map<std::tuple<int, std::string, std::string>, size_t> known;
  for (const ProfileTable::Collective &row : rows) {
    auto [it, isNew] = known.try_emplace(
        {row.device, row.kind, abi::foldNumbers(row.value)}, folded.size());
    if (isNew) {
      folded.push_back(row);
      continue;
    }
    ProfileTable::Collective &sum = folded[it->second];
    if (sum.value != row.value)
      sum.value = abi::foldNumbers(row.value);
    sum.runs += row.runs;
    sum.add(row);
  }
  return folded;
}

/// The units of a stage and phase that lie between collectives ("U0", "U0.1"
/// and so on) are one.
static std::vector<ProfileTable::Work>
foldParts(const std::vector<ProfileTable::Work> &units) {
  std::vector<ProfileTable::Work> folded;
  std::map<std::pair<int, std::string>, size_t> known;
  for (const ProfileTable::Work &row : units) {
    const std::string base = row.unit.substr(0, row.unit.find('.'));
    auto [it, isNew] = known.try_emplace({row.device, base}, folded.size());
    if (isNew) {
      folded.push_back(row);
      folded.back().unit = base;
      continue;
    }
    folded[it->second].add(row);
  }
  return folded;
}

void ProfileTable::Cost::add(const Cost &other) {
  ns += other.ns;
  least += other.least;
  flops += other.flops;
  bytes += other.bytes;
  predicted += other.predicted;
}

std::string ProfileTable::share(double ns) const {
  return percentText(step > 0 ? ns / step : 0);
}

std::vector<std::string> ProfileTable::cells(std::vector<std::string> first,
                                             const Cost &cost) const {
  first.insert(first.end(),
               {timeText(cost.ns), share(cost.ns), numberText(cost.gflops(), 3),
                numberText(cost.gbytes(), 3), timeText(cost.predicted)});
  return first;
}

std::string ProfileTable::text(const Model &model, int top) const {
  const auto shown = size_t(top);
  std::string result = "profile: medians of " + countOf(steps, "step") +
                       "; a step takes " + timeText(step) + "\n\n" +
                       legendText(model) + "\n";
  Table byDevice({"device", ">units", ">inputs, outputs", ">waiting", ">moving",
                  ">collectives", ">covered"});
  for (const Device &row : devices)
    byDevice.add({model.deviceName(row.device), share(row.units),
                  share(row.ports), share(row.waiting), share(row.moving),
                  share(row.collective), percentText(row.covered)});
  result += byDevice.text() + "\n";
  Table byKind(
      {"kind of work", ">runs", ">time, all devices", ">of their time"});
  for (const Kind &row : kinds)
    byKind.add({row.name, std::to_string(row.runs), timeText(row.ns),
                share(row.ns / double(std::max<size_t>(devices.size(), 1)))});
  result += byKind.text() + "\n";
  Table byUnit({"unit", "device", ">runs", ">time", ">of the step", ">GFLOP/s",
                ">GB/s", ">predicted"});
  for (const Work &row : foldParts(units))
    byUnit.add(cells(
        {row.unit, model.deviceName(row.device), std::to_string(row.runs)},
        row));
  result += byUnit.text() + "\n";
  if (!transfers.empty()) {
    Table byTransfer({"value", "from", "to", ">runs", ">bytes", ">waiting",
                      ">moving", ">predicted"});
    for (const Transfer &row : transfers)
      byTransfer.add({row.value, model.deviceName(row.from),
                      model.deviceName(row.device), std::to_string(row.runs),
                      bytesText(row.bytes), timeText(row.waiting),
                      timeText(row.moving), timeText(row.predicted)});
    result += byTransfer.text() + "\n";
  }
  if (!collectives.empty()) {
    Table byCollective({"collective", "value", "device", ">runs", ">time",
                        ">of the step", ">GB/s", ">predicted"});
    for (const Collective &row : foldLayers(collectives))
      byCollective.add({row.kind, row.value, model.deviceName(row.device),
                        std::to_string(row.runs), timeText(row.ns),
                        share(row.ns), numberText(row.gbytes(), 3),
                        timeText(row.predicted)});
    result += byCollective.text() + "\n";
  }
  if (!modules.empty())
    result += modulesText(shown) + "\n";
  std::vector<const Work *> sorted;
  for (const Work &row : instructions)
    sorted.push_back(&row);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Work *a, const Work *b) { return a->ns > b->ns; });
  const bool hasScopes =
      std::any_of(instructions.begin(), instructions.end(),
                  [](const Work &row) { return !row.scopes.empty(); });
  std::vector<std::string> header = {"unit", "work", "node"};
  if (hasScopes)
    header.push_back("module");
  header.insert(header.end(),
                {">time", ">of the step", ">GFLOP/s", ">GB/s", ">predicted"});
  Table byWork(header);
  double rest = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Work &row = *sorted[i];
    if (i >= shown) {
      rest += row.ns;
      continue;
    }
    std::vector<std::string> line = {row.unit, row.kind, row.name};
    if (hasScopes)
      line.push_back(joinScopes(row.scopes));
    byWork.add(cells(std::move(line), row));
  }
  result += byWork.text();
  if (sorted.size() > shown)
    result += "and " + std::to_string(sorted.size() - shown) +
              " more: " + share(rest) + " (--top, or --json)\n";
  return result;
}

/// The longest modules, each below the one that it is in.
std::string ProfileTable::modulesText(size_t shown) const {
  std::vector<double> times;
  for (const Module &row : modules)
    times.push_back(row.ns);
  std::sort(times.rbegin(), times.rend());
  const double least = times[std::min(shown, times.size()) - 1];
  Table table({"module", ">runs", ">time", ">of the step", ">GFLOP/s", ">GB/s",
               ">predicted"});
  for (const Module &row : modules)
    if (row.ns >= least)
      table.add(cells({std::string(size_t(2 * row.depth), ' ') + row.name,
                       std::to_string(row.runs)},
                      row));
  return table.text();
}

nlohmann::ordered_json ProfileTable::json(const Model &model) const {
  using Json = nlohmann::ordered_json;
  Json result = {{"steps", steps},
                 {"step_us", step / 1e3},
                 {"stages", legendJson(model)},
                 {"devices", Json::array()},
                 {"kinds", Json::array()},
                 {"units", Json::array()},
                 {"modules", Json::array()},
                 {"instructions", Json::array()},
                 {"transfers", Json::array()},
                 {"collectives", Json::array()}};
  for (const Device &row : devices)
    result["devices"].push_back({{"device", model.deviceName(row.device)},
                                 {"units_us", row.units / 1e3},
                                 {"ports_us", row.ports / 1e3},
                                 {"waiting_us", row.waiting / 1e3},
                                 {"moving_us", row.moving / 1e3},
                                 {"collectives_us", row.collective / 1e3},
                                 {"covered", row.covered}});
  for (const Kind &row : kinds)
    result["kinds"].push_back(
        {{"kind", row.name}, {"runs", row.runs}, {"us", row.ns / 1e3}});
  for (const Module &row : modules)
    result["modules"].push_back({{"module", row.name},
                                 {"depth", row.depth},
                                 {"runs", row.runs},
                                 {"us", row.ns / 1e3},
                                 {"gflops", row.gflops()},
                                 {"gbytes", row.gbytes()},
                                 {"predicted_us", row.predicted / 1e3}});
  for (const Transfer &row : transfers)
    result["transfers"].push_back({{"value", row.value},
                                   {"from", model.deviceName(row.from)},
                                   {"to", model.deviceName(row.device)},
                                   {"runs", row.runs},
                                   {"bytes", row.bytes},
                                   {"waiting_us", row.waiting / 1e3},
                                   {"moving_us", row.moving / 1e3},
                                   {"predicted_us", row.predicted / 1e3}});
  auto add = [&](const char *key, const Work &row) {
    Json json = {{"unit", row.unit}, {"device", model.deviceName(row.device)}};
    if (!row.kind.empty()) {
      json["node"] = row.name;
      json["scopes"] = row.scopes;
      json["kind"] = row.kind;
    }
    json.update({{"runs", row.runs},
                 {"us", row.ns / 1e3},
                 {"least_us", row.least / 1e3},
                 {"gflops", row.gflops()},
                 {"gbytes", row.gbytes()},
                 {"predicted_us", row.predicted / 1e3}});
    result[key].push_back(std::move(json));
  };
  for (const Work &row : units)
    add("units", row);
  for (const Work &row : instructions)
    add("instructions", row);
  for (const Collective &row : collectives)
    result["collectives"].push_back({{"kind", row.kind},
                                     {"value", row.value},
                                     {"device", model.deviceName(row.device)},
                                     {"runs", row.runs},
                                     {"us", row.ns / 1e3},
                                     {"least_us", row.least / 1e3},
                                     {"gbytes", row.gbytes()},
                                     {"predicted_us", row.predicted / 1e3}});
  return result;
}

} // namespace partita::run
