//===- PlanTable.cpp - The plan for people and programs -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/PlanTable.h"

#include "tools/partita-run/show/Format.h"

#include "runtime/base/Programs.h"
#include "runtime/io/DType.h"

#include <nlohmann/json.hpp>

namespace partita::run {

using Json = nlohmann::ordered_json;
using runtime::length;
using runtime::text;

namespace {

/// Names beyond this many are counted, not printed.
constexpr int64_t kShownBlocks = 4;

std::string blocksText(const abi::Stage *stage) {
  std::string result;
  const int64_t count = length(stage->blocks());
  for (int64_t i = 0; i < std::min(count, kShownBlocks); ++i)
    result += (i ? " " : "") + stage->blocks()->Get(unsigned(i))->str();
  if (count > kShownBlocks)
    result += " +" + std::to_string(count - kShownBlocks);
  return result;
}

std::string portsText(const char *what, const std::vector<Port> &ports) {
  std::string result;
  for (const Port &port : ports) {
    result += std::string(what) + " '" + port.name + "' " + port.typeText();
    if (port.batchAxis >= 0)
      result += ", " + std::to_string(port.samples()) + " a micro-batch";
    result += "\n";
  }
  return result;
}

Json portsJson(const std::vector<Port> &ports) {
  Json result = Json::array();
  for (const Port &port : ports)
    result.push_back({{"name", port.name},
                      {"dtype", runtime::dtypeName(port.dtype)},
                      {"shape", port.shape},
                      {"batch_axis", port.batchAxis},
                      {"index", port.index}});
  return result;
}

Json collectionsJson(const std::vector<Collection> &collections) {
  Json result = Json::array();
  for (const Collection &collection : collections)
    result.push_back(
        {{"name", collection.name},
         {"kind", abi::EnumNameCollectionKind(collection.kind)},
         {"index", collection.index},
         {"length", collection.length < 0 ? Json() : Json(collection.length)}});
  return result;
}

} // namespace

std::string predictedFor(const abi::Plan &plan) {
  const std::string machine = text(plan.machine());
  if (machine.empty())
    return "";
  return " for " + machine + " with " + std::to_string(plan.threads()) +
         (plan.threads() == 1 ? " core" : " cores") + " a device";
}

std::string planText(const Model &model) {
  const abi::Plan &plan = *model.plan;
  std::string result =
      model.file + ": " + text(plan.model()) + " over " +
      std::to_string(model.devices) + " device" +
      (model.devices == 1 ? "" : "s") + ", schedule " + text(plan.schedule()) +
      ", " + std::to_string(model.microBatches) + " micro-batch" +
      (model.microBatches == 1 ? "" : "es") + " a step" +
      (model.sizesText().empty() ? "" : ", for ") + model.sizesText() + "\n\n";
  Table stages({"stage", "blocks", "device", "work", "parameters",
                "activations", "sent", "peak memory", "time"},
               {false, false, false, true, true, true, true, true, true});
  std::vector<bool> used(size_t(model.devices), false);
  for (int64_t i = 0; i < length(plan.stages()); ++i) {
    const abi::Stage *stage = plan.stages()->Get(unsigned(i));
    for (int p = 0; stage->program() >= 0 && p < model.mesh.size(); ++p)
      used[size_t(model.mesh.device(stage->program(), p))] = true;
    stages.add({text(stage->name()), blocksText(stage),
                model.executorNames(stage->program()),
                flopsText(stage->flops()), bytesText(stage->parameter_bytes()),
                bytesText(stage->activation_bytes()),
                bytesText(stage->sent_bytes()), bytesText(stage->peak_bytes()),
                timeText(double(stage->duration_ns()))});
  }
  result += stages.text();
  for (int device = 0; device < model.devices; ++device)
    if (!used[size_t(device)])
      result += model.deviceName(device) + " has no stage\n";
  const double seconds = double(plan.step_ns()) / 1e9;
  const int64_t samples = model.samples() * model.microBatches;
  result += "\npredicted" + predictedFor(plan) + ": step " +
            timeText(double(plan.step_ns())) + ", " +
            (seconds > 0 ? numberText(double(samples) / seconds) : "?") +
            " samples/s, bubble " + numberText(plan.bubble(), 3) + "\n\n";
  result += portsText("input ", model.inputs);
  result += portsText("output", model.outputs);
  result += portsText("fixed input", model.boundInputs);
  if (length(plan.channels()) > 0) {
    Table channels({"sent value", "from", "to", "bytes", "why"},
                   {false, false, false, true, false});
    for (int64_t i = 0; i < length(plan.channels()); ++i) {
      const abi::Channel *channel = plan.channels()->Get(unsigned(i));
      channels.add({text(channel->name()),
                    model.executorNames(channel->source()),
                    model.executorNames(channel->target()),
                    bytesText(channel->bytes()), text(channel->reason())});
    }
    result += "\n" + channels.text();
  }
  if (length(plan.collectives()) > 0) {
    Table collectives({"value", "collective", "devices", "sent by each", "why"},
                      {false, false, false, true, false});
    for (int64_t i = 0; i < length(plan.collectives()); ++i) {
      const abi::Collective &each = *plan.collectives()->Get(unsigned(i));
      collectives.add({text(each.name()), model.collectiveText(each),
                       model.executorNames(each.program()),
                       bytesText(runtime::sentBytes(plan, each)),
                       text(each.reason())});
    }
    result += "\n" + collectives.text();
  }
  return result;
}

std::string planJson(const Model &model) {
  const abi::Plan &plan = *model.plan;
  Json json = {
      {"artifact", model.file},
      {"model", text(plan.model())},
      {"schedule", text(plan.schedule())},
      {"dimensions", Json::object()},
      {"devices", Json::array()},
      {"micro_batches", model.microBatches},
      {"samples_per_step", model.samples() * model.microBatches},
      {"predicted_ms", double(plan.step_ns()) / 1e6},
      {"bubble_predicted", plan.bubble()},
      {"predicted_for",
       {{"machine", text(plan.machine())}, {"threads", plan.threads()}}},
      {"stages", Json::array()},
      {"inputs", portsJson(model.inputs)},
      {"outputs", portsJson(model.outputs)},
      {"bound_inputs", portsJson(model.boundInputs)},
      {"input_collections", collectionsJson(model.inputCollections)},
      {"output_collections", collectionsJson(model.outputCollections)},
      {"channels", Json::array()},
      {"collectives", Json::array()}};
  for (int64_t i = 0; i < length(plan.dimensions()); ++i)
    json["dimensions"][text(plan.dimensions()->Get(unsigned(i))->name())] =
        plan.dimensions()->Get(unsigned(i))->size();
  for (int d = 0; d < model.devices; ++d) {
    const abi::Program &program = runtime::programOf(plan, d);
    json["devices"].push_back({{"name", model.deviceName(d)},
                               {"arena_bytes", program.arena_bytes()},
                               {"parameter_bytes", program.parameter_bytes()},
                               {"packed_bytes", program.packed_bytes()},
                               {"workspace_bytes", program.workspace_bytes()},
                               {"constant_bytes", program.constant_bytes()}});
  }
  for (int64_t i = 0; i < length(plan.stages()); ++i) {
    const abi::Stage *stage = plan.stages()->Get(unsigned(i));
    Json blocks = Json::array();
    for (int64_t b = 0; b < length(stage->blocks()); ++b)
      blocks.push_back(stage->blocks()->Get(unsigned(b))->str());
    json["stages"].push_back(
        {{"name", text(stage->name())},
         {"device", model.executorNames(stage->program())},
         {"blocks", blocks},
         {"flops", stage->flops()},
         {"parameter_bytes", stage->parameter_bytes()},
         {"activation_bytes", stage->activation_bytes()},
         {"sent_bytes", stage->sent_bytes()},
         {"peak_bytes", stage->peak_bytes()},
         {"predicted_ms", double(stage->duration_ns()) / 1e6}});
  }
  for (int64_t i = 0; i < length(plan.channels()); ++i) {
    const abi::Channel *channel = plan.channels()->Get(unsigned(i));
    json["channels"].push_back(
        {{"name", text(channel->name())},
         {"source", model.executorNames(channel->source())},
         {"target", model.executorNames(channel->target())},
         {"bytes", channel->bytes()},
         {"reason", text(channel->reason())}});
  }
  for (int64_t i = 0; i < length(plan.collectives()); ++i) {
    const abi::Collective &each = *plan.collectives()->Get(unsigned(i));
    json["collectives"].push_back(
        {{"value", text(each.name())},
         {"kind", abi::EnumNameCollectiveKind(each.kind())},
         {"along", model.collectiveText(each)},
         {"devices", model.executorNames(each.program())},
         {"sent_bytes", runtime::sentBytes(plan, each)},
         {"predicted_us", double(each.duration_ns()) / 1e3},
         {"reason", text(each.reason())}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

} // namespace partita::run
