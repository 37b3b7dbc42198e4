//===- Compile.h - From an ONNX model to an artifact ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_COMPILE_H
#define PARTITA_COMPILER_DRIVER_COMPILE_H

#include "compiler/autodiff/ParameterList.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/codegen/Codegen.h"
#include "compiler/emit/Emit.h"
#include "compiler/import/graph/Import.h"
#include "compiler/pipeline/NodeList.h"
#include "compiler/pipeline/plan/PlanSummary.h"
#include "compiler/train/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <optional>
#include <set>

namespace partita::driver {

class Timing;
struct PhaseReport;

/// The user's choices about the partition. If a choice is not given, the
/// partition file decides, and then the compiler.
struct PartitionOptions {
  int devices = 0; ///< in all; 0: as the file or the model says, or else 1
  /// "NAME=SIZE": the axes of the mesh, in order, as another plan of the model
  /// has them; empty: as the file and the numbers below say.
  std::vector<std::string> axes;
  int dataParallel = 0;      ///< replicas; 0: not given
  int replicas = 0;          ///< that share a micro-batch; 0: not given
  int tensorParallel = 0;    ///< devices that share tensors; 0: not given
  bool reproducible = false; ///< no number depends on how tensors are cut
  int zero = -1; ///< what replicas share of a training; -1: not given;
                 ///< kAutoZero: what fits is chosen
  int64_t fusionBytes = -1; ///< of gradients that replicas add up at once, at
                            ///< most; 0: each alone; -1: not given
  int stages = 0;           ///< that the planner cuts; 0: the schedule's choice
  int microBatches = 0;     ///< 0: not given
  int64_t workspaceMiB = 0; ///< scratch of a library call; 0: not given
  std::string schedule;     ///< its name (compiler/schedule); empty: not given
  int64_t memory = 0;       ///< bytes that a device has; 0: not given
  int memoryTry = 0;        ///< see --dist-assign-stages
  bool wholeNodes = false;  ///< the same
  std::string file;         ///< partition file to read; empty: none
  std::string recompute;    ///< see --dist-recompute; empty: nothing
  std::vector<std::string> recomputeNodes; ///< the same
  std::string machine; ///< file that partita-run --calibrate wrote
  int threads = 0;     ///< cores per device; 0: an equal share
  std::string target;  ///< kind of the devices; empty: CPUs
  /// The target of each device, if they are of several kinds; empty: not given.
  std::vector<std::string> targets;
  std::string emitFile; ///< where to write the whole decision; empty: nowhere
};

/// Where compilation stops: `--emit`, or one of those that print no IR.
enum class EmitKind {
  imported,   ///< as the importer made it
  nn,         ///< after simplification
  stages,     ///< stages and transfers (dist)
  clusters,   ///< lowered clusters and the kernels' linalg
  plan,       ///< the plan dialect
  summary,    ///< nothing; the plan is made, and no code
  parameters, ///< nothing; which parameters are trained is decided
  decision,   ///< nothing; blocks and stages are decided
  artifact
};

/// Which intermediate values become outputs of the artifact, so that they can
/// be compared.
struct ExposeOptions {
  std::string nodes;    ///< glob over node names; empty: none
  bool unfused = false; ///< before anything is rewritten or fused
};

/// A named dimension with several sizes.
struct DimensionSizes {
  std::string name;
  std::vector<int64_t> sizes; ///< in increasing order
};

struct CompileOptions {
  import::ImportOptions import;
  PartitionOptions partition;
  codegen::CodegenOptions codegen;
  emit::EmitOptions emit;
  ExposeOptions expose;
  /// The kind of the devices and their architecture: "cuda:sm_90". Empty: the
  /// kind of `partition`.
  std::string target;
  bool winograd = true; ///< for large convolutions of 3x3 windows
  /// Lets libraries compute what our own kernels can compute, too.
  bool libraryCalls = true;
  /// On GPUs attention is one call of cuDNN, where that has engines for it.
  bool attentionCalls = false;
  /// The type that products have in a model of f32: bf16 or f16. Empty: f32.
  std::string mixedPrecision;
  /// INPUT=OUTPUT: what a step leaves for the next one (--nn-carry-states).
  std::vector<std::string> states;
  /// How many sequences have states of their own.
  int64_t sequences = 1;
  /// If not empty: the states as the first plan has them. A step of a plan that
  /// has a multiple of their entries along dimension 0 is of so many sequences.
  std::map<std::string, mlir::RankedTensorType> stateTypes;
  /// Compiles every op as the importer made it, alone, to scalar loops. The
  /// results are the reference with which other compilations are compared.
  bool reference = false;
  /// If it has a loss, the artifact computes it and its gradients instead of
  /// the model's outputs.
  autodiff::AutodiffOptions autodiff;
  /// If it has an optimizer, the artifact has two plans: `train` learns, and
  /// `eval` computes the loss and counts the labels that are predicted.
  train::TrainOptions train;
  /// If not empty: the stage of each node and of each state, and the device of
  /// each stage, as another plan of the artifact has them. They share states.
  std::map<std::string, int64_t> stagesOfNodes, stagesOfStates;
  /// The only weights that are trained, if another plan has chosen them.
  std::optional<std::set<std::string>> trained;
  std::vector<int64_t> devicesOfStages;
  /// If not null: how tensors are cut, as that plan has them.
  mlir::DictionaryAttr shards;
  /// If not null: filled with the model's parameters, and which are trained.
  std::vector<autodiff::Parameter> *parameters = nullptr;
  /// Remarks say what would spare each collective.
  bool explain = false;
  EmitKind kind = EmitKind::artifact;
  /// Only to compare plans: one that does not fit is no error.
  bool isTry = false;
  /// The folder where the IR behind each phase is written, with the command
  /// that repeats it (PhaseRunner.h). Empty: nowhere.
  std::string dumpPhases;
  /// The artifact has a plan for each combination of their sizes.
  std::vector<DimensionSizes> dimensions;
  /// The input that is 0 where samples are padded to the sizes of a plan. If it
  /// is empty, samples are not padded.
  std::string mask;
  /// Where to write the model with the whole decision as ONNX's annotations of
  /// devices. Empty: nowhere.
  std::string emitOnnx;
  /// If not null: filled with the model's nodes and what was decided of them.
  /// Of several plans, those of the last.
  pipeline::NodeList *nodes = nullptr;
  /// Called as each phase begins, with its name, its number and the number of
  /// phases.
  llvm::function_ref<void(llvm::StringRef name, int phase, int phases)>
      progress;
  /// If not null: told of each phase of passes that has run.
  llvm::function_ref<void(const PhaseReport &)> report;
  /// If not null: takes the time of parts and passes.
  Timing *timing = nullptr;

  /// Whether a step has one loss, and one gradient of each parameter, of all of
  /// its micro-batches.
  bool sumsMicroBatches() const {
    return autodiff.results != autodiff::LossResults::whole;
  }
  /// Whether a step writes states.
  bool learns() const {
    return !train.optimizer.empty() &&
           autodiff.results == autodiff::LossResults::parts;
  }
};

/// The flag that says how the model is split, so that its own annotations are
/// not read; empty: none does.
std::string getAnnotationsOverride(const PartitionOptions &options);

/// Adds every dialect that compilation uses, with the interfaces that its
/// passes need.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// Compiles a model, an ONNX file or a module (ReadModule.h). Messages go
/// through the context's diagnostics. On success the artifact is written, or,
/// for the other kinds, the IR of each plan is printed to `ir`. `summaries` has
/// the plans if compilation came as far.
///
/// The model's own annotations are read, unless the options say otherwise how
/// it is split.
mlir::LogicalResult compileModel(mlir::MLIRContext &context,
                                 const CompileOptions &options,
                                 llvm::raw_ostream &ir,
                                 std::vector<pipeline::PlanSummary> &summaries);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_COMPILE_H
