//===- CommandLine.cpp - What command lines share -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/cli/CommandLine.h"

#include "runtime/abi/DeviceKinds.h"
#include "runtime/base/NearestName.h"

namespace partita::cli {

namespace {

std::vector<std::string> optionNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options()) {
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
    for (const std::string &name : option->get_snames())
      names.push_back("-" + name);
  }
  return names;
}

/// About the first argument that the program does not know, if there is one.
std::string unknownText(const CLI::App &app) {
  const std::vector<std::string> unknown = app.remaining();
  for (const std::string &word : unknown) {
    if (word.size() < 2 || word[0] != '-')
      continue;
    const std::string name = word.substr(0, word.find('='));
    const std::string near = runtime::nearestName(name, optionNames(app));
    return "there is no option '" + name + "'" +
           (near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  return unknown.empty() ? ""
                         : "the argument '" + unknown[0] + "' is one too many";
}

} // namespace

std::string versionText(const std::string &program) {
  const std::string commit = PARTITA_COMMIT;
  return program + " " PARTITA_VERSION +
         (commit.empty() ? "" : ", commit " + commit);
}

std::string failureText(const CLI::App *app, const CLI::Error &error) {
  // A misspelt option is the likely reason why another one is missing.
  const std::string unknown = unknownText(*app);
  return app->get_name() +
         ": error: " + (unknown.empty() ? std::string(error.what()) : unknown) +
         " (" + app->get_name() + " --help lists the options)\n";
}

namespace {

constexpr int kMostPlaces = 4096;

/// E.g. "0*4" or "0,1*2".
bool parsePlaces(std::string_view text, std::vector<int> &places) {
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t star = item.find('*');
    int place = 0, times = 1;
    if (!parseNumber(item.substr(0, star), 0, place) ||
        (star != std::string_view::npos &&
         !parseNumber(item.substr(star + 1), 1, times)) ||
        times > kMostPlaces - static_cast<int>(places.size()))
      return false;
    places.insert(places.end(), static_cast<size_t>(times), place);
    if (comma == std::string_view::npos)
      return true;
    text.remove_prefix(comma + 1);
  }
}

/// One kind, e.g. "cuda:0,1".
std::string parseGroup(const std::string &text, DeviceGroup &group) {
  const size_t colon = text.find(':');
  const std::string number =
      colon == std::string::npos ? text : text.substr(colon + 1);
  group.kind = colon == std::string::npos ? "" : text.substr(0, colon);
  const auto kind = abi::findDeviceKind(group.kind);
  if (colon != std::string::npos && !kind)
    return "there are no devices of kind '" + group.kind + "'";
  if (parseNumber(number, 1, group.count))
    return "";
  if (kind && abi::isNumbered(*kind)) {
    const bool isList = number.find_first_of(",*") != std::string::npos;
    if (isList && parsePlaces(number, group.places)) {
      group.count = static_cast<int>(group.places.size());
      return "";
    }
    int one = 0;
    return "'" + text + "' is no number of devices, and no list of GPUs: " +
           "write it as cuda:2, or as cuda:0,1 or cuda:0*4" +
           (parseNumber(number, 0, one) ? ", and one device on GPU " + number +
                                              " as cuda:" + number + "*1"
                                        : "");
  }
  return "'" + text + "' is no number of devices: write it as 2 or cpu:2";
}

} // namespace

void addList(CLI::App &app, const std::string &name,
             std::vector<std::string> &values, const std::string &type,
             const std::string &text) {
  add(app, name, values, type, text)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

int Devices::count() const {
  int sum = 0;
  for (const DeviceGroup &group : groups)
    sum += group.count;
  return sum;
}

int Devices::count(const std::string &kind) const {
  int sum = 0;
  for (const DeviceGroup &group : groups)
    sum += group.kind == kind ? group.count : 0;
  return sum;
}

bool Devices::areMixed() const {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const DeviceGroup &group) {
                       return group.kind != groups.front().kind;
                     });
}

std::string parseDevices(const std::string &text, Devices &devices) {
  devices = {};
  // A comma begins another kind, if one is named behind it.
  size_t begin = 0;
  while (true) {
    size_t end = text.find(',', begin);
    while (end != std::string::npos &&
           text.find(':', end) >= text.find(',', end + 1))
      end = text.find(',', end + 1);
    const std::string part = text.substr(
        begin, end == std::string::npos ? std::string::npos : end - begin);
    if (std::string error = parseGroup(part, devices.groups.emplace_back());
        !error.empty())
      return error;
    if (end == std::string::npos)
      break;
    begin = end + 1;
  }
  if (devices.groups.size() > 1 && devices.groups.front().kind.empty())
    return "'" + text +
           "' names the kind of some devices only: write it as "
           "cpu:2,cuda:1";
  return "";
}

std::string checkDevices(const std::string &text) {
  Devices devices;
  return parseDevices(text, devices);
}

} // namespace partita::cli
