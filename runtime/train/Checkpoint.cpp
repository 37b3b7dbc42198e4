//===- Checkpoint.cpp - States of a training on the disk ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Checkpoint.h"

#include "runtime/train/CheckpointFiles.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/file.h>
#include <unistd.h>

namespace partita::runtime::train {

namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kPartial = ".partial-";
constexpr std::string_view kRemoved = ".removed-";

std::string nameOf(int64_t step) {
  char text[40];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

std::optional<int64_t> stepOf(std::string_view name) {
  int64_t step = 0;
  if (!name.starts_with(kStep))
    return std::nullopt;
  const std::string_view digits = name.substr(kStep.size());
  const char *end = digits.data() + digits.size();
  // Only what `nameOf` writes: "step-12" beside "step-00000012" is not ours.
  if (std::from_chars(digits.data(), end, step).ptr != end || step < 0 ||
      nameOf(step) != name)
    return std::nullopt;
  return step;
}

/// Holds off other processes that save in the same folder. A process that ends
/// lets go.
class FolderLock {
public:
  ~FolderLock() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  Status take(const std::string &folder) {
    descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
      return diskError("open", folder);
    // A file system without locks must do without.
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return Status::error("another process saves checkpoints in '" + folder +
                           "': give each training a folder of its own");
    return Status();
  }

private:
  int descriptor = -1;
};

} // namespace

CheckpointFolder::CheckpointFolder(std::string folder, Retention retention,
                                   DiskCalls &calls)
    : folder(std::move(folder)), retention(std::move(retention)), calls(calls) {
}

std::string CheckpointFolder::path(const std::string &name) const {
  return folder + "/" + name;
}

Expected<std::vector<int64_t>> CheckpointFolder::steps() const {
  std::vector<std::string> names = PARTITA_TRY(namesIn(folder));
  std::vector<int64_t> steps;
  for (const std::string &name : names)
    if (std::optional<int64_t> step = stepOf(name))
      steps.push_back(*step);
  // Not in the order of names, once there are more than eight digits.
  std::sort(steps.begin(), steps.end());
  return steps;
}

Status CheckpointFolder::maySaveAfter(int64_t step) const {
  std::vector<int64_t> steps = PARTITA_TRY(this->steps());
  if (!steps.empty() && steps.back() > step)
    return Status::error("'" + folder + "' has checkpoints after step " +
                         std::to_string(step) + " (up to " +
                         nameOf(steps.back()) +
                         "): train in another folder, or remove them");
  return Status();
}

Status CheckpointFolder::save(const Progress &progress,
                              const std::vector<State> &states) {
  if (progress.step < 0 || retention.last < 1)
    return Status::error("cannot save a checkpoint: its step cannot be "
                         "negative, and at least one is kept");
  if (calls.mkdir(folder.c_str()) == 0) {
    const std::filesystem::path above =
        std::filesystem::path(folder + "/").parent_path().parent_path();
    PARTITA_TRY(syncFolder(calls, above.empty() ? "." : above.string()));
  } else if (errno != EEXIST) {
    return diskError("create", folder);
  }
  FolderLock lock;
  PARTITA_TRY(lock.take(folder));
  PARTITA_TRY(maySaveAfter(progress.step));
  PARTITA_TRY(removeLeftovers());

  const std::string name = nameOf(progress.step);
  const std::string partial = path(std::string(kPartial) + name);
  Status status = write(partial, progress, states);
  if (status.ok())
    status = publish(partial, path(name));
  if (!status.ok()) {
    (void)removeFolder(calls, partial);
    return status;
  }
  // `partial` may be an older one of the same step now: nothing is removed
  // before the new names are on the disk.
  status = syncFolder(calls, folder);
  if (status.ok())
    status = removeLeftovers();
  if (status.ok())
    status = removeOld(progress.step);
  return within("'" + path(name) + "' is saved, but ", status);
}

Status CheckpointFolder::write(const std::string &partial,
                               const Progress &progress,
                               const std::vector<State> &states) const {
  if (calls.mkdir(partial.c_str()) != 0)
    return diskError("create", partial);
  PARTITA_TRY(writeCheckpointFiles(calls, partial, progress, states));
  return syncFolder(calls, partial);
}

Status CheckpointFolder::publish(const std::string &partial,
                                 const std::string &name) const {
  int moved = calls.rename(partial.c_str(), name.c_str());
  if (moved != 0 && (errno == EEXIST || errno == ENOTEMPTY)) {
    moved = calls.exchange(partial.c_str(), name.c_str());
    if (moved != 0 && errno == EINVAL)
      return Status::error("cannot replace '" + name +
                           "': its file system cannot exchange folders; "
                           "remove it first");
  }
  return moved != 0 ? diskError("create", name) : Status();
}

Status CheckpointFolder::removeLeftovers() const {
  std::vector<std::string> names = PARTITA_TRY(namesIn(folder));
  for (const std::string &name : names)
    if (name.starts_with(kPartial) || name.starts_with(kRemoved))
      PARTITA_TRY(removeFolder(calls, path(name)));
  return Status();
}

Status CheckpointFolder::removeOld(int64_t newest) const {
  std::vector<int64_t> steps = PARTITA_TRY(this->steps());
  int64_t best = newest;
  std::optional<double> best_value;
  // Of equals the earlier: it stays where it is.
  for (int64_t step : steps) {
    if (retention.metric.empty())
      break;
    Expected<TrainerFile> trainer = readTrainerFile(path(nameOf(step)));
    if (!trainer)
      continue;
    const std::map<std::string, double> &metrics = trainer->progress.metrics;
    auto value = metrics.find(retention.metric);
    if (value == metrics.end() || std::isnan(value->second))
      continue;
    if (!best_value ||
        (retention.larger_is_better ? value->second > *best_value
                                    : value->second < *best_value)) {
      best = step;
      best_value = value->second;
    }
  }
  const size_t last = std::min(size_t(retention.last), steps.size());
  for (size_t i = 0; i + last < steps.size(); ++i)
    if (steps[i] != best)
      PARTITA_TRY(remove(nameOf(steps[i])));
  return Status();
}

Status CheckpointFolder::remove(const std::string &name) const {
  const std::string removed = path(std::string(kRemoved) + name);
  if (calls.rename(path(name).c_str(), removed.c_str()) != 0)
    return diskError("remove", path(name));
  // The new name first: on the disk, too, no half of it has the old one.
  PARTITA_TRY(syncFolder(calls, folder));
  return removeFolder(calls, removed);
}

Expected<Checkpoint>
CheckpointFolder::loadNewest(const Identity &identity) const {
  std::vector<int64_t> steps = PARTITA_TRY(this->steps());
  std::vector<std::string> skipped;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    Expected<Checkpoint> checkpoint = readCheckpointFiles(path(nameOf(*step)));
    if (!checkpoint) {
      skipped.push_back(checkpoint.status().message());
      continue;
    }
    PARTITA_TRY(compareIdentity(*checkpoint, identity));
    checkpoint->skipped = std::move(skipped);
    return checkpoint;
  }
  if (skipped.empty())
    return Status::error("there is no checkpoint in '" + folder +
                         "': start anew, or name the folder of a run");
  return Status::error("no checkpoint in '" + folder +
                       "' is whole. The newest: " + skipped.front());
}

} // namespace partita::runtime::train
