//===- CheckpointTest.cpp - Saves that are cut off, fail, or are changed --===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/io/Support.h"

#include "runtime/train/Checkpoint.h"

#include <cerrno>
#include <cmath>
#include <functional>
#include <sys/file.h>
#include <sys/wait.h>

using namespace partita;
using namespace partita::runtime;
using namespace partita::runtime::train;
using namespace partita::runtime::testing;
using partita::abi::DType;

namespace {

/// Does something else at call `at`, counted from 0.
class Disturbed : public DiskCalls {
public:
  explicit Disturbed(int at) : at(at) {}
  int count = 0; ///< calls so far

  int create(const char *path) override {
    return now() ? failed() : DiskCalls::create(path);
  }
  ssize_t write(int file, const void *bytes, size_t size) override {
    if (!now())
      return DiskCalls::write(file, bytes, size);
    // Some of the bytes come through.
    (void)DiskCalls::write(file, bytes, size / 2);
    return failed();
  }
  int fsync(int file) override {
    return now() ? failed() : DiskCalls::fsync(file);
  }
  int close(int file) override {
    if (!now())
      return DiskCalls::close(file);
    (void)DiskCalls::close(file);
    return failed();
  }
  int mkdir(const char *path) override {
    return now() ? failed() : DiskCalls::mkdir(path);
  }
  int rename(const char *from, const char *to) override {
    return now() ? failed() : DiskCalls::rename(from, to);
  }
  int exchange(const char *one, const char *other) override {
    return now() ? failed() : DiskCalls::exchange(one, other);
  }
  int unlink(const char *path) override {
    return now() ? failed() : DiskCalls::unlink(path);
  }
  int rmdir(const char *path) override {
    return now() ? failed() : DiskCalls::rmdir(path);
  }

protected:
  virtual int failed() = 0;

private:
  bool now() { return count++ == at; }
  int at;
};

class Failing : public Disturbed {
public:
  Failing(int at, int error) : Disturbed(at), error(error) {}

protected:
  int failed() override {
    errno = error;
    return -1;
  }

private:
  int error;
};

class Killed : public Disturbed {
public:
  using Disturbed::Disturbed;
  static constexpr int kStatus = 42;

protected:
  int failed() override { ::_exit(kStatus); }
};

/// Writes down the calls, with the last part of each path.
class Recorded : public DiskCalls {
public:
  std::vector<std::string> calls;

  int create(const char *path) override {
    const int file = DiskCalls::create(path);
    note("create", path);
    return file;
  }
  int fsync(int file) override {
    note("fsync", std::filesystem::read_symlink("/proc/self/fd/" +
                                                std::to_string(file)));
    return DiskCalls::fsync(file);
  }
  int rename(const char *from, const char *to) override {
    note("rename", to);
    return DiskCalls::rename(from, to);
  }
  int unlink(const char *path) override {
    note("unlink", path);
    return DiskCalls::unlink(path);
  }

private:
  void note(const char *call, const std::filesystem::path &path) {
    calls.push_back(std::string(call) + " " + path.filename().string());
  }
};

const Identity kIdentity{1, 2};

/// Two files, whose contents say the step.
struct Training {
  explicit Training(int64_t step) {
    weights.assign(300, float(step));
    moments.assign(300, double(step) / 2);
    count = step;
    progress.step = step;
    progress.seed = 7;
    progress.epoch = step / 10;
    progress.sample = step * 8;
    progress.identity = kIdentity;
  }
  std::vector<State> states() const {
    return {{"w", Role::parameter, DType::f32, {3, 100}, weights.data()},
            {"mean", Role::statistic, DType::f32, {2}, weights.data()},
            {"w", Role::optimizer, DType::f64, {3, 100}, moments.data()},
            {"steps", Role::counter, DType::i64, {}, &count}};
  }
  std::vector<float> weights;
  std::vector<double> moments;
  int64_t count;
  Progress progress;
};

Status save(const CheckpointFolder &checkpoints, int64_t step) {
  Training training(step);
  return CheckpointFolder(checkpoints)
      .save(training.progress, training.states());
}

void expectSaved(const Status &status) {
  EXPECT_TRUE(status.ok()) << status.message();
}

/// The checkpoint is the one that `Training(step)` saved.
void expectWhole(const Expected<Checkpoint> &checkpoint, int64_t step) {
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint->progress.step, step);
  EXPECT_EQ(checkpoint->progress.sample, step * 8);
  EXPECT_TRUE(checkpoint->skipped.empty());
  const Training training(step);
  const std::vector<State> states = training.states();
  ASSERT_EQ(checkpoint->states.size(), states.size());
  for (const State &state : states) {
    const LoadedState *found = nullptr;
    for (const LoadedState &each : checkpoint->states)
      if (each.name == state.name && each.role == state.role)
        found = &each;
    ASSERT_NE(found, nullptr) << state.name;
    EXPECT_EQ(found->tensor.shape(), state.shape);
    EXPECT_EQ(found->tensor.dtype(), state.dtype);
    EXPECT_EQ(std::memcmp(found->tensor.data(), state.bytes,
                          size_t(found->tensor.bytes())),
              0)
        << state.name;
  }
}

std::vector<int64_t> stepsIn(const Folder &folder) {
  return *CheckpointFolder(folder.path).steps();
}

/// The number of entries that are no checkpoints.
size_t leftovers(const Folder &folder) {
  return folder.entries() - stepsIn(folder).size();
}

TEST(Checkpoint, keepsAll) {
  Folder folder;
  CheckpointFolder checkpoints(folder.file("run"));
  expectSaved(save(checkpoints, 120));
  expectWhole(checkpoints.loadNewest(kIdentity), 120);
  expectWhole(loadCheckpoint(folder.file("run/step-00000120"), kIdentity), 120);
}

TEST(Checkpoint, isOnTheDiskBeforeItHasItsName) {
  Folder folder;
  expectSaved(save(CheckpointFolder(folder.path), 1));
  Recorded calls;
  expectSaved(save(CheckpointFolder(folder.path, {1, "", false}, calls), 2));
  const std::string run = folder.path.filename().string();
  EXPECT_EQ(calls.calls.size(), 14u);
  calls.calls.resize(11);
  EXPECT_EQ(
      calls.calls,
      (std::vector<std::string>{
          "create model.safetensors", "fsync model.safetensors",
          "create optimizer.safetensors", "fsync optimizer.safetensors",
          "create trainer.json", "fsync trainer.json",
          "fsync .partial-step-00000002", "rename step-00000002",
          "fsync " + run, "rename .removed-step-00000001", "fsync " + run}));
}

TEST(Checkpoint, saysWhereThereIsNone) {
  Folder folder;
  expectError(CheckpointFolder(folder.file("run")).loadNewest(kIdentity),
              "there is no checkpoint");
}

TEST(Checkpoint, keepsTheLastAndTheBest) {
  Folder folder;
  CheckpointFolder checkpoints(folder.path, {2, "loss", false});
  const double losses[] = {5, 1, NAN, 3, 4, 2};
  for (int64_t step = 0; step < 6; ++step) {
    Training training(step);
    training.progress.metrics["loss"] = losses[step];
    expectSaved(checkpoints.save(training.progress, training.states()));
  }
  EXPECT_EQ(stepsIn(folder), (std::vector<int64_t>{1, 4, 5}));
  EXPECT_EQ(leftovers(folder), 0u);
}

TEST(Checkpoint, keepsTheLargestMetric) {
  Folder folder;
  CheckpointFolder checkpoints(folder.path, {1, "accuracy", true});
  for (int64_t step = 0; step < 4; ++step) {
    Training training(step);
    training.progress.metrics["accuracy"] = step == 1 ? 0.9 : 0.5;
    expectSaved(checkpoints.save(training.progress, training.states()));
  }
  EXPECT_EQ(stepsIn(folder), (std::vector<int64_t>{1, 3}));
}

TEST(Checkpoint, ordersStepsByNumber) {
  Folder folder;
  CheckpointFolder checkpoints(folder.path);
  expectSaved(save(checkpoints, 99999999));
  expectSaved(save(checkpoints, 100000000));
  expectWhole(checkpoints.loadNewest(kIdentity), 100000000);
}

TEST(Checkpoint, replacesOneOfTheSameStep) {
  Folder folder;
  CheckpointFolder checkpoints(folder.path);
  Training first(7);
  first.weights[0] = 1;
  expectSaved(checkpoints.save(first.progress, first.states()));
  expectSaved(save(checkpoints, 7));
  expectWhole(checkpoints.loadNewest(kIdentity), 7);
  EXPECT_EQ(leftovers(folder), 0u);
}

TEST(Checkpoint, refusesASecondHistory) {
  Folder folder;
  CheckpointFolder checkpoints(folder.path);
  expectSaved(save(checkpoints, 20));
  EXPECT_TRUE(checkpoints.maySaveAfter(20).ok());
  expectError(checkpoints.maySaveAfter(10), "checkpoints after step 10");
  expectError(save(checkpoints, 15), "train in another folder");
  EXPECT_EQ(stepsIn(folder), (std::vector<int64_t>{20}));
}

TEST(Checkpoint, refusesAFolderThatAnotherOneSavesIn) {
  Folder folder;
  const int other = ::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  CheckpointFolder checkpoints(folder.path);
  expectError(save(checkpoints, 1), "another process saves");
  ::close(other);
  expectSaved(save(checkpoints, 1));
}

TEST(Checkpoint, saysWhatDiffers) {
  Folder folder;
  CheckpointFolder checkpoints(folder.path);
  expectSaved(save(checkpoints, 1));
  expectError(checkpoints.loadNewest({9, 2}), "another model");
  expectError(checkpoints.loadNewest({1, 9}), "another set-up");
  expectError(checkpoints.loadNewest({8, 9}), "and another set-up");
  Identity identity{1, 9, "{\"rate\":2}"};
  expectError(checkpoints.loadNewest(identity),
              "another set-up (0000000000000002 there");
}

TEST(Checkpoint, namesFilesThatChanged) {
  const std::pair<const char *, std::function<std::string(std::string)>>
      changes[] = {
          {"has changed since",
           [](std::string bytes) {
             bytes.back() ^= 1;
             return bytes;
           }},
          {"bytes, and had",
           [](std::string bytes) { return bytes.substr(0, bytes.size() / 2); }},
          {"bytes, and had", [](std::string) { return std::string(); }}};
  for (const char *file : {"model.safetensors", "optimizer.safetensors"})
    for (const auto &[message, change] : changes) {
      Folder folder;
      CheckpointFolder checkpoints(folder.path);
      expectSaved(save(checkpoints, 1));
      expectSaved(save(checkpoints, 2));
      const std::string name = std::string("step-00000002/") + file;
      folder.write(name, change(fileBytes(folder.file(name))));
      Expected<Checkpoint> given =
          loadCheckpoint(folder.file("step-00000002"), kIdentity);
      expectError(given, message);
      expectError(given, name);
      Expected<Checkpoint> newest = checkpoints.loadNewest(kIdentity);
      ASSERT_TRUE(newest.ok()) << newest.status().message();
      EXPECT_EQ(newest->progress.step, 1);
      ASSERT_EQ(newest->skipped.size(), 1u);
      EXPECT_NE(newest->skipped[0].find(name), std::string::npos);
    }
}

TEST(Checkpoint, namesFilesThatAreMissing) {
  for (const char *file :
       {"model.safetensors", "optimizer.safetensors", "trainer.json"}) {
    Folder folder;
    CheckpointFolder checkpoints(folder.path);
    expectSaved(save(checkpoints, 1));
    std::filesystem::remove(folder.path / "step-00000001" / file);
    expectError(checkpoints.loadNewest(kIdentity), file);
    expectError(checkpoints.loadNewest(kIdentity), "is whole");
  }
}

/// A folder in which the next save of `next` goes through all that a save can
/// do: it removes a leftover, and checkpoints that are too old. `same`: it
/// replaces one of the same step instead.
struct Prepared {
  explicit Prepared(bool same) : next(same ? 3 : 4) {
    CheckpointFolder all(folder.path, {3, "", false});
    for (int64_t step = 1; step <= 3; ++step)
      expectSaved(save(all, step));
    std::filesystem::create_directory(folder.path / ".partial-step-00000009");
    folder.write(".partial-step-00000009/model.safetensors", "half");
  }
  Status saveNext(DiskCalls &calls) const {
    return save(CheckpointFolder(folder.path, kept, calls), next);
  }
  std::filesystem::path partial() const {
    return folder.path / (".partial-step-0000000" + std::to_string(next));
  }
  /// All that was there and is still to be kept, and what has a name, is whole.
  void expectAllWhole() const {
    CheckpointFolder checkpoints(folder.path);
    for (int64_t step : stepsIn(folder)) {
      char name[40];
      std::snprintf(name, sizeof name, "step-%08d", int(step));
      expectWhole(loadCheckpoint(folder.file(name), kIdentity), step);
    }
    const int64_t newest = stepsIn(folder).back();
    EXPECT_TRUE(newest == 3 || newest == next) << newest;
    expectWhole(checkpoints.loadNewest(kIdentity), newest);
    // Until the new one is there none of the old ones goes.
    if (newest == 3 && next != 3) {
      EXPECT_EQ(stepsIn(folder), (std::vector<int64_t>{1, 2, 3}));
    }
  }
  void expectNextSaveWorks() const {
    DiskCalls calls;
    expectSaved(saveNext(calls));
    EXPECT_EQ(leftovers(folder), 0u);
    expectWhole(CheckpointFolder(folder.path).loadNewest(kIdentity), next);
    EXPECT_EQ(stepsIn(folder), (std::vector<int64_t>{next - 1, next}));
  }

  Folder folder;
  int64_t next;
  Retention kept{2, "", false};
};

/// How many calls a save makes that nothing disturbs.
int callsOfSave(bool same) {
  Prepared prepared(same);
  Failing calls(-1, 0);
  expectSaved(prepared.saveNext(calls));
  return calls.count;
}

class CheckpointFaults : public ::testing::TestWithParam<bool> {};

TEST_P(CheckpointFaults, survivesKillsAtEveryCall) {
  const int count = callsOfSave(GetParam());
  EXPECT_GT(count, 30);
  for (int at = 0; at < count; ++at) {
    SCOPED_TRACE("killed at call " + std::to_string(at));
    Prepared prepared(GetParam());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Killed calls(at);
      (void)prepared.saveNext(calls);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), Killed::kStatus);
    prepared.expectAllWhole();
    prepared.expectNextSaveWorks();
  }
}

TEST_P(CheckpointFaults, reportsErrorsAtEveryCall) {
  const int count = callsOfSave(GetParam());
  for (int error : {ENOSPC, EIO})
    for (int at = 0; at < count; ++at) {
      SCOPED_TRACE(std::string(std::strerror(error)) + " at call " +
                   std::to_string(at));
      Prepared prepared(GetParam());
      Failing calls(at, error);
      Status status = prepared.saveNext(calls);
      EXPECT_FALSE(status.ok());
      EXPECT_NE(status.message().find(std::strerror(error)), std::string::npos)
          << status.message();
      // What is left over is only what was to be removed.
      if (status.message().find("is saved") == std::string::npos) {
        EXPECT_FALSE(std::filesystem::exists(prepared.partial()));
      }
      prepared.expectAllWhole();
      prepared.expectNextSaveWorks();
    }
}

INSTANTIATE_TEST_SUITE_P(, CheckpointFaults, ::testing::Bool(),
                         [](const auto &same) {
                           return same.param ? "sameStep" : "nextStep";
                         });

} // namespace
