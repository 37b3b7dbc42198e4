//===- JobProcesses.h - A job that trains -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_TRAIN_JOBPROCESSES_H
#define PARTITA_TOOLS_PARTITA_RUN_TRAIN_JOBPROCESSES_H

#include "runtime/trainer/Processes.h"
#include "tools/partita-run/Job.h"
#include "tools/partita-run/Options.h"

namespace partita::run {

/// What a trainer needs of the processes of a job.
class JobProcesses final : public runtime::train::Processes {
public:
  /// Both must outlive the object.
  JobProcesses(Job &job, const Options &options) : job(job), options(options) {}

  int rank() const override { return job.rank(); }
  int count() const override { return job.size(); }
  int processOf(int device) const override { return job.processOf(device); }
  /// To be called for at most two plans, which take turns.
  runtime::Expected<std::shared_ptr<runtime::Communicator>>
  communicator(std::shared_ptr<const runtime::Artifact> artifact) override;
  runtime::Status agree(const runtime::Status &mine) override {
    return job.agree(mine);
  }
  void join(std::span<uint8_t> bytes) override { job.join(bytes); }
  void send(int to, std::span<const uint8_t> bytes) override {
    job.send(to, bytes);
  }
  void receive(int from, std::span<uint8_t> bytes) override {
    job.receive(from, bytes);
  }
  [[noreturn]] void abandon(const runtime::Status &status) override {
    job.fail(status);
  }

private:
  Job &job;
  const Options &options;
  size_t communicators = 0;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TRAIN_JOBPROCESSES_H
