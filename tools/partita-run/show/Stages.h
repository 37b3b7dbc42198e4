//===- Stages.h - What the stages of a plan are -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_STAGES_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_STAGES_H

#include "runtime/feed/Model.h"

#include <nlohmann/json_fwd.hpp>

namespace partita::run {

using namespace feed;

/// A stage, as one line of the legend.
struct StageInfo {
  std::string name;                ///< e.g. "F0"
  std::string devices;             ///< e.g. "cpu:0, cpu:2"
  std::vector<std::string> blocks; ///< of the partition
  /// The modules of the model that the stage computes, in the order of
  /// computation. Empty if the model does not name them.
  std::vector<std::string> scopes;
  double predicted = 0; ///< ns per micro-batch

  std::string blocksText() const;
  /// A few modules, or e.g. "embeddings to encoder.layer.3.output".
  std::string scopesText() const;
};

std::vector<StageInfo> stagesOf(const Model &model);

/// The modules that an instruction belongs to.
std::vector<std::string> scopesOf(const abi::Instruction &instruction);
std::string joinScopes(const std::vector<std::string> &scopes);

/// A table with a row for each stage.
std::string legendText(const Model &model);
nlohmann::ordered_json legendJson(const Model &model);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_STAGES_H
