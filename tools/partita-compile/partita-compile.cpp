//===- partita-compile.cpp - The compiler as a program --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/crash/CrashReport.h"
#include "compiler/driver/Compile.h"
#include "tools/partita-compile/Program.h"

int main(int argc, char **argv) {
  partita::crash::installCrashReport("partita-compile");
  mlir::DialectRegistry registry;
  partita::driver::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry);
  partita::crash::trackPlaces(context);
  return partita::tools::runCompiler(argc, argv, context);
}
