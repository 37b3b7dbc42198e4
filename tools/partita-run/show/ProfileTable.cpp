//===- ProfileTable.cpp - Where the time of a step goes -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/ProfileTable.h"

#include "tools/partita-run/measure/Benchmark.h"
#include "tools/partita-run/show/Format.h"

#include "runtime/base/Programs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace partita::run {

namespace {

/// Instructions that the text shows.
constexpr size_t kShown = 60;

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

} // namespace

ProfileTable::ProfileTable(const Model &model,
                           const std::vector<Profile::Event> &events,
                           const std::vector<double> &stepNs)
    : steps(int(stepNs.size())), step(median(stepNs)) {
  // Instruction -1 is the unit; counts are of all steps.
  std::map<std::tuple<int, int, int>, std::pair<Times, int>> work;
  std::map<std::pair<int, int>, std::pair<Times, int>> together;
  std::map<int, Times> units, ports, transfer, collective, all;
  std::map<int, bool> seen;
  for (const Profile::Event &item : events) {
    const runtime::ProfileEvent &event = item.event;
    const abi::ProgramStep entry = runtime::stepOf(
        runtime::programOf(*model.plan, event.device), event.step);
    const double ns = double(event.end_ns - event.begin_ns);
    seen[item.run] = true;
    if (event.instruction < 0)
      all[event.device][item.run] += ns;
    if (entry.kind == abi::StepKind::run) {
      auto &[times, count] =
          work[{event.device, entry.subject, event.instruction}];
      times[item.run] += ns;
      ++count;
      if (event.instruction < 0)
        units[event.device][item.run] += ns;
    } else if (entry.kind == abi::StepKind::load_input ||
               entry.kind == abi::StepKind::store_output) {
      ports[event.device][item.run] += ns;
    } else if (abi::getInfo(entry.kind).subject ==
               abi::StepSubject::collective) {
      auto &[times, count] = together[{event.device, entry.subject}];
      times[item.run] += ns;
      count += entry.kind == abi::StepKind::finish;
      collective[event.device][item.run] += ns;
    } else {
      transfer[event.device][item.run] += ns;
    }
  }
  const int recorded = std::max(1, int(seen.size()));
  for (int d = 0; d < model.devices; ++d) {
    Device row{d,
               median(units[d]),
               median(ports[d]),
               median(transfer[d]),
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
    const abi::Unit *unit =
        runtime::programOf(*model.plan, d).units()->Get(unsigned(u));
    Work row;
    row.device = d;
    row.unit = runtime::text(unit->name());
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
      for (int64_t k = 0; k < runtime::length(unit->instructions()); ++k)
        add(*unit->instructions()->Get(unsigned(k)));
      predicted = unit->duration_ns();
    } else {
      const abi::Instruction *instruction =
          unit->instructions()->Get(unsigned(i));
      add(*instruction);
      row.name = runtime::text(instruction->label());
      row.kind = kindOf(model, *instruction);
    }
    row.predicted = double(predicted) * row.runs;
    if (row.ns > 0) {
      row.gflops = double(flops) * row.runs / row.ns;
      row.gbytes = double(bytes) * row.runs / row.ns;
    }
    (i < 0 ? this->units : instructions).push_back(row);
  }
  for (const auto &[key, value] : together) {
    const abi::Collective &described =
        *model.plan->collectives()->Get(unsigned(key.second));
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

std::string ProfileTable::text(const Model &model) const {
  auto share = [&](double ns) { return percentText(step > 0 ? ns / step : 0); };
  std::string result = "profile: medians of " + std::to_string(steps) +
                       " step" + (steps == 1 ? "" : "s") + "; a step takes " +
                       timeText(step) + "\n\n";
  Table byDevice({"device", "units", "inputs, outputs", "transfers",
                  "collectives", "covered"},
                 {false, true, true, true, true, true});
  for (const Device &row : devices)
    byDevice.add({model.deviceName(row.device), share(row.units),
                  share(row.ports), share(row.transfer), share(row.collective),
                  percentText(row.covered)});
  result += byDevice.text() + "\n";
  const std::vector<bool> right = {false, false, true, true,
                                   true,  true,  true, true};
  auto cells = [&](const Work &row) {
    return std::vector<std::string>{
        timeText(row.ns), share(row.ns), numberText(row.gflops, 3),
        numberText(row.gbytes, 3), timeText(row.predicted)};
  };
  Table byUnit({"unit", "device", "runs", "time", "of the step", "GFLOP/s",
                "GB/s", "predicted"},
               right);
  for (const Work &row : units) {
    std::vector<std::string> line = {row.unit, model.deviceName(row.device),
                                     std::to_string(row.runs)};
    for (std::string &cell : cells(row))
      line.push_back(std::move(cell));
    byUnit.add(std::move(line));
  }
  result += byUnit.text() + "\n";
  if (!collectives.empty()) {
    Table byCollective({"collective", "value", "device", "runs", "time",
                        "of the step", "GB/s", "predicted"},
                       {false, false, false, true, true, true, true, true});
    for (const Collective &row : collectives)
      byCollective.add({row.kind, row.value, model.deviceName(row.device),
                        std::to_string(row.runs), timeText(row.ns),
                        share(row.ns), numberText(row.gbytes, 3),
                        timeText(row.predicted)});
    result += byCollective.text() + "\n";
  }
  std::vector<const Work *> sorted;
  for (const Work &row : instructions)
    sorted.push_back(&row);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Work *a, const Work *b) { return a->ns > b->ns; });
  Table byWork({"unit", "work", "node", "time", "of the step", "GFLOP/s",
                "GB/s", "predicted"},
               {false, false, false, true, true, true, true, true});
  double rest = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Work &row = *sorted[i];
    if (i >= kShown) {
      rest += row.ns;
      continue;
    }
    std::vector<std::string> line = {row.unit, row.kind, row.name};
    for (std::string &cell : cells(row))
      line.push_back(std::move(cell));
    byWork.add(std::move(line));
  }
  result += byWork.text();
  if (sorted.size() > kShown)
    result += "and " + std::to_string(sorted.size() - kShown) +
              " more: " + share(rest) + " (--json lists all)\n";
  return result;
}

nlohmann::ordered_json ProfileTable::json(const Model &model) const {
  using Json = nlohmann::ordered_json;
  Json result = {{"steps", steps},
                 {"step_us", step / 1e3},
                 {"devices", Json::array()},
                 {"units", Json::array()},
                 {"instructions", Json::array()},
                 {"collectives", Json::array()}};
  for (const Device &row : devices)
    result["devices"].push_back({{"device", model.deviceName(row.device)},
                                 {"units_us", row.units / 1e3},
                                 {"ports_us", row.ports / 1e3},
                                 {"transfers_us", row.transfer / 1e3},
                                 {"collectives_us", row.collective / 1e3},
                                 {"covered", row.covered}});
  auto add = [&](const char *key, const Work &row) {
    Json json = {{"unit", row.unit}, {"device", model.deviceName(row.device)}};
    if (!row.kind.empty()) {
      json["node"] = row.name;
      json["kind"] = row.kind;
    }
    json.update({{"runs", row.runs},
                 {"us", row.ns / 1e3},
                 {"least_us", row.least / 1e3},
                 {"gflops", row.gflops},
                 {"gbytes", row.gbytes},
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
                                     {"gbytes", row.gbytes},
                                     {"predicted_us", row.predicted / 1e3}});
  return result;
}

} // namespace partita::run
