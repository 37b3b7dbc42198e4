//===- Options.h - The command line of partita-compile ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_COMPILE_OPTIONS_H
#define PARTITA_TOOLS_PARTITA_COMPILE_OPTIONS_H

#include "compiler/driver/Compile.h"

namespace partita::tools {

struct CommandLine {
  driver::CompileOptions compile;
  bool plan = false;      ///< print the plan, and make no artifact
  bool json = false;      ///< the plan as one JSON object on standard output
  bool quiet = false;     ///< no table, no remarks
  bool verbose = false;   ///< what each phase does, on standard error
  bool timing = false;    ///< where compile time goes, on standard error
  bool describe = false;  ///< list the model's inputs, outputs and dimensions
  bool listOps = false;   ///< list the ops of ONNX that can be compiled
  bool listNodes = false; ///< list the model's nodes, not the plan
  bool listParameters = false; ///< list the parameters, and which are trained
};

/// Parses the command line. Returns -1 to go on. Otherwise returns the exit
/// status: 0 after help or version, 1 after a message about a wrong flag.
int parseCommandLine(int argc, char **argv, CommandLine &result);

} // namespace partita::tools

#endif // PARTITA_TOOLS_PARTITA_COMPILE_OPTIONS_H
