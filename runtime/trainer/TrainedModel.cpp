//===- TrainedModel.cpp - Weights into a trainer, and out of it -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/TrainedModel.h"

#include "runtime/abi/Text.h"
#include "runtime/base/Slots.h"
#include "runtime/train/ModelExport.h"
#include "runtime/train/Safetensors.h"
#include "runtime/trainer/States.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

namespace partita::runtime::train {
namespace {

/// The model that was compiled.
std::filesystem::path modelOf(const Trainer &trainer,
                              const std::string &artifact) {
  return std::filesystem::path(artifact).parent_path() /
         text(trainer.plan().model_file());
}

} // namespace

Status checkExport(const Trainer &trainer, const std::string &artifact,
                   const std::string &output) {
  if (!length(trainer.plan().model_file()))
    return Status::error("'" + artifact +
                         "' was not compiled from an ONNX file");
  const std::filesystem::path model = modelOf(trainer, artifact);
  std::error_code error;
  if (!std::filesystem::exists(model, error))
    return Status::error("there is no '" + model.string() + "', from which '" +
                         artifact + "' was compiled");
  if (std::filesystem::equivalent(model, output, error))
    return Status::error("'" + output +
                         "' is the model itself; name another file");
  const std::filesystem::path parent =
      std::filesystem::path(output).parent_path();
  for (int64_t i = 0; i < trainer.stateCount(); ++i)
    if (length(trainer.state(i).model_file()) &&
        std::filesystem::equivalent(
            model.parent_path().empty() ? "." : model.parent_path(),
            parent.empty() ? "." : parent, error))
      return Status::error("'" + output +
                           "' would replace the model's external data; name a "
                           "file in another folder");
  for (int64_t i = 0; i < trainer.stateCount(); ++i)
    if (const abi::State &state = trainer.state(i);
        state.role() != abi::StateRole::optimizer && state.model_offset() < 0)
      return Status::error(
          "the model has '" + nameOf(state) +
          "' in a form that cannot be replaced byte by byte: save its "
          "initializers as raw data (onnx.save does), and compile it again");
  return Status();
}

namespace {

/// What becomes of the model's files, with the parameters that `reader` reads.
Status writeTrained(const Trainer &trainer, StateReader &reader,
                    const std::string &artifact, const std::string &output) {
  PARTITA_TRY(checkExport(trainer, artifact, output));
  const abi::Plan &plan = trainer.plan();
  const std::filesystem::path model = modelOf(trainer, artifact);
  std::vector<ModelPart> parts = {
      {"", static_cast<uint64_t>(plan.model_bytes()), plan.model_hash()}};
  std::vector<ModelPatch> patches;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    const abi::State &state = trainer.state(i);
    if (state.role() == abi::StateRole::optimizer)
      continue;
    const std::string file = text(state.model_file());
    patches.push_back(
        {file, static_cast<uint64_t>(state.model_offset()),
         Content(bytesOf(state), [&reader, i] { return reader.read(i); })});
    if (std::none_of(parts.begin(), parts.end(),
                     [&](const ModelPart &part) { return part.file == file; }))
      parts.push_back({file, 0, std::nullopt});
  }
  return exportModel(model.string(), parts, patches, output);
}

} // namespace

Status exportTrained(const Trainer &trainer, const std::string &artifact,
                     const std::string &output) {
  return readStates(trainer, [&](StateReader &reader) {
    return writeTrained(trainer, reader, artifact, output);
  });
}

Expected<std::string> loadWeights(Trainer &trainer, const std::string &path) {
  auto file = PARTITA_TRY(readSafetensors(path));
  std::map<std::string, const Tensor *> byName;
  for (const NamedTensor &each : file.tensors)
    byName[each.name] = &each.tensor;
  std::vector<StateChange> changes;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    const auto found = byName.find(nameOf(trainer.state(i)));
    if (found == byName.end() ||
        trainer.state(i).role() == abi::StateRole::optimizer)
      continue;
    if (!fits(trainer.state(i), *found->second))
      return Status::error("'" + path + "': '" + found->first + "' is " +
                           found->second->typeText() +
                           ", and the model's is of another type or shape");
    changes.push_back({i, found->second});
    byName.erase(found);
  }
  if (changes.empty())
    return Status::error("'" + path +
                         "' has no tensor with the name of a parameter");
  PARTITA_TRY(writeStates(trainer, changes));
  std::vector<std::string> unused;
  for (const auto &[name, tensor] : byName)
    unused.push_back(name);
  return unused.empty()
             ? std::string()
             : "'" + path + "' has " +
                   abi::countOf(static_cast<int64_t>(unused.size()), "tensor") +
                   " that the artifact does not train, and which are not "
                   "loaded: " +
                   abi::namesText(unused);
}

} // namespace partita::runtime::train
