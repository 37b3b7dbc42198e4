//===- Stages.h - What the stages of a plan are -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_STAGES_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_STAGES_H

#include "runtime/abi/PlanText.h"
#include "runtime/feed/Model.h"

#include <nlohmann/json_fwd.hpp>

namespace partita::run {

using namespace feed;

std::vector<abi::StageRow> stagesOf(const Model &model);

/// The modules that an instruction belongs to.
std::vector<std::string> scopesOf(const abi::Instruction &instruction);
std::string joinScopes(const std::vector<std::string> &scopes);

/// A table with a row for each stage.
std::string legendText(const Model &model);
nlohmann::ordered_json legendJson(const Model &model);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_STAGES_H
