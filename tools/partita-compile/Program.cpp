//===- main.cpp - partita-compile -----------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/crash/CrashReport.h"
#include "compiler/import/Describe.h"
#include "dialects/nn/NNDialect.h"
#include "tools/partita-compile/Options.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Process.h"

using namespace mlir;
using namespace partita;

/// Whether the last thing on the terminal is a progress bar.
static bool barDrawn = false;

static void wipeProgress() {
  if (barDrawn)
    llvm::errs() << "\r\x1b[K";
  barDrawn = false;
}

/// "partita-compile: error: node '/conv1/Conv': message", or with the place in
/// a file: "partita-compile: error: split.yaml:2:9: message".
static void printDiagnostic(const Diagnostic &diagnostic, StringRef severity) {
  wipeProgress();
  llvm::raw_ostream &out = llvm::errs();
  out << "partita-compile: " << severity << ": ";
  Location loc = diagnostic.getLocation();
  std::string node = nn::getNodeName(loc);
  if (!node.empty())
    out << "node '" << node << "': ";
  else if (auto place = dyn_cast<FileLineColLoc>(loc))
    out << place.getFilename().getValue() << ":" << place.getLine() << ":"
        << place.getColumn() << ": ";
  out << diagnostic.str() << "\n";
}

static void printDiagnostics(MLIRContext &context, bool quiet) {
  context.getDiagEngine().registerHandler([quiet](Diagnostic &diagnostic) {
    DiagnosticSeverity severity = diagnostic.getSeverity();
    if (quiet && severity != DiagnosticSeverity::Error)
      return success();
    printDiagnostic(diagnostic, severity == DiagnosticSeverity::Error ? "error"
                                : severity == DiagnosticSeverity::Warning
                                    ? "warning"
                                    : "remark");
    for (Diagnostic &note : diagnostic.getNotes())
      printDiagnostic(note, "note");
    return success();
  });
}

/// A bar on a terminal, nothing elsewhere.
static void showProgress(StringRef name, int phase, int phases) {
  static const bool terminal = llvm::sys::Process::StandardErrIsDisplayed();
  if (!terminal)
    return;
  constexpr int kWidth = 24;
  int filled = kWidth * phase / phases;
  wipeProgress();
  llvm::errs() << "[" << std::string(filled, '=')
               << std::string(kWidth - filled, ' ') << "] " << name;
  barDrawn = true;
}

int main(int argc, char **argv) {
  crash::installCrashReport("partita-compile");
  tools::CommandLine command;
  if (int status = tools::parseCommandLine(argc, argv, command); status >= 0)
    return status;

  DialectRegistry registry;
  driver::registerCompilerDialects(registry);
  MLIRContext context(registry);
  crash::trackPlaces(context);
  // A message names the node; its whole operation would bury it.
  context.printOpOnDiagnostic(false);
  printDiagnostics(context, command.quiet);
  if (command.describe)
    return failed(import::describeOnnxModel(context, command.compile.import,
                                            llvm::outs(), command.json));
  if (!command.quiet)
    command.compile.progress = showProgress;

  std::optional<pipeline::Summary> summary;
  LogicalResult result =
      driver::compileModel(context, command.compile, llvm::outs(), summary);
  wipeProgress();
  if (failed(result))
    return 1;
  if (!summary || command.quiet ||
      command.compile.kind != driver::EmitKind::artifact)
    return 0;
  if (command.json)
    llvm::outs() << pipeline::toJson(*summary) << "\n";
  else
    pipeline::printTable(*summary, llvm::outs());
  return 0;
}
