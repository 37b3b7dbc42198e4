//===- Model.cpp - What partita-run knows of an artifact ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/Model.h"

#include "runtime/abi/Text.h"
#include "runtime/base/Programs.h"
#include "runtime/io/DType.h"
#include "runtime/io/Tensor.h"

#include <algorithm>
#include <filesystem>

namespace partita::feed {

using runtime::length;

namespace {

using PortTables = flatbuffers::Vector<flatbuffers::Offset<partita::abi::Port>>;

std::vector<Port> readPorts(const PortTables *tables,
                            const std::string &whole = "") {
  std::vector<Port> ports;
  for (const abi::Port &table : runtime::each(tables)) {
    Port port;
    port.name = runtime::text(table.name());
    port.dtype = table.dtype();
    port.shape = runtime::shapeOf(table.shape());
    port.batchAxis = table.batch_axis();
    // An axis without elements counts no samples.
    if (port.batchAxis >= int(port.shape.size()) ||
        (port.batchAxis >= 0 && port.shape[size_t(port.batchAxis)] <= 0))
      port.batchAxis = -1;
    port.perStep = table.per_step();
    port.index = table.index();
    port.node = runtime::text(table.node());
    port.whole = whole;
    ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<Collection> readCollections(const abi::Plan &plan, bool outputs) {
  std::vector<Collection> collections;
  for (const abi::Collection &table : runtime::each(plan.collections()))
    if (table.output() == outputs)
      collections.push_back({runtime::text(table.name()), table.kind(),
                             table.index(), table.length()});
  return collections;
}

void addUser(std::vector<Port> &ports, int io, int device) {
  if (io < 0 || io >= int(ports.size()))
    return;
  std::vector<int> &users = ports[size_t(io)].devices;
  if (users.empty() || users.back() != device)
    users.push_back(device);
}

} // namespace

std::string Collection::text() const {
  if (length < 0)
    return "an optional without a value";
  if (kind == abi::CollectionKind::optional_tensor)
    return "an optional tensor";
  return "a sequence of " + std::to_string(length) +
         (length == 1 ? " tensor" : " tensors");
}

int64_t Port::bytes() const {
  return runtime::elementCount(shape).value_or(0) *
         runtime::elementBytes(dtype);
}

bool Port::usedBy(const std::vector<int> &some) const {
  return some.empty() ||
         std::find_first_of(devices.begin(), devices.end(), some.begin(),
                            some.end()) != devices.end();
}

std::string Port::wholeText() const {
  return whole.empty() ? "" : "; samples cannot be split: " + whole;
}

std::string Port::typeText() const {
  std::string text = std::string(runtime::dtypeName(dtype)) + " [";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? ", " : "") +
            (int(d) == batchAxis ? "N" : std::to_string(shape[d]));
  return text + "]";
}

Model::Model(std::shared_ptr<const runtime::Artifact> opened)
    : artifact(std::move(opened)), plan(&artifact->plan()),
      file(std::filesystem::path(artifact->path()).filename().string()),
      mesh(*plan), devices(int(length(plan->devices()))),
      microBatches(runtime::stepMicroBatches(*plan)),
      inputs(readPorts(plan->inputs(), runtime::text(plan->mixes()))),
      outputs(readPorts(plan->outputs(), runtime::text(plan->mixes()))),
      boundInputs(readPorts(plan->bound_inputs())),
      inputCollections(readCollections(*plan, /*outputs=*/false)),
      outputCollections(readCollections(*plan, /*outputs=*/true)) {
  // Which of several sequences there are is nothing that a user feeds.
  if (plan->step_sequences() > 1)
    inputs.pop_back();
  for (int device = 0; device < devices; ++device) {
    const abi::Program &program = runtime::programOf(*plan, device);
    for (int64_t i = 0; i < length(program.actions()); ++i) {
      const abi::ProgramAction action = runtime::actionOf(program, i);
      if (action.kind == abi::ActionKind::load_input)
        addUser(inputs, action.subject, device);
      if (action.kind == abi::ActionKind::store_output && mesh.stores(device))
        addUser(outputs, action.subject, device);
    }
  }
}

std::string Model::sizesText() const {
  std::string result;
  for (int64_t i = 0; i < length(plan->dimensions()); ++i) {
    const abi::Dimension &dimension =
        *plan->dimensions()->Get(flatbuffers::uoffset_t(i));
    result += (i ? ", " : "") + std::string(runtime::text(dimension.name())) +
              " = " + std::to_string(dimension.size());
  }
  return result;
}

std::string Model::deviceName(int device) const {
  if (device < 0 || device >= devices)
    return "none";
  return runtime::text(plan->devices()->Get(unsigned(device))->name());
}

std::string Model::executorNames(int program) const {
  if (program < 0)
    return "none";
  // A row of a table has room for a few.
  constexpr int kShown = 4;
  std::string names;
  for (int i = 0; i < std::min(mesh.size(), kShown); ++i)
    names += (i ? ", " : "") + deviceName(mesh.device(program, i));
  if (mesh.size() > kShown)
    names += " +" + std::to_string(mesh.size() - kShown);
  return names;
}

std::string Model::collectiveText(const abi::Collective &collective) const {
  return std::string(abi::EnumNameCollectiveKind(collective.kind())) +
         " along " + axesText(collective);
}

std::string Model::axesText(const abi::Collective &collective) const {
  std::string result;
  for (int axis : *collective.axes())
    result +=
        (result.empty() ? "" : ", ") +
        std::string(runtime::text(plan->axes()->Get(unsigned(axis))->name()));
  return result;
}

int64_t Model::samples() const {
  for (const Port &port : inputs)
    if (port.batchAxis >= 0)
      return port.samples();
  return 1;
}

runtime::Status Model::checkSamples(int64_t samples) const {
  const int64_t each = this->samples(), step = each * microBatches;
  if (plan->full_steps() && samples % step != 0)
    return runtime::Status::inputError(
        "a step is of " + abi::countOf(microBatches, "micro-batch", "es") +
        " of " + abi::countOf(each, "sample") + ": give a multiple of " +
        std::to_string(step) + " samples, not " + std::to_string(samples));
  if (!plan->full_micro_batches() || samples % each == 0)
    return runtime::Status();
  return runtime::Status::inputError(
      "the model combines the samples of a micro-batch with each other, so a "
      "micro-batch cannot be filled up: give a multiple of " +
      std::to_string(each) + " samples, not " + std::to_string(samples));
}

int64_t Model::ioBytes() const {
  int64_t bytes = 0;
  for (const std::vector<Port> *ports : {&inputs, &outputs})
    for (const Port &port : *ports)
      bytes += port.bytes() * microBatches;
  return bytes;
}

int Model::workingDevices() const {
  int working = 0;
  for (int device = 0; device < devices; ++device) {
    const abi::Program &program = runtime::programOf(*plan, device);
    bool runs = false;
    for (int64_t i = 0; i < length(program.actions()) && !runs; ++i)
      runs = runtime::actionOf(program, i).kind == abi::ActionKind::run;
    working += runs;
  }
  return working;
}

std::vector<std::string> namesOf(const std::vector<Port> &ports) {
  std::vector<std::string> names;
  for (const Port &port : ports)
    names.push_back(port.name);
  return names;
}

} // namespace partita::feed
