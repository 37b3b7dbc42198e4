//===- CommandLine.h - What command lines share -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_CLI_COMMANDLINE_H
#define PARTITA_TOOLS_CLI_COMMANDLINE_H

#include <CLI/CLI.hpp>

#include <string>

namespace partita::cli {

/// The one line on stderr that a wrong command line ends in; for
/// CLI::App::failure_message. An unknown option is answered with the nearest
/// one there is.
std::string failureText(const CLI::App *app, const CLI::Error &error);

/// What --devices says: "2", "cpu:2".
struct Devices {
  std::string kind; ///< as in abi::getDeviceKindNames; empty: nobody says
  int count = 0;    ///< at least 1
};

/// Returns what is wrong, or "".
std::string parseDevices(const std::string &text, Devices &devices);

/// The same, for CLI::Option::check.
std::string checkDevices(const std::string &text);

} // namespace partita::cli

#endif // PARTITA_TOOLS_CLI_COMMANDLINE_H
