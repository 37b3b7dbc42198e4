//===- MachineSpeeds.cpp - What was measured of a machine -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/MachineSpeeds.h"

#include "runtime/abi/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <xxhash.h>

namespace partita::runtime {

RateTable::RateTable(std::string name, std::string unit,
                     std::vector<RateAxis> axes)
    : name(std::move(name)), unit(std::move(unit)), axes(std::move(axes)) {
  size_t count = 1;
  for (const RateAxis &axis : this->axes)
    count *= axis.at.size();
  values.assign(count, 0);
}

std::vector<size_t> RateTable::position(size_t index) const {
  std::vector<size_t> result(axes.size());
  for (size_t axis = axes.size(); axis-- > 0;) {
    result[axis] = index % axes[axis].at.size();
    index /= axes[axis].at.size();
  }
  return result;
}

void RateTable::fill() {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0)
      continue;
    double sum = 0;
    int count = 0;
    size_t stride = 1;
    for (size_t axis = axes.size(); axis-- > 0;) {
      if (position(i)[axis] > 0 && values[i - stride] > 0) {
        sum += std::log(values[i - stride]);
        ++count;
      }
      stride *= axes[axis].at.size();
    }
    if (count)
      values[i] = std::exp(sum / count);
  }
}

double TeamSpeeds::bytesReadAt(double rate) const {
  for (const RateTable &table : tables) {
    if (table.name != abi::machine::kRead)
      continue;
    const std::vector<double> &bytes = table.axes[0].at, &values = table.values;
    // Rates of a few bytes are those of starting the threads.
    size_t best =
        size_t(std::max_element(values.begin(), values.end()) - values.begin());
    for (size_t i = best; i + 1 < bytes.size(); ++i)
      if (values[i + 1] <= rate) {
        double part = rate >= values[i]
                          ? 0
                          : std::log(values[i] / rate) /
                                std::log(values[i] / values[i + 1]);
        return bytes[i] * std::pow(bytes[i + 1] / bytes[i], part);
      }
    return bytes.back();
  }
  return 0;
}

static std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

static std::string numbers(const double *begin, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + number(begin[i]);
  return text;
}

static std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text)
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
  return result + "\"";
}

static std::string tableJson(const RateTable &table) {
  std::string text = "      " + quoted(table.name) +
                     ": {\"unit\": " + quoted(table.unit) + ", \"axes\": {";
  for (size_t axis = 0; axis < table.axes.size(); ++axis)
    text += (axis ? ", " : "") + quoted(table.axes[axis].name) + ": [" +
            numbers(table.axes[axis].at.data(), table.axes[axis].at.size()) +
            "]";
  const size_t row = table.axes.empty() ? 1 : table.axes.back().at.size();
  text += "},\n        \"values\": [";
  for (size_t i = 0; i < table.values.size(); i += row)
    text += (i                           ? ",\n          "
             : table.values.size() > row ? "\n          "
                                         : "") +
            numbers(&table.values[i], row);
  return text + "]}";
}

static std::string hexadecimal(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(value));
  return text;
}

static std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += (text.empty() ? "" : ",\n") + line;
  return text;
}

static std::string workJson(const TeamSpeeds &team) {
  std::vector<std::string> all;
  for (const auto &[devices, times] : team.work) {
    std::vector<std::string> lines;
    for (const auto &[key, time] : times)
      lines.push_back("        " + quoted(hexadecimal(key)) + ": [" +
                      number(time.ns) + ", " + number(time.modelledNs) + "]");
    all.push_back("      " + quoted(std::to_string(devices)) + ": {\n" +
                  joined(lines) + "}");
  }
  return "    " + quoted(abi::machine::kWorkKey) + ": {\n" + joined(all) + "}";
}

std::string MachineSpeeds::json() const {
  std::vector<std::string> tables;
  std::string all;
  for (const TeamSpeeds &team : teams) {
    std::vector<std::string> texts;
    for (const RateTable &table : team.tables)
      texts.push_back(tableJson(table));
    all += tables.emplace_back(joined(texts));
  }
  std::string text = "{\n  " + quoted(abi::machine::kFormatKey) + ": " +
                     std::to_string(abi::machine::kFormatVersion) + ",\n  " +
                     quoted(abi::machine::kIdKey) + ": " +
                     quoted(hexadecimal(XXH3_64bits(all.data(), all.size()))) +
                     ",\n  \"cpu\": " + quoted(cpu) +
                     ",\n  \"cores\": " + std::to_string(cores) +
                     ",\n  \"level\": " + quoted(level) + ",\n  \"teams\": [\n";
  for (size_t i = 0; i < teams.size(); ++i) {
    text += "    {\"threads\": " + std::to_string(teams[i].threads) +
            ", \"tables\": {\n" + tables[i] + "\n    }";
    if (!teams[i].work.empty())
      text += ",\n" + workJson(teams[i]);
    text += std::string("}") + (i + 1 < teams.size() ? "," : "") + "\n";
  }
  text += "  ]";
  std::vector<std::string> lines;
  for (const DeviceFigures &device : devices) {
    std::vector<std::string> speeds;
    for (const auto &[name, value] : device.speeds)
      speeds.push_back("      " + quoted(name) + ": " + number(value));
    lines.push_back("    {\"kind\": " + quoted(device.kind) +
                    ", \"architecture\": " + quoted(device.architecture) +
                    ", \"name\": " + quoted(device.name) +
                    ",\n     \"rates\": {\n" + joined(speeds) + "}}");
  }
  if (!lines.empty())
    text += ",\n  " + quoted(abi::machine::kDevicesKey) + ": [\n" +
            joined(lines) + "\n  ]";
  return text + "\n}\n";
}

namespace {

using Json = nlohmann::ordered_json;

/// The most names in a file. An object that keeps its order compares each with
/// all before it.
constexpr size_t kMostNames = 1 << 15;

/// Stops where there are too many names.
struct NameCounter : nlohmann::json_sax<Json> {
  size_t names = 0;

  bool key(std::string &) override { return ++names <= kMostNames; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const std::string &) override {
    return true;
  }
  bool string(std::string &) override { return true; }
  bool binary(Json::binary_t &) override { return true; }
  bool start_object(size_t) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::detail::exception &) override {
    return false;
  }
};

/// Reads what MachineSpeeds::json writes. Throws where something else stands
/// there.
class Reader {
public:
  /// Of what the library itself does not look at.
  struct Unexpected {};

  static void read(const Json &json, MachineSpeeds &machine) {
    json.at(abi::machine::kIdKey).get_to(machine.id);
    json.at("cpu").get_to(machine.cpu);
    json.at("level").get_to(machine.level);
    machine.cores = integer(json.at("cores"));
    for (const Json &each : array(json.at("teams")))
      readTeam(each, machine.teams.emplace_back());
    if (auto found = json.find(abi::machine::kDevicesKey); found != json.end())
      for (const Json &each : array(*found))
        readDevice(each, machine.devices.emplace_back());
  }

private:
  static const Json::array_t &array(const Json &json) {
    return json.get_ref<const Json::array_t &>();
  }
  static const Json::object_t &object(const Json &json) {
    return json.get_ref<const Json::object_t &>();
  }
  static void require(bool isSo) {
    if (!isSo)
      throw Unexpected();
  }
  /// The library would take booleans and fractions, too.
  static int integer(const Json &json) {
    require(json.is_number_integer() && json >= 1 && json <= 1000000);
    return json.get<int>();
  }

  static void readDevice(const Json &json, DeviceFigures &device) {
    json.at("kind").get_to(device.kind);
    json.at("architecture").get_to(device.architecture);
    json.at("name").get_to(device.name);
    for (const auto &[name, value] : object(json.at("rates")))
      device.speeds.emplace_back(name, value.get<double>());
  }

  static void readTeam(const Json &json, TeamSpeeds &team) {
    team.threads = integer(json.at("threads"));
    for (const auto &[name, table] : object(json.at("tables"))) {
      RateTable &added = team.tables.emplace_back(name, "");
      table.at("unit").get_to(added.unit);
      table.at("values").get_to(added.values);
      size_t count = 1;
      for (const auto &[axis, at] : object(table.at("axes"))) {
        added.axes.push_back({axis, at.get<std::vector<double>>()});
        count *= added.axes.back().at.size();
      }
      require(added.values.size() == count);
    }
    if (auto work = json.find(abi::machine::kWorkKey); work != json.end())
      readWork(*work, team);
  }

  static void readWork(const Json &json, TeamSpeeds &team) {
    for (const auto &[devices, times] : object(json)) {
      const int count = parse<int>(devices, 10);
      for (const auto &[key, pair] : object(times)) {
        const auto both = pair.get<std::vector<double>>();
        require(both.size() == 2);
        team.work[count][parse<uint64_t>(key, 16)] = {both[0], both[1]};
      }
    }
  }

  template <typename Integer>
  static Integer parse(const std::string &text, int base) {
    Integer number = 0;
    const char *end = text.data() + text.size();
    require(std::from_chars(text.data(), end, number, base).ptr == end);
    return number;
  }
};

} // namespace

Expected<MachineSpeeds> MachineSpeeds::parse(std::string_view text) {
  NameCounter counter;
  Json::sax_parse(text, &counter);
  if (counter.names > kMostNames)
    return Status::error("has more than " + std::to_string(kMostNames) +
                         " names");
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto version =
      json.is_object() ? json.find(abi::machine::kFormatKey) : json.end();
  if (json.is_discarded() || version == json.end())
    return Status::error("is no description of a machine");
  if (*version != abi::machine::kFormatVersion)
    return Status::error("is of another version");
  MachineSpeeds machine;
  try {
    Reader::read(json, machine);
    return machine;
  } catch (const Json::exception &) {
  } catch (const Reader::Unexpected &) {
  }
  return Status::error("is not as partita-run wrote it");
}

} // namespace partita::runtime
