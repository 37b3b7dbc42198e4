//===- ConvPlan.cpp - A convolution planned by cuDNN ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/ConvPlan.h"

#include <algorithm>
#include <array>

namespace partita::runtime::cuda::cudnn {

using rules::Conv;
using rules::Image;

namespace {

DataType typeOf(abi::DType type) {
  return type == abi::DType::f16    ? DataType::f16
         : type == abi::DType::bf16 ? DataType::bf16
                                    : DataType::f32;
}

/// One value a channel, broadcast along everything else.
Image biasOf(const Image &result) {
  Image bias = result;
  const int64_t channels = result.shape[1];
  std::fill(bias.shape.begin(), bias.shape.end(), 1);
  std::fill(bias.strides.begin(), bias.strides.end(), channels);
  bias.shape[1] = channels;
  bias.strides[1] = 1;
  return bias;
}

} // namespace

ConvPlan::~ConvPlan() {
  for (auto it = made.rbegin(); it != made.rend(); ++it)
    (void)api.descriptorDestroy(*it);
}

void ConvPlan::note(Result result) {
  if (failed == Result::success)
    failed = result;
}

Descriptor ConvPlan::create(DescriptorType type) {
  Descriptor descriptor = nullptr;
  const Result result = api.descriptorCreate(type, &descriptor);
  note(result);
  if (result != Result::success)
    return nullptr;
  made.push_back(descriptor);
  return descriptor;
}

template <typename T>
void ConvPlan::set(Descriptor descriptor, Attribute name, AttributeType type,
                   const std::vector<T> &values) {
  if (failed == Result::success)
    note(api.setAttribute(descriptor, name, type,
                          static_cast<int64_t>(values.size()), values.data()));
}

void ConvPlan::finalize(Descriptor descriptor) {
  if (failed == Result::success)
    note(api.finalize(descriptor));
}

Descriptor ConvPlan::tensor(const Conv &conv, const Image &image, TensorId id,
                            const ConvWishes &wishes) {
  const Descriptor made_tensor = create(DescriptorType::tensor);
  const auto number = static_cast<int64_t>(id);
  const int64_t alignment = wishes.alignments[static_cast<size_t>(number - 1)];
  set(made_tensor, Attribute::tensor_type, AttributeType::data_type,
      std::vector{typeOf(conv.type)});
  set(made_tensor, Attribute::tensor_dimensions, AttributeType::int64,
      image.shape);
  set(made_tensor, Attribute::tensor_strides, AttributeType::int64,
      image.strides);
  set(made_tensor, Attribute::tensor_id, AttributeType::int64,
      std::vector{number});
  set(made_tensor, Attribute::tensor_alignment, AttributeType::int64,
      std::vector{alignment});
  finalize(made_tensor);
  return made_tensor;
}

/// A tensor within the graph, which is in no memory.
Descriptor ConvPlan::inner(const Image &image, int64_t id) {
  const Descriptor made_tensor = create(DescriptorType::tensor);
  const bool yes = true;
  set(made_tensor, Attribute::tensor_type, AttributeType::data_type,
      std::vector{DataType::f32});
  set(made_tensor, Attribute::tensor_dimensions, AttributeType::int64,
      image.shape);
  set(made_tensor, Attribute::tensor_strides, AttributeType::int64,
      image.strides);
  set(made_tensor, Attribute::tensor_id, AttributeType::int64, std::vector{id});
  set(made_tensor, Attribute::tensor_alignment, AttributeType::int64,
      std::vector<int64_t>{16});
  if (failed == Result::success)
    note(api.setAttribute(made_tensor, Attribute::tensor_is_virtual,
                          AttributeType::boolean, 1, &yes));
  finalize(made_tensor);
  return made_tensor;
}

Descriptor ConvPlan::pointwise(PointwiseMode mode, Descriptor x, Descriptor b,
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

Descriptor ConvPlan::graph(const Conv &conv, const ConvWishes &wishes,
                           const ForDevice &for_device) {
  const Descriptor x = tensor(conv, conv.x, TensorId::x, wishes),
                   w = tensor(conv, conv.weights, TensorId::weights, wishes),
                   result = tensor(conv, conv.result, TensorId::result, wishes);
  const Descriptor described = create(DescriptorType::convolution);
  set(described, Attribute::convolution_type, AttributeType::data_type,
      std::vector{DataType::f32});
  set(described, Attribute::convolution_mode, AttributeType::convolution_mode,
      std::vector{ConvolutionMode::cross_correlation});
  set(described, Attribute::convolution_spatial_dims, AttributeType::int64,
      std::vector{static_cast<int64_t>(conv.strides.size())});
  for (auto [name, values] :
       {std::pair(Attribute::convolution_dilations, &conv.dilations),
        std::pair(Attribute::convolution_strides, &conv.strides),
        std::pair(Attribute::convolution_pre_paddings, &conv.pads),
        std::pair(Attribute::convolution_post_paddings, &conv.pads)})
    set(described, name, AttributeType::int64, *values);
  finalize(described);

  // Each step but the last writes a tensor that is in no memory.
  int steps = (conv.addend >= 0) + (conv.bias >= 0) + conv.relu;
  int64_t next_id = 100;
  auto target = [&] {
    return steps-- == 0 ? result : inner(conv.result, next_id++);
  };
  Descriptor value = target();
  std::vector<Descriptor> operations = {
      create(DescriptorType::operation_convolution)};
  const Descriptor first = operations.front();
  set(first, Attribute::operation_convolution_descriptor, {described});
  set(first, Attribute::operation_convolution_x, {x});
  set(first, Attribute::operation_convolution_w, {w});
  set(first, Attribute::operation_convolution_y, {value});
  set(first, Attribute::operation_convolution_alpha, AttributeType::f32,
      std::vector{1.0f});
  set(first, Attribute::operation_convolution_beta, AttributeType::f32,
      std::vector{0.0f});
  finalize(first);
  auto add = [&](PointwiseMode mode, Descriptor operand) {
    const Descriptor to = target();
    operations.push_back(pointwise(mode, value, operand, to));
    value = to;
  };
  if (conv.addend >= 0)
    add(PointwiseMode::add,
        tensor(conv, conv.result, TensorId::addend, wishes));
  if (conv.bias >= 0)
    add(PointwiseMode::add,
        tensor(conv, biasOf(conv.result), TensorId::bias, wishes));
  if (conv.relu)
    add(PointwiseMode::relu, nullptr);
  const Descriptor whole = create(DescriptorType::graph);
  if (failed == Result::success)
    note(for_device(whole, DescriptorType::graph));
  set(whole, Attribute::graph_operations, operations);
  finalize(whole);
  return whole;
}

/// Engines with their settings, the fastest first by the library's estimate.
std::vector<Descriptor> ConvPlan::propose(Descriptor whole, Heuristic mode,
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

/// f32 is multiplied in f32, on no tensor core. No engine transforms tiles or
/// gives other bits in another run.
bool ConvPlan::isExact(Descriptor config, const Conv &conv,
                       const ConvWishes &wishes) {
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
    return false;
  bool keeps_nan = !(wishes.keep_nan && conv.relu);
  for (int64_t i = 0;
       i < std::min<int64_t>(count, static_cast<int64_t>(notes.size())); ++i) {
    const NumericalNote each = notes[static_cast<size_t>(i)];
    if (each == NumericalNote::strict_nan_prop)
      keeps_nan = true;
    else if (each != NumericalNote::tensor_core || conv.type == abi::DType::f32)
      return false;
  }
  return keeps_nan;
}

bool ConvPlan::use(Descriptor config, const ConvWishes &wishes,
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

Status ConvPlan::make(const Conv &conv, const ConvWishes &wishes,
                      const ForDevice &for_device) {
  const Descriptor whole = graph(conv, wishes, for_device);
  for (const Heuristic mode : {Heuristic::fast, Heuristic::fallback}) {
    if (failed != Result::success)
      break;
    for (const Descriptor config : propose(whole, mode, for_device))
      if (isExact(config, conv, wishes) && use(config, wishes, for_device))
        return Status();
  }
  if (failed != Result::success)
    return api.error(failed, "cannot describe a convolution to the library");
  return Status::error(
      api.name() + " has no engine for the convolution that computes " +
      (conv.type == abi::DType::f32 ? "in f32 alone"
                                    : "without transforming tiles") +
      (wishes.keep_nan && conv.relu ? ", keeps NaN" : "") + " and needs " +
      std::to_string(wishes.workspace) +
      " bytes of workspace at most: compile the model with "
      "--no-library-calls");
}

} // namespace partita::runtime::cuda::cudnn
