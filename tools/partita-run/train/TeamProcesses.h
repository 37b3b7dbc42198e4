//===- TeamProcesses.h - A team that trains ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_TRAIN_TEAMPROCESSES_H
#define PARTITA_TOOLS_PARTITA_RUN_TRAIN_TEAMPROCESSES_H

#include "runtime/trainer/Processes.h"
#include "tools/partita-run/Options.h"
#include "tools/partita-run/Team.h"

namespace partita::run {

/// What a trainer needs of the processes of a team.
class TeamProcesses final : public runtime::train::Processes {
public:
  /// Both must outlive the object.
  TeamProcesses(Team &team, const Options &options)
      : team(team), options(options) {}

  int rank() const override { return team.rank(); }
  int count() const override { return team.size(); }
  int processOf(int device) const override { return team.processOf(device); }
  /// To be called for at most two plans, which take turns.
  runtime::Expected<std::shared_ptr<runtime::Communicator>>
  communicator(std::shared_ptr<const runtime::Artifact> artifact) override;
  runtime::Status agree(const runtime::Status &mine) override {
    return team.agree(mine);
  }
  void join(std::span<uint8_t> bytes) override { team.join(bytes); }
  void send(int to, std::span<const uint8_t> bytes) override {
    team.send(to, bytes);
  }
  void receive(int from, std::span<uint8_t> bytes) override {
    team.receive(from, bytes);
  }
  [[noreturn]] void abandon(const runtime::Status &status) override {
    team.fail(status);
  }

private:
  Team &team;
  const Options &options;
  size_t communicators = 0;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TRAIN_TEAMPROCESSES_H
