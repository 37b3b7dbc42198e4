//===- PlanText.h - A plan as people read it --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_PLANTEXT_H
#define PARTITA_RUNTIME_ABI_PLANTEXT_H

#include "runtime/abi/Text.h"

#include <utility>

namespace partita::abi {

/// A stage, as both programs print it.
struct StageRow {
  std::string name, device; ///< or devices
  std::vector<std::string> blocks;
  /// The modules of the model that the stage computes, in the order of
  /// computation. Empty if the model does not name them.
  std::vector<std::string> scopes;
  int64_t flops = 0;
  int64_t parameter_bytes = 0;
  int64_t activation_bytes = 0;
  int64_t sent_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t duration_ns = 0;
};
std::string stagesText(const std::vector<StageRow> &stages);
/// A few modules, or "embeddings to encoder.layer.3.output".
std::string modulesText(const std::vector<std::string> &scopes);

/// What lies in a device's memory while a model is trained, in bytes. All but
/// `host` add up to `peak`.
struct MemoryRow {
  std::string device;
  int64_t states = 0;    ///< parameters, what the optimizer keeps of them, ...
  int64_t weights = 0;   ///< other weights and constants
  int64_t gradients = 0; ///< their sums over micro-batches
  int64_t kept = 0;      ///< what outlives the unit that makes it
  int64_t work = 0;      ///< of the unit that needs most
  int64_t gaps = 0;      ///< of the arena, between what lies there
  int64_t packed = 0;    ///< weights as a library wants them
  int64_t workspace = 0; ///< of a library
  int64_t peak = 0;
  int64_t host = 0; ///< states in the host's memory
};
/// What the bytes of an arena, of weights and states, of packed weights and of
/// scratch say of a row whose own kinds are known.
void completeRow(MemoryRow &row, int64_t arena, int64_t parameters,
                 int64_t packed, int64_t workspace);
/// The bytes of a row with the keys that they have in JSON.
std::vector<std::pair<const char *, int64_t>>
memoryFields(const MemoryRow &row);
/// Empty if there are no rows.
std::string memoryText(const std::vector<MemoryRow> &rows);

/// A step, as both programs print it.
struct StepLine {
  std::string schedule;
  int64_t micro_batches = 1; ///< of each replica
  int64_t samples = 1;       ///< of a micro-batch
  int64_t replicas = 1;
  std::string machine; ///< that times are predicted for; empty: none
  int64_t threads = 0; ///< cores per device of that machine
  int64_t step_ns = 0;
  double bubble = 0;
  /// What one device would take for a step of all; 0: there is only one device,
  /// or that is not known.
  int64_t alone_ns = 0;
};
/// "fill_drain, 5 micro-batches of 2 samples a step; predicted (uncalibrated):
/// step 104.7 us, bubble 20.8%, 95.5 k samples/s, 1.49 times one device".
std::string stepText(const StepLine &step);
/// " for AMD EPYC with 2 cores a device", " for an A100 80GB SXM", or nothing.
std::string machineText(const std::string &machine, int64_t threads);

/// An input or output with samples, as both programs print it.
struct SampleAxis {
  std::string name;
  int64_t axis = -1; ///< -1: it has none
};
/// "samples: dimension 0", "samples: dimension 1 of 'x', 0 of 'y'", or
/// "samples: whole (...)" with the reason, if there is one.
std::string samplesText(const std::vector<SampleAxis> &ports,
                        const std::string &mixes);

/// A message, as both programs print it. `how`: "cpu:0 to
/// cpu:1", or a collective and its axes.
struct MessageRow {
  std::string value, how;
  int64_t bytes = 0;
  int64_t duration_ns = -1; ///< predicted; -1: unknown
  std::string why;
  bool per_step = false; ///< sent once a step; else in each micro-batch
};
/// Messages that differ in the numbers of their names alone, as those of
/// repeated layers do, are one line.
std::string messagesText(const std::vector<MessageRow> &messages);

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_PLANTEXT_H
