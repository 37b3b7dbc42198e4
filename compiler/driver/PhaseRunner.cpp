//===- PhaseRunner.cpp - Phases, and the IR behind each -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PhaseRunner.h"

#include "compiler/driver/Timing.h"
#include "compiler/model/NodeNames.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/support/Try.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#include <chrono>

using namespace mlir;

namespace partita::driver {
namespace {

/// Plans with more actions are verified once, behind their phase.
constexpr size_t kMostActionsVerified = 100'000;

bool isLong(Operation *op) {
  size_t actions = 0;
  if (auto module = dyn_cast<ModuleOp>(op))
    for (auto program : module.getOps<plan::ProgramOp>())
      actions += program.getBody().front().getOperations().size();
  return actions > kMostActionsVerified;
}

/// Passes refuse what a user may not ask for, so IR that is not valid is an
/// error of the compiler, and none of the user's.
void verifyBehind(StringRef maker, Operation *op) {
  if (failed(verify(op)))
    llvm::report_fatal_error("'" + Twine(maker) +
                             "' made a module that is not valid");
}

struct VerifyPasses : PassInstrumentation {
  void runAfterPass(Pass *pass, Operation *op) override {
    // What runs passes on functions has no name, and changes nothing itself.
    if (!pass->getArgument().empty() && !isLong(op))
      verifyBehind(pass->getArgument(), op);
  }
};

/// The word for a shell.
std::string quote(StringRef word) {
  std::string quoted = "'";
  for (char c : word)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

int64_t countOps(ModuleOp module) {
  int64_t count = 0;
  module->walk([&](Operation *) { ++count; });
  return count;
}

/// "/conv1/Conv" as the name of a value: "conv1.Conv". A location without
/// names gives "".
std::string getValueName(Location loc) {
  SmallVector<StringRef, 2> nodes = getNodeNames(loc);
  std::string name;
  for (char c : nodes.empty() ? StringRef() : nodes.back())
    if (llvm::isAlnum(c) || c == '_')
      name += c;
    else if (!name.empty() && name.back() != '.')
      name += '.';
  while (!name.empty() && name.back() == '.')
    name.pop_back();
  // A number is what a value without a name is called.
  return name.empty() || !llvm::isDigit(name[0]) ? name : "node" + name;
}

/// The printer takes names of values from their locations.
Location getPrintedLoc(Location loc) {
  std::string name = getValueName(loc);
  Location unknown = UnknownLoc::get(loc.getContext());
  return name.empty()
             ? unknown
             : NameLoc::get(StringAttr::get(loc.getContext(), name), unknown);
}

} // namespace

LogicalResult PhaseRunner::run(ModuleOp module, const PhaseRun &phase) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(false);
  pm.addInstrumentation(std::make_unique<VerifyPasses>());
  // The last that is added is the first to hear of the end: verifying is not
  // in the time of a pass.
  if (timing)
    pm.addInstrumentation(timing->watchPasses());
  phase.addPasses(pm);
  PhaseReport done;
  if (report)
    done.opsBefore = countOps(module);
  const auto begin = std::chrono::steady_clock::now();
  PARTITA_TRY(pm.run(module));
  if (isLong(module))
    verifyBehind(phase.name, module);
  std::string flag = "--" + phase.name.str();
  if (!phase.options.empty())
    flag = quote(flag + "=" + phase.options);
  if (report) {
    done.flag = flag;
    done.opsAfter = countOps(module);
    done.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    report(done);
  }
  if (folder.empty())
    return success();
  StringRef name = phase.name;
  name.consume_front("partita-");
  return write(module, name,
               "partita-opt --mlir-print-debuginfo " + flag + " " +
                   files.back());
}

LogicalResult PhaseRunner::write(ModuleOp module, StringRef name,
                                 StringRef command) {
  if (folder.empty())
    return success();
  files.push_back(llvm::formatv("{0,2:2}-{1}.mlir", files.size(), name));
  SmallString<128> path(folder);
  llvm::sys::path::append(path, files.back());
  std::error_code error = llvm::sys::fs::create_directories(folder);
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_Text);
  if (error)
    return emitError(UnknownLoc::get(module.getContext()))
           << "cannot write '" << path << "': " << error.message();
  if (!command.empty())
    file.os() << "// " << command << "\n";
  module->print(file.os(), OpPrintingFlags().enableDebugInfo());
  file.os() << "\n";
  file.keep();
  return success();
}

void printModule(ModuleOp module, llvm::raw_ostream &os) {
  module->walk([](Operation *op) {
    if (op->getNumResults() > 0)
      op->setLoc(getPrintedLoc(op->getLoc()));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(getPrintedLoc(argument.getLoc()));
  });
  module->print(os, OpPrintingFlags().printNameLocAsPrefix());
}

} // namespace partita::driver
