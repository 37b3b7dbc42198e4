//===- Placement.cpp - Which process runs which device --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Placement.h"

#include "runtime/abi/Text.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace partita::runtime::mpi {

using abi::countOf;

namespace {

/// The parts of a text between separators; at least one.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(separator)) != text.npos;
       text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

/// -1: it is not a number.
int numberOf(std::string_view text) {
  int number = -1;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

} // namespace

Placement::Placement(std::vector<std::vector<int>> all, int devices)
    : lists(std::move(all)), owners(size_t(devices)) {
  for (size_t process = 0; process < lists.size(); ++process) {
    std::sort(lists[process].begin(), lists[process].end());
    for (int device : lists[process])
      owners[size_t(device)] = int(process);
  }
}

Expected<Placement> Placement::even(int devices, int processes) {
  if (processes > devices)
    return Status::error(countOf(processes, "process", "es") + " for " +
                         countOf(devices, "device") +
                         ": a process has at least one");
  std::vector<std::vector<int>> lists(static_cast<size_t>(processes));
  int next = 0;
  for (int process = 0; process < processes; ++process)
    for (int i = 0; i < devices / processes + (process < devices % processes);
         ++i)
      lists[size_t(process)].push_back(next++);
  return Placement(std::move(lists), devices);
}

Expected<Placement> Placement::parse(const std::string &text, int devices,
                                     int processes) {
  auto wrong = [&](const std::string &why) {
    return Status::error("'" + text + "': " + why);
  };
  std::vector<std::vector<int>> lists;
  std::vector<int> times(size_t(devices), 0);
  for (std::string_view list : split(text, '/')) {
    lists.emplace_back();
    for (std::string_view item : split(list, ',')) {
      const std::vector<std::string_view> ends = split(item, '-');
      const int first = numberOf(ends.front()), last = numberOf(ends.back());
      if (ends.size() > 2 || first < 0 || last < first)
        return wrong("write the numbers of devices, with a slash between "
                     "processes: 0,1/2,3 or 0-1/2-3");
      if (last >= devices)
        return wrong("there is no device " + std::to_string(last) + " among " +
                     countOf(devices, "device"));
      for (int device = first; device <= last; ++device) {
        if (times[size_t(device)]++)
          return wrong("device " + std::to_string(device) + " is named twice");
        lists.back().push_back(device);
      }
    }
  }
  if (int(lists.size()) != processes)
    return wrong("these are the devices of " +
                 countOf(int64_t(lists.size()), "process", "es") + ", but " +
                 countOf(processes, "process", "es") +
                 (processes == 1 ? " was started" : " were started"));
  auto left = std::find(times.begin(), times.end(), 0);
  if (left != times.end())
    return wrong("device " + std::to_string(left - times.begin()) +
                 " is in no process");
  return Placement(std::move(lists), devices);
}

int Placement::placeOf(int device) const {
  const std::vector<int> &list = devicesOf(processOf(device));
  return int(std::lower_bound(list.begin(), list.end(), device) - list.begin());
}

int Placement::mostDevices() const {
  size_t most = 0;
  for (const std::vector<int> &list : lists)
    most = std::max(most, list.size());
  return int(most);
}

std::string Placement::text(const std::vector<int> &devices) const {
  std::string result;
  for (int device : devices)
    result += (result.empty() ? "" : ", ") + std::string("device ") +
              std::to_string(device) + " of process " +
              std::to_string(processOf(device));
  return result;
}

std::string Placement::text() const {
  std::string result;
  for (size_t process = 0; process < lists.size(); ++process)
    for (size_t i = 0; i < lists[process].size(); ++i)
      result += (i         ? ","
                 : process ? "/"
                           : "") +
                std::to_string(lists[process][i]);
  return result;
}

} // namespace partita::runtime::mpi
