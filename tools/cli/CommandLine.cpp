//===- CommandLine.cpp - What command lines share -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/cli/CommandLine.h"

#include "runtime/abi/DeviceKinds.h"
#include "runtime/base/NearestName.h"

#include <charconv>

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

std::string failureText(const CLI::App *app, const CLI::Error &error) {
  // A misspelt option is the likely reason why another one is missing.
  const std::string unknown = unknownText(*app);
  return app->get_name() +
         ": error: " + (unknown.empty() ? std::string(error.what()) : unknown) +
         " (" + app->get_name() + " --help lists the options)\n";
}

std::string parseDevices(const std::string &text, Devices &devices) {
  const size_t colon = text.find(':');
  const std::string number =
      colon == std::string::npos ? text : text.substr(colon + 1);
  devices.kind = colon == std::string::npos ? "" : text.substr(0, colon);
  if (colon != std::string::npos && !abi::findDeviceKind(devices.kind))
    return "there are no devices of kind '" + devices.kind + "'";
  auto [end, error] = std::from_chars(
      number.data(), number.data() + number.size(), devices.count);
  if (error != std::errc() || end != number.data() + number.size() ||
      devices.count < 1)
    return "'" + text + "' is no number of devices: write it as 2 or cpu:2";
  return "";
}

std::string checkDevices(const std::string &text) {
  Devices devices;
  return parseDevices(text, devices);
}

} // namespace partita::cli
