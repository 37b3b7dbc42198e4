//===- MachineRates.cpp - What was measured of a machine -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/MachineRates.h"

#include "runtime/abi/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

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

double TeamRates::bytesReadAt(double rate) const {
  for (const RateTable &table : tables) {
    if (table.name != abi::machine::kRead)
      continue;
    const std::vector<double> &bytes = table.axes[0].at, &rates = table.values;
    // Rates of a few bytes are those of starting the threads.
    size_t best =
        size_t(std::max_element(rates.begin(), rates.end()) - rates.begin());
    for (size_t i = best; i + 1 < bytes.size(); ++i)
      if (rates[i + 1] <= rate) {
        double part = rate >= rates[i] ? 0
                                       : std::log(rates[i] / rate) /
                                             std::log(rates[i] / rates[i + 1]);
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

std::string MachineRates::json() const {
  std::string text = "{\n  " + quoted(abi::machine::kFormatKey) + ": " +
                     std::to_string(abi::machine::kFormatVersion) +
                     ",\n  \"cpu\": " + quoted(cpu) +
                     ",\n  \"cores\": " + std::to_string(cores) +
                     ",\n  \"level\": " + quoted(level) + ",\n  \"teams\": [\n";
  for (size_t i = 0; i < teams.size(); ++i) {
    text += "    {\"threads\": " + std::to_string(teams[i].threads) +
            ", \"tables\": {\n";
    for (size_t t = 0; t < teams[i].tables.size(); ++t)
      text += tableJson(teams[i].tables[t]) +
              (t + 1 < teams[i].tables.size() ? ",\n" : "\n");
    text += std::string("    }}") + (i + 1 < teams.size() ? "," : "") + "\n";
  }
  return text + "  ]\n}\n";
}

} // namespace partita::runtime
