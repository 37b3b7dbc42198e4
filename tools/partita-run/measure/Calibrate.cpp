//===- Calibrate.cpp - partita-run --calibrate ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Run.h"
#include "tools/partita-run/show/Format.h"
#include "tools/partita-run/show/Progress.h"

#include "runtime/abi/machine.h"
#include "runtime/calibrate/Calibrate.h"
#include "runtime/io/PendingFile.h"

#include <algorithm>
#include <cstdio>

namespace partita::run {

using runtime::Expected;
using runtime::MachineSpeeds;
using runtime::RateTable;
using runtime::Status;

namespace {

/// The sorted values of a table; none if the team has no such table.
std::vector<double> valuesOf(const runtime::TeamSpeeds &team,
                             const std::string &table) {
  std::vector<double> values;
  for (const RateTable &each : team.tables)
    if (each.name == table && values.empty())
      values = each.values;
  std::sort(values.begin(), values.end());
  return values;
}

/// Least, median and largest value of every table, a column a team.
std::string speedsText(const MachineSpeeds &machine) {
  std::string text = machine.cpu + ", " + countOf(machine.cores, "core") +
                     ", " + machine.level + "\n\n";
  std::vector<std::string> header = {"measured", "unit"};
  for (const runtime::TeamSpeeds &team : machine.teams) {
    header.push_back(">" + countOf(team.threads, "thread") + ": least");
    header.insert(header.end(), {">median", ">most"});
  }
  Table table(header);
  if (machine.teams.empty())
    return text;
  for (const RateTable &first : machine.teams[0].tables) {
    std::vector<std::string> row = {first.name, first.unit};
    for (const runtime::TeamSpeeds &team : machine.teams) {
      const std::vector<double> values = valuesOf(team, first.name);
      if (values.size() < 2) {
        row.insert(row.end(),
                   {"", values.empty() ? "" : numberText(values[0]), ""});
        continue;
      }
      for (double value :
           {values.front(), values[values.size() / 2], values.back()})
        row.push_back(numberText(value));
    }
    table.add(std::move(row));
  }
  return text + table.text();
}

std::string unitOf(const std::string &rate) {
  using namespace abi::machine;
  if (rate == kClock)
    return " GHz";
  if (rate == kLaunch || rate == kUnit || rate == kCopy)
    return " ns";
  return rate == kProcessors ? "" : " GB/s";
}

/// What was measured of other devices, a column a device.
std::string devicesText(const MachineSpeeds &machine) {
  if (machine.devices.empty())
    return "";
  std::vector<std::string> header = {"measured"}, names;
  for (const runtime::DeviceFigures &device : machine.devices) {
    header.push_back(">" + device.name + " (" + device.architecture + ")");
    for (const auto &[name, value] : device.speeds)
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  }
  Table table(header);
  for (const std::string &name : names) {
    std::vector<std::string> row = {name};
    for (const runtime::DeviceFigures &device : machine.devices) {
      auto found =
          std::find_if(device.speeds.begin(), device.speeds.end(),
                       [&](const auto &rate) { return rate.first == name; });
      row.push_back(found == device.speeds.end()
                        ? ""
                        : numberText(found->second) + unitOf(name));
    }
    table.add(std::move(row));
  }
  return "\n" + table.text();
}

double medianOf(const runtime::TeamSpeeds &team, const char *table) {
  const std::vector<double> values = valuesOf(team, table);
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Whether a team of more threads is not faster where it should be by far: some
/// of its cores did something else.
bool wasBusy(const MachineSpeeds &machine) {
  const char *table = abi::machine::kConv;
  return machine.teams.size() > 1 &&
         medianOf(machine.teams.back(), table) <
             1.2 * medianOf(machine.teams.front(), table);
}

} // namespace

int runCalibration(const Options &options) {
  if (Status status = checkFolderOf(options.calibrate); !status.ok())
    return printError(status);
  runtime::CalibrateOptions settings;
  settings.seconds = options.calibrateSeconds;
  Expected<MachineSpeeds> machine = [&] {
    constexpr int kParts = 1000;
    Progress progress("measuring this machine", kParts, !options.json);
    settings.progress = [&](int done, int all) {
      progress.update(int64_t(done) * kParts / std::max(all, 1));
    };
    return runtime::calibrate(settings);
  }();
  if (!machine)
    return printError(machine.status());
  const std::string text = machine->json();
  if (Status status = runtime::writeFile(options.calibrate, text); !status.ok())
    return printError(status);
  if (wasBusy(*machine))
    remark(std::to_string(machine->teams.back().threads) +
           " threads computed hardly faster than " +
           std::to_string(machine->teams.front().threads) +
           ": other programs were at work; calibrate again when the machine is "
           "quiet");
  for (const std::string &what : machine->remarks)
    remark("not measured: " + what);
  std::fputs(
      (options.json ? text : speedsText(*machine) + devicesText(*machine))
          .c_str(),
      stdout);
  return 0;
}

} // namespace partita::run
