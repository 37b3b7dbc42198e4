//===- Job.h - This process among those that run the plan -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan runs in one process with all devices, or under mpirun in several
// processes, each with some of them. The rest of partita-run is written once
// for both. With one process every call here returns at once.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_JOB_H
#define PARTITA_TOOLS_PARTITA_RUN_JOB_H

#include "runtime/feed/Model.h"

#include "runtime/comm/Communicator.h"
#include "runtime/io/Tensor.h"
#include "runtime/trainer/Processes.h"
#include "tools/partita-run/Options.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace partita::run {

using namespace feed;

class Job final : public runtime::train::Processes {
public:
  /// Joins the MPI job if this process was started as a part of one. `options`
  /// must outlive it.
  static runtime::Expected<std::unique_ptr<Job>> start(const Options &options);
  ~Job() override;

  int rank() const override;
  int count() const override;
  bool root() const { return rank() == 0; }
  bool distributed() const;
  /// The devices that this process runs, or none for all. Known after `check`.
  const std::vector<int> &devices() const { return mine; }

  /// Those of another process; `model` is the one that was checked.
  std::vector<int> devicesOf(int process, const Model &model) const;
  int processOf(int device) const override;

  /// Decides which process runs which devices, by `map` (--device-map) if it is
  /// not empty. Fails if that does not fit the plan and the number of
  /// processes, or unless all processes have the same artifact, map and `plan`
  /// (which of the artifact's plans is run).
  runtime::Status check(const Model &model, size_t plan,
                        const std::string &map);

  /// Cores of this process, and how many devices share them: its own, and those
  /// of other processes that have the same cores. `before` counts those of
  /// processes of lower ranks.
  struct Share {
    int cores = 1, devices = 1, before = 0;
  };
  const Share &share() const { return shared; }

  /// The GPU of each device of this process, if nobody says another; others 0.
  /// Empty with one process.
  const std::vector<int> &gpus() const { return gpuPlaces; }

  /// The communicator of all processes. Null with one process: the session then
  /// makes its own. `places`: the GPU of each device (SessionOptions). It must
  /// be connected before the first step. `number`: plans that take turns have
  /// different ones. Of those from 2 on, one is there at a time.
  runtime::Expected<std::shared_ptr<runtime::Communicator>>
  communicator(const Model &model, const std::vector<int> &places,
               size_t number = 0);
  /// Of a trainer's plan: of the first two calls for the plans that learn and
  /// evaluate, of later ones for those that look for what is not finite.
  runtime::Expected<std::shared_ptr<runtime::Communicator>>
  communicator(std::shared_ptr<const runtime::Artifact> artifact) override;

  /// Prints the error of the lowest process that has one, and returns whether
  /// no process has one. Every process must call this at the same points.
  bool allWell(const runtime::Status &status);
  /// Whether all processes have passed true. Prints nothing.
  bool allLoaded(bool ok);
  /// Prints the error and ends all processes with exit status 1.
  [[noreturn]] void fail(const runtime::Status &status);
  [[noreturn]] void abandon(const runtime::Status &status) override {
    fail(status);
  }
  /// Ends all processes, as `fail`, if it is an error; else gives the value.
  void require(const runtime::Status &status) {
    if (!status.ok())
      fail(status);
  }
  template <typename T> T require(runtime::Expected<T> made) {
    require(made.status());
    return std::move(*made);
  }

  /// Success if all processes pass success. Otherwise the error of the lowest
  /// that has one, in all of them; of another process than 0, it says which.
  /// Prints nothing.
  runtime::Status agree(const runtime::Status &mine) override;
  /// An error that names the first process that passes another text than
  /// process 0: "process 2 has other `what` than process 0".
  runtime::Status requireSame(const std::string &what, const std::string &text);
  /// Gives all processes the bytes that one of them knows, and that are 0 in
  /// the others.
  void join(std::span<uint8_t> bytes) override;
  void send(int to, std::span<const uint8_t> bytes) override;
  void receive(int from, std::span<uint8_t> bytes) override;

  /// From here on SIGINT, SIGTERM and SIGUSR1 ask the run to stop. Where a
  /// launcher ends the job, waits fail after a moment.
  void stopOnSignals();
  /// Whether one of the processes had been asked to stop at the last `join`, so
  /// all of them say the same.
  bool stopAsked() const;

  void barrier();
  void max(std::span<double> values);
  void sum(std::span<double> values);
  /// Brings each output from the process that stored it to process 0.
  void gatherOutputs(const Model &model, std::vector<runtime::Tensor> &outputs);
  /// The elements of each process, on process 0; nothing on the others. They
  /// are copied as bytes.
  template <typename T>
  std::vector<std::vector<T>> gather(std::span<const T> elements) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::vector<T>> all;
    for (const std::vector<uint8_t> &bytes :
         gatherBytes({reinterpret_cast<const uint8_t *>(elements.data()),
                      elements.size_bytes()})) {
      std::vector<T> &part = all.emplace_back(bytes.size() / sizeof(T));
      std::copy_n(bytes.begin(), part.size() * sizeof(T),
                  reinterpret_cast<uint8_t *>(part.data()));
    }
    return all;
  }

private:
  explicit Job(const Options &options);
  runtime::Status dealGpus(const Model &model);
  std::vector<std::vector<uint8_t>> gatherBytes(std::span<const uint8_t> bytes);
  const Options &options;
  size_t trained = 0; ///< plans of a trainer that have a communicator
  std::vector<int> mine;
  std::vector<int> gpuPlaces;
  Share shared;
  std::vector<uint8_t> joined; ///< the bytes of a join, and whether to stop
  bool stopping = false;       ///< with several processes: see stopAsked
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_JOB_H
