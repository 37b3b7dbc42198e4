//===- PlanCompilation.h - From a model to one plan -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_PLANCOMPILATION_H
#define PARTITA_COMPILER_DRIVER_PLANCOMPILATION_H

#include "compiler/crash/Place.h"
#include "compiler/driver/PhaseRunner.h"
#include "dialects/dist/Annotations.h"

namespace partita::driver {

/// The compilation of one plan: the phases in their order.
class PlanCompilation {
public:
  /// Plan number `plan` of `plans`. `targets`: the different ones of the
  /// devices, if they were said of each; that of `options` is the first.
  PlanCompilation(mlir::MLIRContext &context, CompileOptions options,
                  std::vector<std::string> targets, int plan, int plans);

  /// Up to what `options.kind` says; an artifact is not written yet.
  mlir::LogicalResult run(llvm::raw_ostream &ir,
                          std::vector<pipeline::PlanSummary> &summaries);

  /// What was decided, for another plan of the model: CompileOptions.
  std::map<std::string, int64_t> stagesOfNodes, stagesOfStates;
  std::map<std::string, mlir::RankedTensorType> stateTypes;
  std::set<std::string> trained; ///< weights, by their names in the model
  std::vector<int64_t> devicesOfStages;
  /// If they are of several kinds.
  std::vector<std::string> targetsOfDevices;
  mlir::DictionaryAttr shards;
  std::vector<std::string> axes; ///< "data=2"
  int zero = 0;
  int64_t microBatches = 1; ///< of a replica in a step
  std::string evaluationSchedule;
  std::string schedule; ///< if no person chose it
  int64_t replicas = 1; ///< that share a batch
  /// The decision about the nodes, if `emitOnnx` asks for it.
  dist::Annotations annotations;

  /// Ends the last phase. The module stays here.
  emit::CompiledPlan take();

private:
  /// What a person sees of the phases, in order.
  enum Part { reading, simplifying, partitioning, lowering, compiling };

  void begin(Part part);
  mlir::LogicalResult runModelPhases();
  mlir::LogicalResult runPlanPhases(mlir::ModuleOp module,
                                    const PartitionOptions &partition,
                                    EmitKind until, bool isAdvice);
  void readDecision(mlir::ModuleOp module);
  void remarkParameters();
  void remarkCores(const pipeline::PlanSummary &plan);
  void remarkBubble(const pipeline::PlanSummary &plan);
  mlir::LogicalResult compileKernels();

  mlir::MLIRContext &context;
  CompileOptions options;
  const std::vector<std::string> targets;
  const int plan, plans;
  PhaseRunner runner;
  int64_t cores = 0; ///< of the machine that was measured; 0: none was
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<emit::ObjectFile> objects;
  std::vector<pipeline::TriedPlan> triedSchedules;
  std::optional<crash::AtPass> place;
};

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_PLANCOMPILATION_H
