//===- PhaseRunner.h - Phases of a plan, and the IR behind each -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_PHASERUNNER_H
#define PARTITA_COMPILER_DRIVER_PHASERUNNER_H

#include "compiler/driver/Compile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <string>
#include <vector>

namespace partita::driver {

/// A phase (compiler/passes) with its options.
struct PhaseRun {
  llvm::StringRef name;
  std::string options; ///< as partita-opt reads them
  std::function<void(mlir::OpPassManager &)> addPasses;
};

/// What is known of a model when its phases are listed.
struct ModelFacts {
  /// It says by annotations how it is split. They are read when its nodes are
  /// what will be computed.
  bool isAnnotated = false;
  int64_t replicas = 1; ///< that share a batch
  size_t targets = 1;   ///< different ones of the devices
};

/// The phases on the whole model, to `--emit nn`.
std::vector<PhaseRun> getModelPhases(const CompileOptions &options,
                                     const ModelFacts &facts);

/// The phases that cut its tensors and decide what is computed together.
std::vector<PhaseRun> getShardPhases(const CompileOptions &options,
                                     const ModelFacts &facts);

/// The phases behind them, as far as `until` says.
std::vector<PhaseRun> getPlanPhases(const CompileOptions &options,
                                    const PartitionOptions &partition,
                                    EmitKind until);

/// What a phase did.
struct PhaseReport {
  std::string flag; ///< of partita-opt, with its options
  int64_t opsBefore = 0, opsAfter = 0;
  double seconds = 0;
};
using ReportFn = llvm::function_ref<void(const PhaseReport &)>;

/// Runs phases. If it has a folder, it writes the IR behind each into a file
/// there, whose first line is the command that makes it of the file before:
///
///   // partita-opt --mlir-print-debuginfo '--partita-cut=target=cpu'
///   05-decide.mlir
class PhaseRunner {
public:
  /// `folder`: where IR is written; empty: nowhere. `timing`, which may be
  /// null, takes the time of passes. `report`, which may be null, is told of
  /// each phase that has run.
  PhaseRunner(std::string folder, Timing *timing, ReportFn report)
      : folder(std::move(folder)), timing(timing), report(report) {}

  /// Runs a phase. The module is verified after each of its passes.
  mlir::LogicalResult run(mlir::ModuleOp module, const PhaseRun &phase);

  /// Writes IR that no phase made.
  mlir::LogicalResult write(mlir::ModuleOp module, llvm::StringRef name,
                            llvm::StringRef command = "");

  /// How many files there are; and goes back to so many, for another try.
  size_t count() const { return files.size(); }
  void rewind(size_t count) { files.resize(count); }

private:
  const std::string folder;
  Timing *const timing;
  const ReportFn report;
  std::vector<std::string> files; ///< their names, in order
};

/// Prints a module. Values are called what the nodes are called that compute
/// them: `%conv1.Conv = nn.conv ...`. Locations in the module are lost.
void printModule(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_PHASERUNNER_H
