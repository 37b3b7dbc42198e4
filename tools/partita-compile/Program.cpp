//===- Program.cpp - partita-compile from its command line on -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-compile/Program.h"

#include "compiler/autodiff/ParameterList.h"
#include "compiler/driver/PhaseRunner.h"
#include "compiler/driver/Timing.h"
#include "compiler/import/graph/Describe.h"
#include "compiler/import/graph/OpTable.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/NodeScopes.h"
#include "tools/partita-compile/Options.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ToolOutputFile.h"

#include <set>
#include <string>
#include <utility>

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
    out << "node '" << node << "'" << nn::inScope(loc) << ": ";
  else if (auto place = dyn_cast<FileLineColLoc>(loc))
    out << place.getFilename().getValue() << ":" << place.getLine() << ":"
        << place.getColumn() << ": ";
  out << diagnostic.str() << "\n";
}

/// The same for programs: an object on a line of its own.
static void printJson(Diagnostic &diagnostic, StringRef severity) {
  wipeProgress();
  llvm::json::Object object{{"severity", severity},
                            {"message", diagnostic.str()}};
  Location loc = diagnostic.getLocation();
  if (std::string node = nn::getNodeName(loc); !node.empty()) {
    object["node"] = node;
  } else if (auto place = dyn_cast<FileLineColLoc>(loc)) {
    object["file"] = place.getFilename().getValue();
    object["line"] = static_cast<int64_t>(place.getLine());
    object["column"] = static_cast<int64_t>(place.getColumn());
  }
  llvm::json::Array notes;
  for (Diagnostic &note : diagnostic.getNotes())
    notes.push_back(note.str());
  if (!notes.empty())
    object["notes"] = std::move(notes);
  llvm::errs() << llvm::json::Value(std::move(object)) << "\n";
}

namespace {
/// Prints the diagnostics of a context as long as it lives.
class DiagnosticPrinter {
public:
  DiagnosticPrinter(MLIRContext &context, bool quiet, bool json)
      : engine(context.getDiagEngine()),
        id(engine.registerHandler([this, quiet, json](Diagnostic &diagnostic) {
          const DiagnosticSeverity kind = diagnostic.getSeverity();
          const StringRef severity = kind == DiagnosticSeverity::Error ? "error"
                                     : kind == DiagnosticSeverity::Warning
                                         ? "warning"
                                         : "remark";
          const bool isError = kind == DiagnosticSeverity::Error;
          // Each plan of an artifact imports the model: once is enough.
          if (!isError && (quiet || !isNew(diagnostic)))
            return success();
          if (json && !isError) {
            printJson(diagnostic, severity);
            return success();
          }
          printDiagnostic(diagnostic, severity);
          for (Diagnostic &note : diagnostic.getNotes())
            printDiagnostic(note, "note");
          return success();
        })) {}
  ~DiagnosticPrinter() { engine.eraseHandler(id); }

private:
  bool isNew(Diagnostic &diagnostic) {
    return said
        .emplace(diagnostic.getLocation().getAsOpaquePointer(),
                 diagnostic.str())
        .second;
  }

  DiagnosticEngine &engine;
  DiagnosticEngine::HandlerID id;
  std::set<std::pair<const void *, std::string>> said; ///< but errors
};
} // namespace

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

/// For --verbose: lines instead of a bar.
static void printPart(StringRef name, int, int) {
  llvm::errs() << name << "\n";
}

static void printPhase(const driver::PhaseReport &phase) {
  llvm::errs() << llvm::format("  %5lld -> %5lld ops %8.3f s  ",
                               static_cast<long long>(phase.opsBefore),
                               static_cast<long long>(phase.opsAfter),
                               phase.seconds)
               << phase.flag << "\n";
}

int tools::runCompiler(int argc, char **argv, MLIRContext &context,
                       codegen::ObjectCache *objects) {
  CommandLine command;
  if (int status = parseCommandLine(argc, argv, command); status >= 0)
    return status;
  if (command.listOps) {
    import::listOps(llvm::outs(), command.json);
    return 0;
  }
  command.compile.codegen.cache = objects;

  // A message names the node; its whole operation would bury it.
  context.printOpOnDiagnostic(false);
  DiagnosticPrinter printer(context, command.quiet, command.json);
  if (command.describe)
    return failed(import::describeOnnxModel(context, command.compile.import,
                                            llvm::outs(), command.json));
  if (!command.quiet)
    command.compile.progress = showProgress;
  if (command.verbose) {
    command.compile.progress = printPart;
    command.compile.report = printPhase;
  }
  driver::Timing timing;
  if (command.timing)
    command.compile.timing = &timing;

  std::optional<llvm::ToolOutputFile> file;
  const bool printsPlan = command.compile.kind == driver::EmitKind::artifact ||
                          command.compile.kind == driver::EmitKind::summary;
  if (!printsPlan && !command.compile.emit.output.empty()) {
    std::error_code error;
    file.emplace(command.compile.emit.output, error, llvm::sys::fs::OF_Text);
    if (error) {
      llvm::errs() << "partita-compile: error: cannot write '"
                   << command.compile.emit.output << "': " << error.message()
                   << "\n";
      return 1;
    }
  }
  pipeline::NodeList nodes;
  if (command.listNodes)
    command.compile.nodes = &nodes;
  std::vector<autodiff::Parameter> parameters;
  if (command.listParameters)
    command.compile.parameters = &parameters;
  std::vector<pipeline::PlanSummary> summaries;
  LogicalResult result = driver::compileModel(
      context, command.compile, file ? file->os() : llvm::outs(), summaries);
  wipeProgress();
  if (command.timing) {
    timing.end();
    timing.print(llvm::errs());
  }
  if (failed(result))
    return 1;
  if (file)
    file->keep();
  if (command.listParameters) {
    if (command.json)
      llvm::outs() << autodiff::toJson(parameters) << "\n";
    else
      autodiff::printParameters(parameters, llvm::outs());
    return 0;
  }
  if (command.listNodes) {
    if (command.json)
      llvm::outs() << nodes.toJson() << "\n";
    else
      nodes.print(llvm::outs());
    return 0;
  }
  if (summaries.empty() || !printsPlan || (command.quiet && !command.json))
    return 0;
  if (command.json) {
    // One plan is an object, several are a list of them.
    llvm::json::Array plans;
    for (const pipeline::PlanSummary &summary : summaries)
      plans.push_back(pipeline::toJson(summary));
    llvm::outs() << (plans.size() == 1 ? plans[0]
                                       : llvm::json::Value(std::move(plans)))
                 << "\n";
    return 0;
  }
  for (const pipeline::PlanSummary &summary : summaries) {
    if (&summary != &summaries.front())
      llvm::outs() << "\n";
    pipeline::printTable(summary, llvm::outs());
    if (command.compile.explain)
      pipeline::printCommunication(summary, llvm::outs());
  }
  return 0;
}
