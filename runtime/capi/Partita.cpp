//===- Partita.cpp - Partita's runtime for C ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/StateParts.h"
#include "runtime/capi/StateList.h"
#include "runtime/feed/PlanStreams.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

using namespace partita::capi;
using partita::feed::Model;
using partita::feed::PlanChoice;
using partita::feed::PlanStreams;
using partita::feed::Port;
using partita::runtime::Expected;
using partita::runtime::Tensor;

static_assert(PARTITA_U2 == static_cast<int>(partita::abi::DType::MAX));
static_assert(PARTITA_BOOL == static_cast<int>(partita::abi::DType::boolean));
static_assert(PARTITA_F4E2M1 == static_cast<int>(partita::abi::DType::f4e2m1));

struct partita_model {
  std::unique_ptr<PlanStreams> streams;
  std::vector<PortInfo> inputs, outputs; ///< of the largest plan
  std::vector<size_t> dimensions;        ///< of PlanChoice, that callers see
  std::vector<std::vector<int64_t>> dimensionSizes;
  std::vector<std::string> deviceNames;
  StateList states{"model"};
  std::string remark;

  const PlanChoice &plans() const { return streams->plans(); }

  /// The sizes of PlanChoice's dimensions. An error if one cannot be.
  Expected<std::vector<int64_t>> allSizes(const int64_t *sizes,
                                          int64_t samples) const {
    const PlanChoice &choice = plans();
    std::vector<int64_t> all = choice.sizesOfPlan(choice.largest());
    for (size_t d = 0; d < all.size(); ++d)
      if (choice.isBatch(d))
        all[d] = samples;
    for (size_t i = 0; sizes && i < dimensions.size(); ++i) {
      if (sizes[i] < 0 || sizes[i] > dimensionSizes[i].back())
        return Status::error("there are " + std::to_string(sizes[i]) + " " +
                             choice.dimensions()[dimensions[i]] +
                             ": give 0 to " +
                             std::to_string(dimensionSizes[i].back()));
      all[dimensions[i]] = sizes[i];
    }
    return all;
  }

  Expected<uint64_t> submit(const int64_t *sizes, const void *const *in,
                            int64_t samples, void *const *out,
                            int sequence = 0) {
    if (samples < 1)
      return Status::error("there are " + std::to_string(samples) +
                           " samples: give at least 1");
    int64_t largest = 1;
    for (const auto *ports : {&inputs, &outputs})
      for (const PortInfo &info : *ports)
        largest = std::max(largest, info.bytes);
    if (samples > std::numeric_limits<int64_t>::max() / largest)
      return Status::error("there are too many samples: " +
                           std::to_string(samples));
    if ((!in && !inputs.empty()) || (!out && !outputs.empty()))
      return Status::error("there is no list of inputs, or of outputs");
    std::vector<int64_t> all = PARTITA_TRY(allSizes(sizes, samples));
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const PortInfo &info = inputs[i];
      if (samples > 1 && info.port.batchAxis < 0)
        return Status::error("'" + info.port.name +
                             "' has no axis for samples: give one at a time" +
                             info.port.wholeText());
      if (!in[i] && info.bytes > 0)
        return Status::error("the input '" + info.port.name + "' is not given");
      tensors.push_back(
          Tensor::refer(info.port.dtype, info.shapeOf(samples, sizes),
                        static_cast<const uint8_t *>(in[i]), nullptr));
    }
    std::vector<uint8_t *> places;
    for (size_t i = 0; i < outputs.size(); ++i)
      places.push_back(static_cast<uint8_t *>(out[i]));
    return streams->submit(all, tensors, places, sequence);
  }
};

namespace {

Status openModel(const char *path, const partita_options *given,
                 partita_model **result) {
  if (!path || !result)
    return Status::error("there is no path, or no place for the model");
  *result = nullptr;
  partita_options options;
  partita_default_options(&options);
  if (given)
    PARTITA_TRY(readStruct(given, options, "partita_options"));
  PARTITA_TRY(checkOptions(options, "partita_options"));
  if (options.queued_samples < 0)
    return Status::error("partita_options.queued_samples is " +
                         std::to_string(options.queued_samples) +
                         ": give a number of samples, or 0 for as many as fill "
                         "four steps");
  auto artifacts = PARTITA_TRY(partita::runtime::Artifact::openAll(path));
  auto session = sessionOf(options, artifacts.front()->plan());
  session.keep_nan = options.strict_nan != 0;
  auto streams =
      PARTITA_TRY(PlanStreams::create(std::move(artifacts), session,
                                      {.delay_s = options.batch_delay_s,
                                       .queued_samples = options.queued_samples,
                                       .devices_lock = nullptr}));
  auto made = std::make_unique<partita_model>();
  made->streams = std::move(streams);
  made->remark = made->streams->remark();
  const PlanChoice &plans = made->plans();
  std::vector<int> shown(plans.dimensions().size(), -1);
  for (size_t d = 0; d < shown.size(); ++d)
    if (!plans.isBatch(d)) {
      shown[d] = static_cast<int>(made->dimensions.size());
      made->dimensions.push_back(d);
      made->dimensionSizes.push_back(plans.sizesOf(d));
    }
  const Model &model = plans.model(plans.largest());
  for (int device = 0; device < model.devices; ++device)
    made->deviceNames.push_back(model.deviceName(device));
  for (int64_t number : partita::runtime::shownStates(*model.plan))
    made->states.add(*model.plan, *model.plan->states()->Get(unsigned(number)),
                     number);
  const auto &stream = made->streams->stream(plans.largest());
  auto add = [&](const Port &port, int64_t entries, auto axisOf,
                 std::vector<PortInfo> &infos) {
    std::vector<int> dimensions;
    std::vector<int64_t> extra;
    for (size_t axis = 0; axis < port.shape.size(); ++axis) {
      const PlanChoice::Axis which = axisOf(axis);
      dimensions.push_back(which.dimension < 0
                               ? -1
                               : shown[static_cast<size_t>(which.dimension)]);
      extra.push_back(which.extra);
    }
    infos.emplace_back(port, entries, std::move(dimensions), std::move(extra));
  };
  for (size_t i = 0; i < model.inputs.size(); ++i)
    add(
        model.inputs[i], stream.inputEntries(i),
        [&](size_t axis) { return plans.inputAxis(i, axis); }, made->inputs);
  for (size_t i = 0; i < model.outputs.size(); ++i)
    add(
        model.outputs[i], stream.outputEntries(i),
        [&](size_t axis) { return plans.outputAxis(i, axis); }, made->outputs);
  *result = made.release();
  return Status();
}

} // namespace

extern "C" {

int partita_api_version(void) { return PARTITA_API_VERSION; }

void partita_default_options_sized(partita_options *options, size_t size) {
  if (!options)
    return (void)done(Status::error("there is no place for partita_options"));
  partita_options defaults = {size, 0, 1, 0, 0, 60, 0, 0, 0};
  std::memcpy(options, &defaults, std::min(size, sizeof defaults));
}

// For programs that were compiled before the options grew.
#undef partita_default_options
void partita_default_options(partita_options *options) {
  partita_default_options_sized(options, offsetof(partita_options, cpu_level));
}

partita_status partita_open(const char *path, const partita_options *options,
                            partita_model **model) {
  return guard([&] { return openModel(path, options, model); });
}

void partita_close(partita_model *model) { delete model; }

size_t partita_input_count(const partita_model *model) {
  return ask(model, size_t(0), [&] { return model->inputs.size(); });
}
size_t partita_output_count(const partita_model *model) {
  return ask(model, size_t(0), [&] { return model->outputs.size(); });
}

partita_status partita_input(const partita_model *model, size_t index,
                             partita_port *port) {
  return guardOf(model, [&] {
    return describe("model", model->inputs, index, "inputs", port);
  });
}
partita_status partita_output(const partita_model *model, size_t index,
                              partita_port *port) {
  return guardOf(model, [&] {
    return describe("model", model->outputs, index, "outputs", port);
  });
}

partita_status partita_find_input(const partita_model *model, const char *name,
                                  size_t *index) {
  return guardOf(model, [&] {
    return find("model", model->inputs, name, "input", index);
  });
}
partita_status partita_find_output(const partita_model *model, const char *name,
                                   size_t *index) {
  return guardOf(model, [&] {
    return find("model", model->outputs, name, "output", index);
  });
}

int64_t partita_step_samples(const partita_model *model) {
  return ask(model, int64_t(0), [&] {
    return model->streams->stream(model->plans().largest()).stepSamples();
  });
}

size_t partita_dimension_count(const partita_model *model) {
  return ask(model, size_t(0), [&] { return model->dimensions.size(); });
}

partita_status partita_get_dimension(const partita_model *model, size_t index,
                                     partita_dimension *dimension) {
  return guardOf(model, [&] {
    if (index >= model->dimensions.size())
      return noneOf("model", model->dimensions.size(), "dimensions",
                    static_cast<int64_t>(index));
    const std::vector<int64_t> &sizes = model->dimensionSizes[index];
    return fillIn(
        dimension,
        {0, model->plans().dimensions()[model->dimensions[index]].c_str(),
         static_cast<int>(sizes.size()), sizes.data()},
        "partita_dimension");
  });
}

size_t partita_state_count(const partita_model *model) {
  return ask(model, size_t(0), [&] { return model->states.size(); });
}

partita_status partita_describe_state(const partita_model *model, size_t index,
                                      partita_state *state) {
  return guardOf(model, [&] { return model->states.describe(index, state); });
}

partita_status partita_find_state(const partita_model *model, const char *name,
                                  size_t *index) {
  return guardOf(model, [&] { return model->states.find(name, index); });
}

partita_status partita_get_state(partita_model *model, size_t index, void *to,
                                 size_t bytes) {
  return partita_get_sequence_state(model, 0, index, to, bytes);
}

partita_status partita_set_state(partita_model *model, size_t index,
                                 const void *from, size_t bytes) {
  return partita_set_sequence_state(model, 0, index, from, bytes);
}

partita_status partita_reset_states(partita_model *model) {
  return guardOf(model, [&] {
    for (int i = 0; i < model->streams->sequences(); ++i)
      PARTITA_TRY(model->streams->reset(i));
    return Status();
  });
}

int partita_sequence_count(const partita_model *model) {
  return ask(model, 0, [&] { return model->streams->sequences(); });
}

partita_status partita_submit_sequence(partita_model *model, int sequence,
                                       const int64_t *sizes,
                                       const void *const *inputs,
                                       int64_t samples, void *const *outputs,
                                       uint64_t *ticket) {
  return guardOf(model, [&] {
    if (!ticket)
      return Status::error("there is no place for the ticket");
    *ticket =
        PARTITA_TRY(model->submit(sizes, inputs, samples, outputs, sequence));
    return Status();
  });
}

partita_status partita_get_sequence_state(partita_model *model, int sequence,
                                          size_t index, void *to,
                                          size_t bytes) {
  return guardOf(model, [&] {
    PARTITA_TRY(model->states.check(index, to, bytes));
    return model->streams->readState(model->states.number(index), to, sequence);
  });
}

partita_status partita_set_sequence_state(partita_model *model, int sequence,
                                          size_t index, const void *from,
                                          size_t bytes) {
  return guardOf(model, [&] {
    PARTITA_TRY(model->states.check(index, from, bytes));
    return model->streams->writeState(model->states.number(index), from,
                                      sequence);
  });
}

partita_status partita_reset_sequence(partita_model *model, int sequence) {
  return guardOf(model, [&] { return model->streams->reset(sequence); });
}

partita_status partita_run_sized(partita_model *model, const int64_t *sizes,
                                 const void *const *inputs, int64_t samples,
                                 void *const *outputs) {
  return guardOf(model, [&] {
    auto ticket = PARTITA_TRY(model->submit(sizes, inputs, samples, outputs));
    return model->streams->wait(ticket);
  });
}

partita_status partita_submit_sized(partita_model *model, const int64_t *sizes,
                                    const void *const *inputs, int64_t samples,
                                    void *const *outputs, uint64_t *ticket) {
  return partita_submit_sequence(model, 0, sizes, inputs, samples, outputs,
                                 ticket);
}

partita_status partita_run(partita_model *model, const void *const *inputs,
                           int64_t samples, void *const *outputs) {
  return partita_run_sized(model, nullptr, inputs, samples, outputs);
}

partita_status partita_submit(partita_model *model, const void *const *inputs,
                              int64_t samples, void *const *outputs,
                              uint64_t *ticket) {
  return partita_submit_sized(model, nullptr, inputs, samples, outputs, ticket);
}

partita_status partita_wait(partita_model *model, uint64_t ticket) {
  return guardOf(model, [&] { return model->streams->wait(ticket); });
}

partita_status partita_get_profile(const partita_model *model,
                                   partita_profile *profile) {
  return guardOf(model, [&] {
    partita_profile all = {0, 0, 0,
                           static_cast<int>(model->deviceNames.size())};
    for (size_t plan = 0; plan < model->plans().planCount(); ++plan) {
      const auto counts = model->streams->stream(plan).counts();
      all.steps += counts.steps;
      all.samples += counts.samples;
    }
    return fillIn(profile, all, "partita_profile");
  });
}

partita_status partita_get_device_profile(const partita_model *model,
                                          int device,
                                          partita_device_profile *profile) {
  return guardOf(model, [&] {
    const size_t count = model->deviceNames.size(),
                 index = static_cast<size_t>(device);
    if (device < 0 || index >= count)
      return noneOf("model", count, "devices", device);
    double busy = 0;
    for (size_t plan = 0; plan < model->plans().planCount(); ++plan) {
      const int64_t ns = model->streams->stream(plan).busyNs()[index];
      busy += ns < 0 ? std::nan("") : static_cast<double>(ns) / 1e9;
    }
    return fillIn(profile, {0, model->deviceNames[index].c_str(), busy},
                  "partita_device_profile");
  });
}

int partita_keeps_nan(const partita_model *model) {
  return ask(model, 0, [&] { return int(model->streams->keepsNan()); });
}

const char *partita_remark(const partita_model *model) {
  return ask<const char *>(model, "", [&] { return model->remark.c_str(); });
}
}
