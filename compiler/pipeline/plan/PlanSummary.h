//===- PlanSummary.h - A plan for people and for programs -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_PLANSUMMARY_H
#define PARTITA_COMPILER_PIPELINE_PLAN_PLANSUMMARY_H

#include "runtime/abi/PlanText.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>
#include <vector>

namespace partita::pipeline {

struct TransferSummary {
  std::string value, source, target, reason;
  int64_t bytes = 0;
  int64_t durationNs = 0; ///< predicted
  bool perStep = false;   ///< once a step; else in each micro-batch
};

struct CollectiveSummary {
  std::string value, kind, axes, reason;
  int64_t sentBytes = 0;  ///< by each device
  int64_t durationNs = 0; ///< predicted
  bool perStep = false;   ///< once a step; else in each micro-batch
};

/// What is computed again for gradients, of a micro-batch.
struct RecomputationSummary {
  int64_t nodes = 0;
  double work = 0;                       ///< percent of the micro-batch's
  int64_t keptBytes = 0, wholeBytes = 0; ///< kept for gradients; without it
};

/// A plan that was tried to choose a schedule, or what replicas share of a
/// training. Of one that cannot be made only the error and what was tried are
/// known.
struct TriedPlan {
  std::string schedule;
  int zero = 0; ///< level of what replicas share
  int64_t replicas = 1;
  int64_t microBatches = 0;
  int64_t stepNs = 0;    ///< predicted
  double bubble = 0;     ///< predicted
  int64_t sentBytes = 0; ///< by a device in a step, in collectives
  int64_t peakBytes = 0; ///< planned peak of the fullest device
  bool fits = false;     ///< a device has room for that
  bool isTaken = false;
  std::string error; ///< empty: there is a plan
};

struct PlanSummary {
  std::string model;
  std::string sizes; ///< of dimensions: "tokens = 64"; empty: only one plan
  /// The axes of inputs and outputs along which samples are counted; -1: none.
  std::vector<abi::SampleAxis> sampleAxes;
  std::string entry; ///< "train" or "eval"; empty: to compute outputs
  std::string mixes; ///< why they cannot be split; empty: they can
  abi::StepLine step;
  std::optional<RecomputationSummary> recomputation;
  std::vector<TriedPlan> schedules; ///< empty: a person chose
  std::vector<TriedPlan> zeros;     ///< the same
  std::vector<abi::StageRow> stages;
  /// A row for each program of a training.
  std::vector<abi::MemoryRow> memory;
  std::vector<TransferSummary> transfers; ///< without tokens
  std::vector<CollectiveSummary> collectives;
};

/// Summarizes the plan of a module in the plan dialect. Nothing if the module
/// has no plan.
std::optional<PlanSummary> summarize(mlir::ModuleOp module);

/// Says what a try has led to.
void describePlan(mlir::ModuleOp module, TriedPlan &tried);

/// Prints a table with a row for each stage, then the predicted times.
void printTable(const PlanSummary &summary, llvm::raw_ostream &os);

/// Prints a table of everything that devices send, with the reason for each.
void printCommunication(const PlanSummary &summary, llvm::raw_ostream &os);

/// The summary as one object, with the same keys as partita-run --plan --json.
llvm::json::Value toJson(const PlanSummary &summary);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_PLANSUMMARY_H
