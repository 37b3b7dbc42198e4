//===- MachineFile.cpp - What was measured of a machine -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/MachineFile.h"

#include "compiler/files/Nesting.h"
#include "compiler/files/ReadFile.h"
#include "runtime/abi/Text.h"
#include "runtime/abi/machine.h"

#include "llvm/Support/JSON.h"

#include <cmath>

using namespace llvm;
namespace key = partita::abi::machine;

namespace partita {

double MeasuredTable::at(ArrayRef<double> point) const {
  // Corners of the cell around the point, with their weights.
  std::vector<std::pair<size_t, double>> corners{{0, 1.0}};
  for (auto [axis, coordinates] : llvm::enumerate(axes)) {
    size_t above = 0;
    while (above < coordinates.size() && coordinates[above] < point[axis])
      ++above;
    size_t below = above ? above - 1 : 0;
    above = std::min(above, coordinates.size() - 1);
    double share = 0;
    if (above != below)
      share = std::log(point[axis] / coordinates[below]) /
              std::log(coordinates[above] / coordinates[below]);
    std::vector<std::pair<size_t, double>> next;
    for (auto [index, weight] : corners) {
      next.push_back(
          {index * coordinates.size() + below, weight * (1 - share)});
      if (share > 0)
        next.push_back({index * coordinates.size() + above, weight * share});
    }
    corners = std::move(next);
  }
  bool positive = true;
  double sum = 0, logarithm = 0;
  for (auto [index, weight] : corners) {
    positive &= values[index] > 0;
    sum += weight * values[index];
    logarithm += weight * std::log(std::max(values[index], 1e-30));
  }
  return positive ? std::exp(logarithm) : sum;
}

namespace {

/// A table and the axes it must have, in order.
struct Expectation {
  const char *name;
  std::vector<const char *> axes;
  bool needsCompany = false; ///< only where there is another core
};

const std::vector<Expectation> &getExpectations() {
  static const std::vector<Expectation> all = {
      {key::kDot, {"rows", "columns", "depth"}},
      {key::kDotPlain, {"rows", "columns", "depth"}},
      {key::kConv, {"taps", "stride", "in", "out", "side"}},
      {key::kWinograd, {"in", "out", "side"}},
      {key::kDepthwise, {"taps", "stride", "channels", "side"}},
      {key::kPool, {"taps", "channels", "side"}},
      {key::kAttention, {"rows", "columns", "depth"}},
      {key::kCold, {"rows", "bytes"}},
      {key::kRead, {"bytes"}},
      {key::kEviction, {"bytes"}},
      {key::kTransfer, {"bytes"}, true},
      {key::kCollective, {"bytes"}, true},
      {key::kSimple, {}},
      {key::kExponential, {}},
      {key::kDivide, {}},
      {key::kReordered, {}},
      {key::kEpilogueGelu, {}},
      {key::kEpilogueExp, {}},
      {key::kEpilogueBinary, {}},
      {key::kInteger, {}},
      {key::kDispatch, {}},
      {key::kContentionCompute, {}},
      {key::kContentionMemory, {}},
      {key::kContentionCache, {}}};
  return all;
}

class MachineReader {
public:
  explicit MachineReader(StringRef path) : path(path) {}

  Expected<MachineFile> read() {
    auto buffer = files::readFile(path, files::kMostTextBytes);
    if (!buffer)
      return fail("cannot be read: " + toString(buffer.takeError()));
    StringRef text = (*buffer)->getBuffer();
    if (auto deep = files::findDeepNesting(text, files::Syntax::json))
      return fail("cannot be read: " + *deep);
    Expected<json::Value> value = json::parse(text);
    if (!value)
      return fail("is no JSON, or cut off: " + toString(value.takeError()));
    const json::Object *object = value->getAsObject();
    if (!object || !object->get(key::kFormatKey))
      return fail("is no description of a machine");
    if (object->getInteger(key::kFormatKey) != key::kFormatVersion)
      return fail("is of another version");
    MachineFile file;
    auto cpu = object->getString("cpu");
    auto id = object->getString(key::kIdKey);
    auto level = object->getString("level");
    auto cores = object->getInteger("cores");
    const json::Array *teams = object->getArray("teams");
    if (!cpu || !id || !level || !cores || *cores < 1 || !teams ||
        teams->empty())
      return fail("does not say cpu, id, level, cores and teams");
    file.cpu = cpu->str();
    file.id = id->str();
    file.cores = *cores;
    file.lanes = *level == "x86-64-v4" ? 16 : *level == "x86-64-v3" ? 8 : 4;
    for (const json::Value &value : *teams)
      if (Error error = readTeam(value, file))
        return std::move(error);
    if (const json::Value *devices = object->get(key::kDevicesKey)) {
      if (!devices->getAsArray())
        return fail("has no list of devices");
      for (const json::Value &value : *devices->getAsArray())
        if (Error error = readDevice(value, file.devices.emplace_back()))
          return std::move(error);
    }
    return file;
  }

private:
  Error fail(const Twine &what) {
    return createStringError("the machine file '" + path + "' " + what +
                             "; write one with partita-run --calibrate FILE");
  }

  Error readTeam(const json::Value &value, MachineFile &file) {
    MeasuredTeam team;
    const json::Object *object = value.getAsObject();
    auto threads = object ? object->getInteger("threads") : std::nullopt;
    const json::Object *tables = object ? object->getObject("tables") : nullptr;
    if (!threads || *threads < 1 || !tables ||
        (!file.teams.empty() && file.teams.back().threads >= *threads))
      return fail("has a team without threads or tables");
    team.threads = *threads;
    for (const Expectation &expected : getExpectations()) {
      const json::Object *table = tables->getObject(expected.name);
      if (!table) {
        if (expected.needsCompany)
          continue;
        return fail("lacks the table '" + Twine(expected.name) + "' for " +
                    abi::countOf(team.threads, "thread"));
      }
      if (!readTable(*table, expected, team.tables[expected.name]))
        return fail("has a wrong table '" + Twine(expected.name) + "' for " +
                    abi::countOf(team.threads, "thread"));
    }
    if (const json::Value *work = object->get(key::kWorkKey);
        work && !readWork(work->getAsObject(), team))
      return fail("has wrong times of work for " +
                  abi::countOf(team.threads, "thread"));
    file.teams.push_back(std::move(team));
    return Error::success();
  }

  Error readDevice(const json::Value &value, MeasuredDevice &device) {
    const json::Object *object = value.getAsObject();
    auto text = [&](const char *name) {
      return object ? object->getString(name) : std::nullopt;
    };
    auto kind = text("kind"), architecture = text("architecture"),
         name = text("name");
    const json::Object *speeds = object ? object->getObject("rates") : nullptr;
    if (!kind || !architecture || !name || !speeds)
      return fail("has a device without kind, architecture, name and rates");
    device.kind = kind->str();
    device.architecture = architecture->str();
    device.name = name->str();
    for (const char *rate :
         {key::kProcessors, key::kClock, key::kMemory, key::kLaunch, key::kUnit,
          key::kCopy, key::kHost, key::kPeer}) {
      const json::Value *found = speeds->get(rate);
      // Where there is one device, nothing goes from one to another. Older
      // files do not say what a unit takes.
      if (!found && (rate == key::kPeer || rate == key::kUnit))
        continue;
      auto number = found ? found->getAsNumber() : std::nullopt;
      if (!number || !std::isfinite(*number) || *number <= 0 || *number > 1e15)
        return fail((found ? "has a wrong rate '" : "lacks the rate '") +
                    Twine(rate) + "' of the device " + device.name);
      device.speeds[rate] = *number;
    }
    return Error::success();
  }

  static bool readWork(const json::Object *object, MeasuredTeam &team) {
    if (!object)
      return false;
    for (const auto &[devices, list] : *object) {
      int64_t count = 0;
      const json::Object *times = list.getAsObject();
      if (StringRef(devices).getAsInteger(10, count) || count < 1 || !times)
        return false;
      for (const auto &[text, value] : *times) {
        uint64_t key = 0;
        std::vector<double> pair;
        if (StringRef(text).getAsInteger(16, key) ||
            !readNumbers(value.getAsArray(), pair) || pair.size() != 2 ||
            pair[0] <= 0 || pair[1] <= 0)
          return false;
        team.work[count][key] = pair[0] / pair[1];
      }
    }
    return true;
  }

  static bool readNumbers(const json::Array *array, std::vector<double> &out) {
    if (!array || array->empty())
      return false;
    for (const json::Value &value : *array) {
      std::optional<double> number = value.getAsNumber();
      if (!number || !std::isfinite(*number) || *number < 0 || *number > 1e15)
        return false;
      out.push_back(*number);
    }
    return true;
  }

  static bool readTable(const json::Object &object, const Expectation &expected,
                        MeasuredTable &table) {
    const json::Object *axes = object.getObject("axes");
    if (!axes || axes->size() != expected.axes.size())
      return false;
    size_t count = 1;
    for (const char *name : expected.axes) {
      std::vector<double> &at = table.axes.emplace_back();
      if (!readNumbers(axes->getArray(name), at) || at.front() <= 0)
        return false;
      for (size_t i = 1; i < at.size(); ++i)
        if (at[i] <= at[i - 1])
          return false;
      count *= at.size();
    }
    if (!readNumbers(object.getArray("values"), table.values) ||
        table.values.size() != count)
      return false;
    // Times may be 0; what is divided by may not.
    StringRef unit = object.getString("unit").value_or("");
    bool isTime = unit.starts_with("ns");
    return isTime || llvm::all_of(table.values, [](double v) { return v > 0; });
  }

  StringRef path;
};

} // namespace

Expected<MachineFile> MachineFile::read(StringRef path) {
  return MachineReader(path).read();
}

double MeasuredTeam::getWorkRatio(uint64_t key, int64_t devices) const {
  auto find = [key](const std::map<uint64_t, double> &ratios) {
    auto it = ratios.find(key);
    return it != ratios.end() ? it->second : 0;
  };
  if (auto it = work.find(devices); it != work.end())
    if (double ratio = find(it->second); ratio > 0)
      return ratio;
  for (const auto &[others, ratios] : work)
    if (double ratio = find(ratios); ratio > 0)
      return ratio;
  return 1;
}

const MeasuredTeam &MachineFile::getTeam(int64_t threads) const {
  const MeasuredTeam *best = &teams.front();
  for (const MeasuredTeam &team : teams)
    if (team.threads <= threads)
      best = &team;
  return *best;
}

const MeasuredDevice *MachineFile::findDevice(StringRef kind,
                                              StringRef architecture) const {
  const MeasuredDevice *found = nullptr;
  for (const MeasuredDevice &device : devices) {
    if (device.kind != kind)
      continue;
    if (device.architecture == architecture)
      return &device;
    found = found ? found : &device;
  }
  return found;
}

} // namespace partita
