//===- EnginePlan.cpp - An engine that cuDNN plans with -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/EnginePlan.h"

#include <algorithm>
#include <array>

namespace partita::runtime::cuda::cudnn {

static DataType typeOf(abi::DType type) {
  return type == abi::DType::f16    ? DataType::f16
         : type == abi::DType::bf16 ? DataType::bf16
                                    : DataType::f32;
}

EnginePlan::~EnginePlan() {
  for (auto it = made.rbegin(); it != made.rend(); ++it)
    (void)api.descriptorDestroy(*it);
}

void EnginePlan::note(Result result) {
  if (failed == Result::success)
    failed = result;
}

Descriptor EnginePlan::create(DescriptorType type) {
  Descriptor descriptor = nullptr;
  const Result result = api.descriptorCreate(type, &descriptor);
  note(result);
  if (result != Result::success)
    return nullptr;
  made.push_back(descriptor);
  return descriptor;
}

void EnginePlan::setFlag(Descriptor descriptor, Attribute name) {
  const bool yes = true;
  describe(name, std::vector<int>{yes});
  if (failed == Result::success)
    note(api.setAttribute(descriptor, name, AttributeType::boolean, 1, &yes));
}

void EnginePlan::finalize(Descriptor descriptor) {
  if (failed == Result::success)
    note(api.finalize(descriptor));
}

Descriptor EnginePlan::tensor(abi::DType type, const rules::Image &image,
                              int64_t id, int64_t alignment, bool in_memory,
                              const void *number) {
  const Descriptor made_tensor = create(DescriptorType::tensor);
  set(made_tensor, Attribute::tensor_type, AttributeType::data_type,
      std::vector{typeOf(type)});
  set(made_tensor, Attribute::tensor_dimensions, AttributeType::int64,
      image.shape);
  set(made_tensor, Attribute::tensor_strides, AttributeType::int64,
      image.strides);
  set(made_tensor, Attribute::tensor_id, AttributeType::int64, std::vector{id});
  set(made_tensor, Attribute::tensor_alignment, AttributeType::int64,
      std::vector{alignment});
  if (!in_memory)
    setFlag(made_tensor, Attribute::tensor_is_virtual);
  if (number)
    setFlag(made_tensor, Attribute::tensor_is_by_value);
  finalize(made_tensor);
  return made_tensor;
}

Descriptor EnginePlan::pointwise(PointwiseMode mode, Descriptor x, Descriptor b,
                                 Descriptor y) {
  const Descriptor described = create(DescriptorType::pointwise);
  set(described, Attribute::pointwise_mode, AttributeType::pointwise_mode,
      std::vector{mode});
  set(described, Attribute::pointwise_type, AttributeType::data_type,
      std::vector{DataType::f32});
  finalize(described);
  const Descriptor operation = create(DescriptorType::operation_pointwise);
  set(operation, Attribute::operation_pointwise_descriptor, {described});
  set(operation, Attribute::operation_pointwise_x, {x});
  if (b)
    set(operation, Attribute::operation_pointwise_b, {b});
  set(operation, Attribute::operation_pointwise_y, {y});
  finalize(operation);
  return operation;
}

/// Engines with their settings, the fastest first by the library's estimate.
std::vector<Descriptor> EnginePlan::propose(Descriptor whole, Heuristic mode,
                                            const ForDevice &for_device) {
  const Descriptor heuristics = create(DescriptorType::heuristics);
  set(heuristics, Attribute::heuristics_graph, {whole});
  set(heuristics, Attribute::heuristics_mode, AttributeType::heuristic,
      std::vector{mode});
  if (failed == Result::success)
    note(for_device(heuristics, DescriptorType::heuristics));
  finalize(heuristics);
  int64_t count = 0;
  if (failed == Result::success)
    note(api.getAttribute(heuristics, Attribute::heuristics_results,
                          AttributeType::descriptor, 0, &count, nullptr));
  std::vector<Descriptor> configs;
  for (int64_t i = 0; i < count && failed == Result::success; ++i)
    configs.push_back(create(DescriptorType::engine_config));
  if (configs.empty() || failed != Result::success)
    return {};
  note(api.getAttribute(
      heuristics, Attribute::heuristics_results, AttributeType::descriptor,
      static_cast<int64_t>(configs.size()), &count, configs.data()));
  configs.resize(static_cast<size_t>(
      std::clamp<int64_t>(count, 0, static_cast<int64_t>(configs.size()))));
  return failed == Result::success ? configs : std::vector<Descriptor>();
}

std::vector<NumericalNote> EnginePlan::notesOf(Descriptor config) {
  Descriptor engine = create(DescriptorType::engine);
  int64_t count = 0;
  std::array<NumericalNote, 16> notes;
  if (failed == Result::success)
    note(api.getAttribute(config, Attribute::config_engine,
                          AttributeType::descriptor, 1, &count, &engine));
  if (failed == Result::success)
    note(api.getAttribute(engine, Attribute::engine_numerical_notes,
                          AttributeType::numerical_note,
                          static_cast<int64_t>(notes.size()), &count,
                          notes.data()));
  if (failed != Result::success)
    return {};
  const auto known = static_cast<size_t>(
      std::clamp<int64_t>(count, 0, static_cast<int64_t>(notes.size())));
  return {notes.begin(), notes.begin() + known};
}

bool EnginePlan::use(Descriptor config, const EngineWishes &wishes,
                     const ForDevice &for_device) {
  const Descriptor plan = create(DescriptorType::plan);
  set(plan, Attribute::plan_config, {config});
  if (failed == Result::success)
    note(for_device(plan, DescriptorType::plan));
  // An engine may refuse what it was proposed for.
  if (failed != Result::success || api.finalize(plan) != Result::success)
    return false;
  int64_t count = 0, bytes = 0;
  note(api.getAttribute(plan, Attribute::plan_workspace, AttributeType::int64,
                        1, &count, &bytes));
  if (failed != Result::success || bytes < 0 ||
      static_cast<size_t>(bytes) > wishes.workspace)
    return false;
  chosen = plan;
  workspace_bytes = static_cast<size_t>(bytes);
  return true;
}

std::optional<ChoiceCache::Choice> EnginePlan::choiceOf(Descriptor config) {
  Descriptor engine = create(DescriptorType::engine);
  int64_t count = 0, index = 0;
  auto get = [&](Descriptor of, Attribute name, AttributeType type,
                 int64_t wanted, void *to) {
    if (failed == Result::success)
      note(api.getAttribute(of, name, type, wanted, &count, to));
  };
  get(config, Attribute::config_engine, AttributeType::descriptor, 1, &engine);
  get(engine, Attribute::engine_index, AttributeType::int64, 1, &index);
  count = 0;
  get(config, Attribute::config_knobs, AttributeType::descriptor, 0, nullptr);
  std::vector<Descriptor> knobs;
  for (int64_t i = 0; i < count && failed == Result::success; ++i)
    knobs.push_back(create(DescriptorType::knob_choice));
  if (!knobs.empty())
    get(config, Attribute::config_knobs, AttributeType::descriptor,
        static_cast<int64_t>(knobs.size()), knobs.data());
  ChoiceCache::Choice choice = {static_cast<uint64_t>(index)};
  for (const Descriptor each : knobs) {
    int32_t knob = 0;
    int64_t value = 0;
    get(each, Attribute::knob_choice_knob, AttributeType::knob, 1, &knob);
    get(each, Attribute::knob_choice_value, AttributeType::int64, 1, &value);
    choice.push_back(static_cast<uint64_t>(knob));
    choice.push_back(static_cast<uint64_t>(value));
  }
  return failed == Result::success ? std::optional(choice) : std::nullopt;
}

Descriptor EnginePlan::configOf(Descriptor whole,
                                const ChoiceCache::Choice &choice,
                                const ForDevice &for_device) {
  if (choice.size() % 2 == 0)
    return nullptr;
  const Descriptor engine = create(DescriptorType::engine);
  set(engine, Attribute::engine_graph, {whole});
  set(engine, Attribute::engine_index, AttributeType::int64,
      std::vector{static_cast<int64_t>(choice[0])});
  if (failed == Result::success)
    note(for_device(engine, DescriptorType::engine));
  finalize(engine);
  std::vector<Descriptor> knobs;
  for (size_t i = 1; i < choice.size() && failed == Result::success; i += 2) {
    const Descriptor knob = create(DescriptorType::knob_choice);
    set(knob, Attribute::knob_choice_knob, AttributeType::knob,
        std::vector{static_cast<int32_t>(choice[i])});
    set(knob, Attribute::knob_choice_value, AttributeType::int64,
        std::vector{static_cast<int64_t>(choice[i + 1])});
    finalize(knob);
    knobs.push_back(knob);
  }
  const Descriptor config = create(DescriptorType::engine_config);
  set(config, Attribute::config_engine, {engine});
  if (!knobs.empty())
    set(config, Attribute::config_knobs, knobs);
  finalize(config);
  return failed == Result::success ? config : nullptr;
}

Status EnginePlan::choose(const std::vector<Descriptor> &operations,
                          const EngineWishes &wishes,
                          const ForDevice &for_device,
                          const std::function<bool(Descriptor)> &suits,
                          const std::string &what, const std::string &how,
                          const std::string &advice) {
  const std::string problem = what + text.str() + " workspace " +
                              std::to_string(wishes.workspace) +
                              (wishes.keep_nan ? " NaN" : "");
  const Descriptor whole = create(DescriptorType::graph);
  if (failed == Result::success)
    note(for_device(whole, DescriptorType::graph));
  set(whole, Attribute::graph_operations, operations);
  finalize(whole);
  if (wishes.cache && failed == Result::success)
    if (const auto known = wishes.cache->find(problem)) {
      const Descriptor config = configOf(whole, *known, for_device);
      if (config && suits(config) && use(config, wishes, for_device))
        return Status();
      failed = Result::success; // it is chosen again
    }
  for (const Heuristic mode : {Heuristic::fast, Heuristic::fallback}) {
    if (failed != Result::success)
      break;
    for (const Descriptor config : propose(whole, mode, for_device))
      if (suits(config) && use(config, wishes, for_device)) {
        if (wishes.cache)
          if (const auto choice = choiceOf(config))
            wishes.cache->add(problem, *choice);
        return Status();
      }
  }
  if (failed != Result::success)
    return api.error(failed, "cannot describe " + what + " to the library");
  return Status::error(api.name() + " has no engine for " + what + " that " +
                       how + " and needs " + std::to_string(wishes.workspace) +
                       " bytes of workspace at most: " + advice);
}

} // namespace partita::runtime::cuda::cudnn
