//===- CheckpointFiles.cpp - The files of one checkpoint ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CheckpointFiles.h"

#include "runtime/base/MappedFile.h"
#include "runtime/train/ContentHash.h"
#include "runtime/train/Safetensors.h"

#include <array>

namespace partita::runtime::train {

namespace {

constexpr const char *kModel = "model.safetensors";
constexpr const char *kOptimizer = "optimizer.safetensors";
constexpr const char *kTrainer = "trainer.json";

struct RoleRow {
  Role role;
  const char *name; ///< in the file's metadata
  const char *file;
};
/// By Role.
constexpr std::array<RoleRow, 4> kRoles = {
    {{Role::parameter, "parameter", kModel},
     {Role::statistic, "statistic", kModel},
     {Role::optimizer, "optimizer", kOptimizer},
     {Role::counter, "counter", kOptimizer}}};

constexpr const char *kOther = ": go on from another checkpoint, or start anew";

Expected<StoredFile> writeStates(DiskCalls &calls, const std::string &path,
                                 const char *file,
                                 const std::vector<State> &states) {
  std::vector<TensorBytes> tensors;
  std::map<std::string, std::string> roles;
  for (const State &state : states) {
    const RoleRow &row = kRoles[size_t(state.role)];
    if (row.file != file)
      continue;
    std::optional<int64_t> count = elementCount(state.shape);
    if (!count)
      return Status::error("state '" + state.name + "' of shape " +
                           shapeText(state.shape) + " is too large to save");
    const auto size = size_t(*count * elementBytes(state.dtype));
    const Content::Bytes there(static_cast<const uint8_t *>(state.bytes),
                               state.fetch ? 0 : size);
    tensors.push_back(
        {state.name, state.dtype, state.shape,
         state.fetch ? Content(size, state.fetch) : Content(there)});
    roles[state.name] = row.name;
  }
  DiskFile written(calls, path);
  StoredFile stored;
  ContentHasher hasher;
  PARTITA_TRY(written.create());
  PARTITA_TRY(writeSafetensors(
      tensors, roles,
      [&](std::span<const uint8_t> bytes) {
        stored.bytes += bytes.size();
        hasher.add(bytes);
        return written.write(bytes);
      },
      "'" + path + "'"));
  PARTITA_TRY(written.close());
  stored.hash = hasher.hash();
  return stored;
}

Status readStates(const std::string &folder, const char *file,
                  const TrainerFile &trainer,
                  std::vector<LoadedState> &states) {
  const std::string path = folder + "/" + file;
  auto stored = trainer.files.find(file);
  if (stored == trainer.files.end())
    return Status::error("'" + folder + "/" + kTrainer + "' does not know '" +
                         file + "'" + kOther);
  Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped)
    return Status::error(mapped.status().message() + kOther);
  const std::span<const uint8_t> bytes = (*mapped)->span();
  if (bytes.size() != stored->second.bytes)
    return Status::error("'" + path + "' has " + std::to_string(bytes.size()) +
                         " bytes, and had " +
                         std::to_string(stored->second.bytes) +
                         " when it was saved" + kOther);
  if (contentHash(bytes) != stored->second.hash)
    return Status::error("'" + path + "' has changed since it was saved" +
                         kOther);
  Safetensors tensors =
      PARTITA_TRY(parseSafetensors(bytes, *mapped, "'" + path + "'"));
  for (NamedTensor &item : tensors.tensors) {
    auto name = tensors.metadata.find(item.name);
    const RoleRow *found = nullptr;
    for (const RoleRow &row : kRoles)
      if (row.file == file && name != tensors.metadata.end() &&
          name->second == row.name)
        found = &row;
    if (!found)
      return Status::error("'" + path + "' does not say what state '" +
                           item.name + "' is" + kOther);
    states.push_back(
        {std::move(item.name), found->role, std::move(item.tensor)});
  }
  return Status();
}

} // namespace

Status writeCheckpointFiles(DiskCalls &calls, const std::string &folder,
                            const Progress &progress,
                            const std::vector<State> &states) {
  TrainerFile trainer;
  trainer.progress = progress;
  for (const char *file : {kModel, kOptimizer})
    trainer.files[file] =
        PARTITA_TRY(writeStates(calls, folder + "/" + file, file, states));
  const std::string text =
      PARTITA_TRY(within("cannot save a checkpoint: ", trainer.json()));
  DiskFile written(calls, folder + "/" + kTrainer);
  PARTITA_TRY(written.create());
  PARTITA_TRY(written.write(
      {reinterpret_cast<const uint8_t *>(text.data()), text.size()}));
  return written.close();
}

Expected<TrainerFile> readTrainerFile(const std::string &folder) {
  const std::string path = folder + "/" + kTrainer;
  Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return Status::error(file.status().message() + kOther);
  return within("'" + path + "' ", TrainerFile::parse((*file)->text()));
}

Expected<Checkpoint> readCheckpointFiles(const std::string &folder) {
  TrainerFile trainer = PARTITA_TRY(readTrainerFile(folder));
  Checkpoint checkpoint;
  checkpoint.folder = folder;
  checkpoint.progress = trainer.progress;
  for (const char *file : {kModel, kOptimizer})
    PARTITA_TRY(readStates(folder, file, trainer, checkpoint.states));
  return checkpoint;
}

Status compareIdentity(const Checkpoint &checkpoint, const Identity &expected) {
  const Identity &found = checkpoint.progress.identity;
  auto pair = [](const char *what, uint64_t is, uint64_t should) {
    return std::string(what) + " (" + hashText(is) + " there, " +
           hashText(should) + " here)";
  };
  const bool model = found.model != expected.model,
             setup = !expected.any_setup && found.setup != expected.setup;
  if (!model && !setup)
    return Status();
  std::string text = "'" + checkpoint.folder + "' is a checkpoint of another ";
  if (model)
    text += pair("model", found.model, expected.model);
  if (setup) {
    const std::string known = describeDifference(found, expected);
    text += std::string(model ? " and another " : "") +
            (known.empty() ? pair("set-up", found.setup, expected.setup)
                           : "set-up (" + known + ")");
  }
  return Status::error(text + ": train as it was trained, " +
                       (model ? "" : "allow changes (--allow-changes), ") +
                       "or start in another folder");
}

Expected<Checkpoint> loadCheckpoint(const std::string &folder,
                                    const Identity &identity) {
  Checkpoint checkpoint = PARTITA_TRY(readCheckpointFiles(folder));
  PARTITA_TRY(compareIdentity(checkpoint, identity));
  return checkpoint;
}

} // namespace partita::runtime::train
