//===- Stages.cpp - What the stages of a plan are -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/Stages.h"

#include "tools/partita-run/show/Format.h"

#include "runtime/base/Programs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace partita::run {

namespace {

/// Those beyond `most` are counted.
std::string join(const std::vector<std::string> &parts, size_t most,
                 const char *between) {
  std::string text;
  for (size_t i = 0; i < parts.size() && i < most; ++i)
    text += (i ? between : "") + parts[i];
  if (parts.size() > most)
    text += " +" + std::to_string(parts.size() - most);
  return text;
}

} // namespace

std::vector<std::string> scopesOf(const abi::Instruction &instruction) {
  std::vector<std::string> scopes;
  for (int64_t i = 0; i < runtime::length(instruction.scopes()); ++i)
    scopes.push_back(runtime::text(instruction.scopes()->Get(unsigned(i))));
  return scopes;
}

std::string joinScopes(const std::vector<std::string> &scopes) {
  constexpr size_t kMost = 2;
  return join(scopes, kMost, ", ");
}

std::vector<abi::StageRow> stagesOf(const Model &model) {
  std::vector<abi::StageRow> stages;
  for (int64_t i = 0; i < runtime::length(model.plan->stages()); ++i) {
    const abi::Stage &stage = *model.plan->stages()->Get(unsigned(i));
    abi::StageRow &info = stages.emplace_back();
    info.name = runtime::text(stage.name());
    info.device = model.executorNames(stage.program());
    info.flops = stage.flops();
    info.parameter_bytes = stage.parameter_bytes();
    info.activation_bytes = stage.activation_bytes();
    info.sent_bytes = stage.sent_bytes();
    info.peak_bytes = stage.peak_bytes();
    info.duration_ns = stage.duration_ns();
    for (int64_t b = 0; b < runtime::length(stage.blocks()); ++b)
      info.blocks.push_back(runtime::text(stage.blocks()->Get(unsigned(b))));
    if (stage.program() < 0)
      continue;
    const abi::Program &program =
        runtime::at(model.plan->programs(), stage.program());
    for (const abi::Unit &unit : runtime::each(program.units())) {
      if (unit.stage() != int(i))
        continue;
      for (const abi::Instruction &instruction :
           runtime::each(unit.instructions()))
        for (std::string &scope : scopesOf(instruction))
          if (std::find(info.scopes.begin(), info.scopes.end(), scope) ==
              info.scopes.end())
            info.scopes.push_back(std::move(scope));
    }
  }
  return stages;
}

std::string legendText(const Model &model) {
  const std::vector<abi::StageRow> stages = stagesOf(model);
  const bool hasScopes =
      std::any_of(stages.begin(), stages.end(), [](const abi::StageRow &stage) {
        return !stage.scopes.empty();
      });
  std::vector<std::string> header = {"stage", "device", "blocks"};
  if (hasScopes)
    header.push_back("modules");
  header.push_back(">predicted");
  constexpr size_t kMostBlocks = 4;
  Table table(header);
  for (const abi::StageRow &stage : stages) {
    std::vector<std::string> row = {stage.name, stage.device,
                                    join(stage.blocks, kMostBlocks, " ")};
    if (hasScopes)
      row.push_back(abi::modulesText(stage.scopes));
    row.push_back(timeText(double(stage.duration_ns)));
    table.add(std::move(row));
  }
  return table.text();
}

nlohmann::ordered_json legendJson(const Model &model) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (const abi::StageRow &stage : stagesOf(model))
    result.push_back({{"name", stage.name},
                      {"device", stage.device},
                      {"blocks", stage.blocks},
                      {"scopes", stage.scopes},
                      {"predicted_us", double(stage.duration_ns) / 1e3}});
  return result;
}

} // namespace partita::run
