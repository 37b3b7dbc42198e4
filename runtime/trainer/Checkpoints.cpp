//===- Checkpoints.cpp - Where a trainer goes on --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Checkpoints.h"

#include "runtime/train/ContentHash.h"
#include "runtime/trainer/States.h"

#include <filesystem>
#include <map>
#include <system_error>

namespace partita::runtime::train {
namespace {

/// Of a remark, not to fill the screen.
constexpr size_t kMostChanges = 20;

Role roleOf(const abi::State &state) {
  switch (state.role()) {
  case abi::StateRole::optimizer:
    return Role::optimizer;
  case abi::StateRole::statistic:
    return Role::statistic;
  case abi::StateRole::carried: // of a model that is not trained
  case abi::StateRole::parameter:
    break;
  }
  return Role::parameter;
}

/// All states of the trainer, as the checkpoint has them. What it learned and
/// the trainer does not learn would be lost without a word.
Expected<std::vector<StateChange>> changesTo(const Checkpoint &checkpoint,
                                             const Trainer &trainer) {
  const std::string instead = "; --load " + checkpoint.folder +
                              "/model.safetensors begins anew with its "
                              "parameters";
  std::map<std::pair<Role, std::string>, const Tensor *> byName;
  for (const LoadedState &state : checkpoint.states)
    byName[{state.role, state.name}] = &state.tensor;
  std::vector<StateChange> changes;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    const abi::State &state = trainer.state(i);
    const auto saved = byName.find({roleOf(state), nameOf(state)});
    if (saved == byName.end() || !fits(state, *saved->second))
      return Status::error("'" + checkpoint.folder + "' has no '" +
                           nameOf(state) +
                           "' of the artifact's type and shape: it is a "
                           "checkpoint of " +
                           (state.role() == abi::StateRole::optimizer
                                ? "another optimizer"
                                : "another model, or froze it") +
                           instead);
    changes.push_back({i, saved->second});
    byName.erase(saved);
  }
  for (const auto &[key, tensor] : byName)
    if (key.first != Role::optimizer)
      return Status::error("'" + checkpoint.folder + "' has trained '" +
                           key.second + "', which the artifact does not train" +
                           instead);
  return changes;
}

} // namespace

Checkpoints::Checkpoints(Trainer &trainer, const std::string &folder,
                         Retention retention, std::string data,
                         bool allow_changes)
    : trainer(trainer), folder(folder), data(std::move(data)),
      allow_changes(allow_changes), checkpoints(folder, std::move(retention)) {}

Identity Checkpoints::identity() const {
  const std::string text = trainer.setup().text + data;
  return {trainer.plan().model_hash(),
          contentHash(
              {reinterpret_cast<const uint8_t *>(text.data()), text.size()}),
          text, allow_changes};
}

/// What the checkpoint changes, if the trainer may go on from it.
Expected<std::vector<StateChange>>
Checkpoints::accept(const Expected<Checkpoint> &checkpoint,
                    uint64_t seed) const {
  if (!checkpoint)
    return checkpoint.status();
  if (checkpoint->progress.seed != seed && !allow_changes)
    return Status::error("'" + checkpoint->folder +
                         "' was made with the seed " +
                         std::to_string(checkpoint->progress.seed) +
                         ": give the same seed to go on, or allow changes "
                         "(--allow-changes)");
  return changesTo(*checkpoint, trainer);
}

/// `newest`: it is that of the folder, and what stands after it is damaged.
Expected<Resumed> Checkpoints::goOn(const Expected<Checkpoint> &found,
                                    uint64_t seed, bool newest) {
  Processes *all = trainer.processes();
  auto changes = accept(found, seed);
  // Nothing is renamed while other processes still look for it.
  PARTITA_TRY(agree(all, changes.status()));
  Resumed resumed{found->progress, found->skipped};
  if (newest)
    PARTITA_TRY(agree(all, isFirst(all) ? setDamagedAside(found->progress.step,
                                                          resumed.remarks)
                                        : Status()));
  PARTITA_TRY(agree(all, writeStates(trainer, *changes)));
  trainer.goOnAfter(found->progress.step);
  describeChanges(resumed.progress, seed, resumed.remarks);
  return resumed;
}

Expected<Resumed> Checkpoints::resume(uint64_t seed) {
  return goOn(checkpoints.loadNewest(identity()), seed, /*newest=*/true);
}

Expected<Resumed> Checkpoints::load(uint64_t seed) {
  return goOn(loadCheckpoint(folder, identity()), seed, /*newest=*/false);
}

void Checkpoints::describeChanges(const Progress &found, uint64_t seed,
                                  std::vector<std::string> &remarks) const {
  std::string differs;
  if (const Identity here = identity(); !(found.identity == here)) {
    differs = describeDifference(found.identity, here, kMostChanges);
    if (differs.empty())
      differs = "the set-up differs";
  }
  if (found.seed != seed)
    differs += (differs.empty() ? "" : ", ") + std::string("the seed is ") +
               std::to_string(found.seed) + " there and " +
               std::to_string(seed) + " here";
  if (!differs.empty())
    remarks.push_back("goes on with changes: " + differs);
}

/// Later checkpoints than the newest whole one get another name.
Status Checkpoints::setDamagedAside(int64_t newest,
                                    std::vector<std::string> &remarks) {
  auto steps = PARTITA_TRY(checkpoints.steps());
  for (int64_t step : steps) {
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
    remarks.push_back("'" + folder + "/" + name +
                      "' is damaged, and is called 'damaged-" + name + "' now");
  }
  return Status();
}

Status Checkpoints::maySave() const {
  return checkpoints.maySaveAfter(trainer.steps());
}

Status Checkpoints::save(const Progress &progress) {
  Progress whole = progress;
  whole.identity = identity();
  return readStates(trainer, [&](StateReader &reader) {
    std::vector<State> states;
    for (int64_t i = 0; i < trainer.stateCount(); ++i) {
      const abi::State &state = trainer.state(i);
      states.push_back({nameOf(state), roleOf(state), state.dtype(),
                        shapeOf(state.shape()), nullptr,
                        [&reader, i] { return reader.read(i); }});
    }
    return checkpoints.save(whole, states);
  });
}

} // namespace partita::runtime::train
