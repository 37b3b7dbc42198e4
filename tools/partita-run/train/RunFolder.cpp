//===- RunFolder.cpp - What a training keeps ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/train/RunFolder.h"

#include "runtime/base/Slots.h"
#include "runtime/io/Tensor.h"
#include "runtime/train/ContentHash.h"
#include "runtime/train/ModelExport.h"
#include "runtime/train/Safetensors.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

namespace partita::run {

using namespace runtime::train;
using runtime::Expected;
using runtime::NamedTensor;
using runtime::Status;
using runtime::Tensor;

namespace {

Role roleOf(const abi::State &state) {
  switch (state.role()) {
  case abi::StateRole::optimizer:
    return Role::optimizer;
  case abi::StateRole::statistic:
    return Role::statistic;
  case abi::StateRole::parameter:
    break;
  }
  return Role::parameter;
}

std::vector<int64_t> shapeOf(const abi::State &state) {
  return state.shape() ? std::vector<int64_t>(state.shape()->begin(),
                                              state.shape()->end())
                       : std::vector<int64_t>();
}

/// The states of a trainer, copied to the host.
Expected<std::vector<Tensor>> readStates(const Trainer &trainer) {
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    auto made =
        Tensor::allocate(trainer.state(i).dtype(), shapeOf(trainer.state(i)));
    if (!made)
      return made.status();
    if (Status status = trainer.readState(i, made->mutableData()); !status.ok())
      return status;
    tensors.push_back(std::move(*made));
  }
  return tensors;
}

Expected<ModelPart> describeFile(const std::string &path,
                                 const std::string &name) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return Status::error("cannot read '" + path + "'");
  ContentHasher hasher;
  ModelPart part{name, 0, 0};
  std::vector<char> block(1 << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())),
         in.gcount() > 0) {
    hasher.add({reinterpret_cast<const uint8_t *>(block.data()),
                static_cast<size_t>(in.gcount())});
    part.bytes += static_cast<uint64_t>(in.gcount());
  }
  part.hash = hasher.hash();
  return part;
}

} // namespace

RunFolder::RunFolder(Trainer &trainer, const std::string &folder, int keep,
                     const std::string &metric, std::string data)
    : trainer(trainer), folder(folder), data(std::move(data)),
      checkpoints(folder, {.last = keep,
                           .metric = metric,
                           .larger_is_better = metric != "eval_loss"}) {}

Identity RunFolder::identity() const {
  const std::string text = trainer.setup().text + data;
  return {trainer.plan().model_hash(),
          contentHash(
              {reinterpret_cast<const uint8_t *>(text.data()), text.size()})};
}

Expected<Progress> RunFolder::resume(uint64_t seed) {
  auto found = checkpoints.loadNewest(identity());
  if (!found)
    return found.status();
  for (const std::string &line : found->skipped)
    std::fprintf(stderr, "partita-run: remark: %s\n", line.c_str());
  if (found->progress.seed != seed)
    return Status::error("'" + found->folder + "' was made with --seed " +
                         std::to_string(found->progress.seed) +
                         ": give the same seed to go on");
  std::map<std::pair<Role, std::string>, const Tensor *> byName;
  for (const LoadedState &state : found->states)
    byName[{state.role, state.name}] = &state.tensor;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    const abi::State &state = trainer.state(i);
    const std::string name = runtime::text(state.name());
    auto saved = byName.find({roleOf(state), name});
    if (saved == byName.end() || saved->second->dtype() != state.dtype() ||
        saved->second->shape() != shapeOf(state))
      return Status::error("'" + found->folder + "' has no '" + name +
                           "' of the artifact's type and shape: it is a "
                           "checkpoint of another model");
    if (Status status = trainer.writeState(i, saved->second->data());
        !status.ok())
      return status;
  }
  trainer.setSteps(found->progress.step);
  if (Status status = setDamagedAside(found->progress.step); !status.ok())
    return status;
  return found->progress;
}

/// Later checkpoints than the newest whole one get another name.
Status RunFolder::setDamagedAside(int64_t newest) {
  auto steps = checkpoints.steps();
  if (!steps)
    return steps.status();
  for (int64_t step : *steps) {
    if (step <= newest)
      continue;
    char name[32];
    std::snprintf(name, sizeof name, "step-%08lld",
                  static_cast<long long>(step));
    std::error_code error;
    std::filesystem::rename(folder + "/" + name, folder + "/damaged-" + name,
                            error);
    if (error)
      return Status::error("cannot rename '" + folder + "/" + name +
                           "', which is damaged: " + error.message());
    std::fprintf(stderr,
                 "partita-run: remark: '%s/%s' is damaged, and is called "
                 "'damaged-%s' now\n",
                 folder.c_str(), name, name);
  }
  return Status();
}

Status RunFolder::begin() {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status::error("cannot make the folder '" + folder +
                         "': " + error.message());
  if (Status status = checkpoints.maySaveAfter(trainer.steps()); !status.ok())
    return status;
  auto lines = TrainLog::open(folder + "/log.jsonl");
  if (!lines)
    return lines.status();
  log = std::move(*lines);
  auto made = EventFile::create(folder, trainer.steps() > 0
                                            ? std::optional(trainer.steps())
                                            : std::nullopt);
  if (!made)
    return made.status();
  events = std::move(*made);
  return Status();
}

Status RunFolder::save(const Progress &progress) {
  auto tensors = readStates(trainer);
  if (!tensors)
    return tensors.status();
  std::vector<State> states;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    const abi::State &state = trainer.state(i);
    states.push_back({runtime::text(state.name()), roleOf(state), state.dtype(),
                      shapeOf(state),
                      (*tensors)[static_cast<size_t>(i)].data()});
  }
  Progress whole = progress;
  whole.identity = identity();
  return checkpoints.save(whole, states);
}

Status RunFolder::write(const TrainRecord &record) {
  if (Status status = log->write(record); !status.ok())
    return status;
  return events->write(record);
}

/// The model that was compiled.
static std::filesystem::path modelOf(const Trainer &trainer,
                                     const std::string &artifact) {
  return std::filesystem::path(artifact).parent_path() /
         runtime::text(trainer.plan().model_file());
}

Status checkExport(const Trainer &trainer, const std::string &artifact,
                   const std::string &output) {
  if (!runtime::length(trainer.plan().model_file()))
    return Status::error("--export: '" + artifact +
                         "' was not compiled from an ONNX file");
  const std::filesystem::path model = modelOf(trainer, artifact);
  std::error_code error;
  if (!std::filesystem::exists(model, error))
    return Status::error("--export: there is no '" + model.string() +
                         "', from which '" + artifact + "' was compiled");
  if (std::filesystem::equivalent(model, output, error))
    return Status::error("--export: '" + output +
                         "' is the model itself; name another file");
  const std::filesystem::path parent =
      std::filesystem::path(output).parent_path();
  for (int64_t i = 0; i < trainer.stateCount(); ++i)
    if (runtime::length(trainer.state(i).model_file()) &&
        std::filesystem::equivalent(
            model.parent_path().empty() ? "." : model.parent_path(),
            parent.empty() ? "." : parent, error))
      return Status::error("--export: '" + output +
                           "' would replace the model's external data; name a "
                           "file in another folder");
  for (int64_t i = 0; i < trainer.stateCount(); ++i)
    if (const abi::State &state = trainer.state(i);
        state.role() != abi::StateRole::optimizer && state.model_offset() < 0)
      return Status::error(
          std::string("--export: the model has '") +
          runtime::text(state.name()) +
          "' in a form that cannot be replaced byte by byte: save its "
          "initializers as raw data (onnx.save does), and compile it again");
  return Status();
}

Status exportTrained(const Trainer &trainer, const std::string &artifact,
                     const std::string &output) {
  if (Status status = checkExport(trainer, artifact, output); !status.ok())
    return status;
  const abi::Plan &plan = trainer.plan();
  const std::filesystem::path model = modelOf(trainer, artifact);
  auto tensors = readStates(trainer);
  if (!tensors)
    return tensors.status();
  std::vector<ModelPart> parts = {
      {"", static_cast<uint64_t>(plan.model_bytes()), plan.model_hash()}};
  std::vector<ModelPatch> patches;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    const abi::State &state = trainer.state(i);
    if (state.role() == abi::StateRole::optimizer)
      continue;
    const std::string file = runtime::text(state.model_file());
    const Tensor &tensor = (*tensors)[static_cast<size_t>(i)];
    patches.push_back({file,
                       static_cast<uint64_t>(state.model_offset()),
                       {tensor.data(), static_cast<size_t>(tensor.bytes())}});
    bool isKnown = false;
    for (const ModelPart &part : parts)
      isKnown |= part.file == file;
    if (isKnown)
      continue;
    auto part = describeFile((model.parent_path() / file).string(), file);
    if (!part)
      return part.status();
    parts.push_back(std::move(*part));
  }
  return exportModel(model.string(), parts, patches, output);
}

Status loadWeights(Trainer &trainer, const std::string &path) {
  auto file = readSafetensors(path);
  if (!file)
    return file.status();
  std::map<std::string, const Tensor *> byName;
  for (const NamedTensor &each : file->tensors)
    byName[each.name] = &each.tensor;
  int64_t loaded = 0;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    const abi::State &state = trainer.state(i);
    auto found = byName.find(runtime::text(state.name()));
    if (found == byName.end())
      continue;
    if (found->second->dtype() != state.dtype() ||
        found->second->shape() != shapeOf(state))
      return Status::error("'" + path + "': '" + found->first + "' is " +
                           found->second->typeText() +
                           ", and the model's is of another type or shape");
    if (Status status = trainer.writeState(i, found->second->data());
        !status.ok())
      return status;
    ++loaded;
  }
  if (loaded == 0)
    return Status::error("'" + path +
                         "' has no tensor with the name of a parameter");
  return Status();
}

} // namespace partita::run
