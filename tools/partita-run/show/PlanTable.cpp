//===- PlanTable.cpp - The plan for people and programs -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/PlanTable.h"

#include "runtime/abi/PlanText.h"
#include "runtime/abi/StepPicture.h"
#include "runtime/base/Programs.h"
#include "runtime/base/StateParts.h"
#include "runtime/io/DType.h"
#include "runtime/session/Session.h"
#include "tools/partita-run/show/Format.h"
#include "tools/partita-run/show/Stages.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace partita::run {

using Json = nlohmann::ordered_json;
using runtime::length;
using runtime::text;

namespace {

std::vector<abi::SampleAxis> sampleAxes(const Model &model) {
  std::vector<abi::SampleAxis> axes;
  for (const std::vector<Port> *ports : {&model.inputs, &model.outputs})
    for (const Port &port : *ports)
      axes.push_back({port.name, port.batchAxis});
  return axes;
}

/// How often a step of several micro-batches uses channels and collectives.
class Uses {
public:
  explicit Uses(const abi::Plan &plan) : several(plan.micro_batches() > 1) {
    for (const abi::Program *program : *plan.programs())
      for (int64_t i = 0; i < length(program->actions()); ++i) {
        const abi::ProgramAction action = runtime::actionOf(*program, i);
        ++counts[{action.kind, action.subject}];
      }
  }

  bool isOnce(abi::ActionKind kind, int64_t subject) const {
    auto found = counts.find({kind, subject});
    return several && found != counts.end() && found->second == 1;
  }

private:
  bool several;
  std::map<std::pair<abi::ActionKind, int64_t>, int64_t> counts;
};

/// Samples of a micro-batch. Dimension 0 of the inputs of a model that is
/// trained counts them.
int64_t countSamples(const Model &model) {
  if (*text(model.plan->entry()))
    for (const abi::Port &port : runtime::each(model.plan->inputs()))
      if (!port.per_step() && length(port.shape()) > 0)
        return port.shape()->Get(0);
  return model.samples();
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

/// What steps go on from; a training says its states itself.
std::vector<const abi::State *> carriedStates(const abi::Plan &plan) {
  std::vector<const abi::State *> states;
  for (int64_t number : runtime::shownStates(plan))
    if (const abi::State *state = plan.states()->Get(unsigned(number));
        state->role() == abi::StateRole::carried)
      states.push_back(state);
  return states;
}

std::string statesText(const abi::Plan &plan) {
  std::string result;
  for (const abi::State *state : carriedStates(plan)) {
    result += std::string("state  '") + text(state->name()) + "' " +
              runtime::dtypeName(state->dtype()) + " [";
    for (const char *before = "";
         int64_t size : runtime::stepShape(plan, *state)) {
      result += before + std::to_string(size);
      before = ", ";
    }
    result += "], " + abi::bytesText(runtime::stepBytes(plan, *state)) + "\n";
  }
  const int each = plan.step_sequences();
  if (each > 1)
    result += "a step is of up to " + std::to_string(each) +
              " sequences: each has its part of dimension 0 of the states\n";
  if (plan.sequences() > 1)
    result += "each of " + std::to_string(plan.sequences()) +
              (each > 1 ? " groups of them" : " sequences") +
              " has such states\n";
  return result;
}

Json statesJson(const abi::Plan &plan) {
  Json result = Json::array();
  for (const abi::State *state : carriedStates(plan)) {
    result.push_back({{"name", text(state->name())},
                      {"dtype", runtime::dtypeName(state->dtype())},
                      {"shape", runtime::stepShape(plan, *state)},
                      {"bytes", runtime::stepBytes(plan, *state)}});
  }
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

/// What lies in the memory of devices; nothing of a plan that does not learn.
std::vector<abi::MemoryRow> memoryRows(const Model &model) {
  std::vector<abi::MemoryRow> rows;
  for (int64_t i = 0; i < length(model.plan->programs()); ++i) {
    const abi::Program &program = *model.plan->programs()->Get(unsigned(i));
    const abi::MemoryParts *parts = program.memory();
    if (!parts)
      continue;
    abi::MemoryRow &row = rows.emplace_back();
    row.device = model.executorNames(int(i));
    row.states = parts->states();
    row.host = parts->host();
    row.gradients = parts->gradients();
    row.kept = parts->kept();
    row.work = parts->work();
    completeRow(row, program.arena_bytes(), program.parameter_bytes(),
                program.packed_bytes(), program.workspace_bytes());
  }
  return rows;
}

/// The programs of devices, and when they run units; nothing of a large plan.
std::string pictureText(const Model &model) {
  const abi::Plan &plan = *model.plan;
  const int64_t count = length(plan.programs());
  if (!abi::isDrawn(count, plan.micro_batches()))
    return "";
  std::vector<abi::DrawnProgram> programs;
  for (int64_t p = 0; p < count; ++p) {
    const abi::Program &program = *plan.programs()->Get(unsigned(p));
    abi::DrawnProgram &drawn = programs.emplace_back();
    drawn.device = model.executorNames(int(p));
    for (const abi::Unit &unit : runtime::each(program.units()))
      drawn.units.push_back({text(unit.name()), unit.duration_ns()});
    for (int64_t i = 0; i < length(program.actions()); ++i)
      drawn.actions.push_back(runtime::actionOf(program, i));
  }
  return abi::stepPicture(programs);
}

} // namespace

std::string predictedFor(const abi::Plan &plan) {
  return abi::machineText(text(plan.machine()), plan.threads());
}

std::string planText(const Model &model) {
  const abi::Plan &plan = *model.plan;
  std::string result = model.file + ": " + text(plan.model()) + " over " +
                       abi::countOf(model.devices, "device") +
                       (model.sizesText().empty() ? "" : ", for ") +
                       model.sizesText() + "\n\n";
  std::vector<bool> used(size_t(model.devices), false);
  for (const abi::Stage &stage : runtime::each(plan.stages()))
    for (int p = 0; stage.program() >= 0 && p < model.mesh.size(); ++p)
      used[size_t(model.mesh.device(stage.program(), p))] = true;
  result += abi::stagesText(stagesOf(model));
  std::vector<std::string> idle;
  for (int device = 0; device < model.devices; ++device)
    if (!used[size_t(device)])
      idle.push_back(model.deviceName(device));
  if (!idle.empty())
    result += abi::namesText(idle) + (idle.size() == 1 ? " has" : " have") +
              " no stage\n";
  result += abi::memoryText(memoryRows(model));
  result += abi::stepText({text(plan.schedule()), plan.micro_batches(),
                           countSamples(model), model.mesh.replicas(),
                           text(plan.machine()), plan.threads(), plan.step_ns(),
                           plan.bubble(), plan.alone_ns()});
  // What is trained takes many steps of samples.
  if (!plan.entry() || plan.entry()->size() == 0)
    result += abi::samplesText(sampleAxes(model), text(plan.mixes()));
  result += pictureText(model);
  result += "\n";
  for (const std::string &need : runtime::describeNeeds(*model.artifact))
    result += "needs  " + need + "\n";
  result += portsText("input ", model.inputs);
  result += portsText("output", model.outputs);
  result += portsText("fixed input", model.boundInputs);
  result += statesText(plan);
  const Uses uses(plan);
  std::vector<abi::MessageRow> messages;
  for (int64_t i = 0; i < length(plan.channels()); ++i) {
    const abi::Channel *channel = plan.channels()->Get(unsigned(i));
    messages.push_back({text(channel->name()),
                        model.executorNames(channel->source()) + " to " +
                            model.executorNames(channel->target()),
                        channel->bytes(), channel->duration_ns(),
                        text(channel->reason()),
                        uses.isOnce(abi::ActionKind::send, i)});
  }
  for (int64_t i = 0; i < length(plan.collectives()); ++i) {
    const abi::Collective &each = *plan.collectives()->Get(unsigned(i));
    messages.push_back({text(each.name()), model.collectiveText(each),
                        runtime::sentBytes(plan, each), each.duration_ns(),
                        text(each.reason()),
                        uses.isOnce(abi::ActionKind::start, i)});
  }
  return result + "\n" + abi::messagesText(messages);
}

static Json toJson(const Model &model) {
  const abi::Plan &plan = *model.plan;
  Json json = {
      {"artifact", model.file},
      {"model", text(plan.model())},
      {"schedule", text(plan.schedule())},
      {"dimensions", Json::object()},
      {"devices", Json::array()},
      {"replicas", model.mesh.replicas()},
      {"micro_batches", plan.micro_batches()},
      {"samples_per_micro_batch", countSamples(model)},
      {"samples_per_step", countSamples(model) * model.microBatches},
      {"mixes", text(plan.mixes())},
      {"predicted_ms", double(plan.step_ns()) / 1e6},
      {"alone_predicted_ms", double(plan.alone_ns()) / 1e6},
      {"bubble_predicted", plan.bubble()},
      {"predicted_for",
       {{"machine", text(plan.machine())}, {"threads", plan.threads()}}},
      {"needs", runtime::describeNeeds(*model.artifact)},
      {"stages", Json::array()},
      {"inputs", portsJson(model.inputs)},
      {"outputs", portsJson(model.outputs)},
      {"bound_inputs", portsJson(model.boundInputs)},
      {"states", statesJson(plan)},
      {"sequences", plan.sequences()},
      {"step_sequences", plan.step_sequences()},
      {"input_collections", collectionsJson(model.inputCollections)},
      {"output_collections", collectionsJson(model.outputCollections)},
      {"transfers", Json::array()},
      {"collectives", Json::array()}};
  const Uses uses(plan);
  for (const abi::Dimension &each : runtime::each(plan.dimensions()))
    json["dimensions"][text(each.name())] = each.size();
  for (int d = 0; d < model.devices; ++d) {
    const abi::Program &program = runtime::programOf(plan, d);
    json["devices"].push_back({{"name", model.deviceName(d)},
                               {"arena_bytes", program.arena_bytes()},
                               {"parameter_bytes", program.parameter_bytes()},
                               {"packed_bytes", program.packed_bytes()},
                               {"workspace_bytes", program.workspace_bytes()},
                               {"constant_bytes", program.constant_bytes()}});
  }
  for (const abi::MemoryRow &each : memoryRows(model)) {
    Json row = {{"device", each.device}};
    for (const auto &[key, bytes] : abi::memoryFields(each))
      row[key] = bytes;
    json["memory"].push_back(row);
  }
  for (const abi::StageRow &stage : stagesOf(model))
    json["stages"].push_back(
        {{"name", stage.name},
         {"device", stage.device},
         {"blocks", stage.blocks},
         {"scopes", stage.scopes},
         {"flops", stage.flops},
         {"parameter_bytes", stage.parameter_bytes},
         {"activation_bytes", stage.activation_bytes},
         {"sent_bytes", stage.sent_bytes},
         {"peak_bytes", stage.peak_bytes},
         {"predicted_ms", double(stage.duration_ns) / 1e6}});
  for (int64_t i = 0; i < length(plan.channels()); ++i) {
    const abi::Channel *channel = plan.channels()->Get(unsigned(i));
    json["transfers"].push_back(
        {{"value", text(channel->name())},
         {"source", model.executorNames(channel->source())},
         {"target", model.executorNames(channel->target())},
         {"bytes", channel->bytes()},
         {"per_step", uses.isOnce(abi::ActionKind::send, i)},
         {"predicted_ms", double(channel->duration_ns()) / 1e6},
         {"reason", text(channel->reason())}});
  }
  for (int64_t i = 0; i < length(plan.collectives()); ++i) {
    const abi::Collective &each = *plan.collectives()->Get(unsigned(i));
    json["collectives"].push_back(
        {{"value", text(each.name())},
         {"kind", abi::EnumNameCollectiveKind(each.kind())},
         {"axes", model.axesText(each)},
         {"devices", model.executorNames(each.program())},
         {"sent_bytes", runtime::sentBytes(plan, each)},
         {"per_step", uses.isOnce(abi::ActionKind::start, i)},
         {"predicted_ms", double(each.duration_ns()) / 1e6},
         {"reason", text(each.reason())}});
  }
  return json;
}

std::string planJson(const Model &model, const Model *training,
                     const std::vector<const Model *> &several) {
  Json json = toJson(model);
  for (const Model *each : several)
    json["of_several_sequences"].push_back(toJson(*each));
  if (training)
    json["training"] = toJson(*training);
  return dump(json, 2) + "\n";
}

} // namespace partita::run
