//===- CommandLine.h - What command lines share -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_CLI_COMMANDLINE_H
#define PARTITA_TOOLS_CLI_COMMANDLINE_H

#include <CLI/CLI.hpp>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace partita::cli {

/// "partita-run 0.1.0, commit 1a2b3c4d5e6f", for --version.
std::string versionText(const std::string &program);

/// The one line that is printed on stderr for a wrong command line; for
/// CLI::App::failure_message. For an unknown option it names the nearest
/// option.
std::string failureText(const CLI::App *app, const CLI::Error &error);

/// Adds an option; `type` is what --help calls its value.
template <typename Value>
CLI::Option *add(CLI::App &app, const std::string &name, Value &value,
                 const std::string &type, const std::string &text) {
  return app.add_option(name, value, text)->type_name(type);
}

/// Adds an option that may be repeated, with one value each time.
void addList(CLI::App &app, const std::string &name,
             std::vector<std::string> &values, const std::string &type,
             const std::string &text);

/// Whether the whole text is a number of at least `least`.
template <typename Number>
bool parseNumber(std::string_view text, Number least, Number &number) {
  const char *last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && end == last && number >= least;
}

/// Devices of one kind in the value of --devices.
struct DeviceGroup {
  std::string kind;        ///< as in abi::getDeviceKindNames; empty: not given
  int count = 0;           ///< at least 1
  std::vector<int> places; ///< by device: its GPU; empty: not given
};

/// The value of --devices: a number of devices, e.g. "2" or "cpu:2", or which
/// ones a machine's GPUs are, e.g. "cuda:0,1" or "cuda:0*4" (four devices on
/// GPU 0); or several kinds, in the order of the devices: "cuda:0,1,cpu:2".
struct Devices {
  std::vector<DeviceGroup> groups; ///< at least one

  int count() const;                        ///< of all groups
  int count(const std::string &kind) const; ///< of that kind
  /// Whether they are of more than one kind.
  bool areMixed() const;
};

/// Parses the value of --devices. Returns an error text, or "".
std::string parseDevices(const std::string &text, Devices &devices);

/// The same, for CLI::Option::check.
std::string checkDevices(const std::string &text);

} // namespace partita::cli

#endif // PARTITA_TOOLS_CLI_COMMANDLINE_H
