//===- PlanText.cpp - A plan as people read it ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/PlanText.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace partita::abi {

std::string modulesText(const std::vector<std::string> &scopes) {
  constexpr size_t kMost = 2;
  return scopes.size() <= kMost ? namesText(scopes)
                                : scopes.front() + " to " + scopes.back();
}

std::string stagesText(const std::vector<StageRow> &stages) {
  const bool hasModules =
      std::any_of(stages.begin(), stages.end(),
                  [](const StageRow &stage) { return !stage.scopes.empty(); });
  std::vector<std::string> header = {"stage",  "device",      "blocks",
                                     ">flops", ">parameters", ">activations",
                                     ">sends", ">peak",       ">time"};
  constexpr size_t kModules = 3; // the column, if there is one
  if (hasModules)
    header.insert(header.begin() + kModules, "modules");
  Table table(header);
  for (const StageRow &stage : stages) {
    std::vector<std::string> row = {
        stage.name,
        stage.device,
        stage.blocks.empty() ? "(empty)" : namesText(stage.blocks),
        countText(stage.flops),
        bytesText(stage.parameter_bytes),
        bytesText(stage.activation_bytes),
        bytesText(stage.sent_bytes),
        bytesText(stage.peak_bytes),
        timeText(double(stage.duration_ns))};
    if (hasModules)
      row.insert(row.begin() + kModules, modulesText(stage.scopes));
    table.add(row);
  }
  return table.text();
}

void completeRow(MemoryRow &row, int64_t arena, int64_t parameters,
                 int64_t packed, int64_t workspace) {
  row.weights = parameters - row.states;
  row.gaps = arena - row.work - row.kept - row.gradients;
  row.packed = packed;
  row.workspace = workspace;
  row.peak = arena + parameters + packed + workspace;
}

std::vector<std::pair<const char *, int64_t>>
memoryFields(const MemoryRow &row) {
  return {{"state_bytes", row.states},       {"weight_bytes", row.weights},
          {"gradient_bytes", row.gradients}, {"kept_bytes", row.kept},
          {"work_bytes", row.work},          {"gap_bytes", row.gaps},
          {"packed_bytes", row.packed},      {"workspace_bytes", row.workspace},
          {"peak_bytes", row.peak},          {"host_bytes", row.host}};
}

std::string memoryText(const std::vector<MemoryRow> &rows) {
  if (rows.empty())
    return "";
  std::vector<std::string> header = {
      "memory", ">states", ">weights", ">gradients", ">kept",
      ">work",  ">gaps",   ">packed",  ">library",   ">peak"};
  const bool has_host =
      std::any_of(rows.begin(), rows.end(),
                  [](const MemoryRow &row) { return row.host > 0; });
  if (has_host)
    header.push_back(">on the host");
  Table table(header);
  for (const MemoryRow &each : rows) {
    std::vector<std::string> row = {each.device};
    for (const auto &[key, bytes] : memoryFields(each))
      row.push_back(bytesText(bytes));
    row.resize(header.size());
    table.add(row);
  }
  return table.text();
}

std::string machineText(const std::string &machine, int64_t threads) {
  if (machine.empty())
    return "";
  return " for " + machine +
         (threads > 0 ? " with " + countOf(threads, "core") + " a device" : "");
}

std::string stepText(const StepLine &step) {
  std::string rates;
  if (step.step_ns > 0) {
    const double rate =
        double(step.micro_batches * step.samples * step.replicas) * 1e9 /
        double(step.step_ns);
    rates = ", " +
            (rate < 1000 ? numberText(rate, 3)
                         : countText(static_cast<int64_t>(rate))) +
            " samples/s";
    if (step.alone_ns > 0)
      rates += ", " +
               numberText(double(step.alone_ns) / double(step.step_ns), 3) +
               " times one device";
  }
  return step.schedule + ", " +
         countOf(step.micro_batches, "micro-batch", "es") + " of " +
         countOf(step.samples, "sample") + " a step" +
         (step.replicas > 1
              ? " for each of " + std::to_string(step.replicas) + " replicas"
              : "") +
         "; predicted" +
         (step.machine.empty() ? std::string(" (uncalibrated)")
                               : machineText(step.machine, step.threads)) +
         ": step " + timeText(double(step.step_ns)) + ", bubble " +
         percentText(step.bubble) + rates + "\n";
}

std::string samplesText(const std::vector<SampleAxis> &ports,
                        const std::string &mixes) {
  std::string text;
  bool all = !ports.empty();
  for (const SampleAxis &port : ports) {
    all = all && port.axis == ports.front().axis;
    if (port.axis >= 0)
      text += (text.empty() ? "dimension " : ", ") + std::to_string(port.axis) +
              " of '" + port.name + "'";
  }
  if (text.empty())
    text = "whole: a run takes these shapes, once" +
           (mixes.empty() ? "" : ", because " + mixes);
  else if (all)
    text = "dimension " + std::to_string(ports.front().axis);
  return "samples: " + text + "\n";
}

namespace {

/// Messages that differ in the numbers of their names alone.
struct MessageGroup {
  std::vector<const MessageRow *> rows;

  /// What the rows say, if they agree on it; else without numbers.
  std::string common(std::string MessageRow::*field) const {
    const std::string &first = rows.front()->*field;
    const bool isSame =
        std::all_of(rows.begin(), rows.end(), [&](const MessageRow *row) {
          return row->*field == first;
        });
    return isSame ? first : foldNumbers(first);
  }
  /// "12 x 5.06 MiB".
  std::string times(const std::string &each) const {
    return rows.size() == 1 ? each : std::to_string(rows.size()) + " x " + each;
  }
};

} // namespace

/// In the order of their first rows.
static std::vector<MessageGroup>
groupMessages(const std::vector<MessageRow> &messages, bool perStep) {
  std::vector<MessageGroup> groups;
  std::map<std::tuple<std::string, std::string, std::string, int64_t, int64_t>,
           size_t>
      known;
  for (const MessageRow &each : messages) {
    if (each.per_step != perStep)
      continue;
    auto [it, isNew] =
        known.try_emplace({foldNumbers(each.value), each.how,
                           foldNumbers(each.why), each.bytes, each.duration_ns},
                          groups.size());
    if (isNew)
      groups.emplace_back();
    groups[it->second].rows.push_back(&each);
  }
  return groups;
}

std::string messagesText(const std::vector<MessageRow> &messages) {
  if (messages.empty())
    return "nothing is sent\n";
  std::string text;
  for (bool per_step : {false, true}) {
    Table table({"value", "how", ">bytes", ">time", "why"});
    const std::vector<MessageGroup> groups = groupMessages(messages, per_step);
    for (const MessageGroup &group : groups) {
      const MessageRow &first = *group.rows.front();
      table.add({group.common(&MessageRow::value), first.how,
                 group.times(bytesText(first.bytes)),
                 first.duration_ns < 0
                     ? ""
                     : group.times(timeText(double(first.duration_ns))),
                 group.common(&MessageRow::why)});
    }
    if (!groups.empty())
      text += (per_step ? "once a step:\n"
                        : "what each device sends in a micro-batch:\n") +
              table.text();
  }
  return text;
}

} // namespace partita::abi
