//===- Team.h - This process among those that run the plan ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan runs in one process with all devices, or under mpirun in one process
// per device. The rest of partita-run is written once for both. With one
// process every call here returns at once.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_TEAM_H
#define PARTITA_TOOLS_PARTITA_RUN_TEAM_H

#include "runtime/feed/Model.h"

#include "runtime/comm/Communicator.h"
#include "runtime/io/Tensor.h"

#include <memory>
#include <span>

namespace partita::run {

using namespace feed;

class Team {
public:
  /// Joins the MPI job if this process was started as a part of one.
  static runtime::Expected<std::unique_ptr<Team>> start(double timeout_s);
  ~Team();

  int rank() const;
  bool root() const { return rank() == 0; }
  bool distributed() const;
  /// The device that this process runs, or -1 for all.
  int device() const { return distributed() ? rank() : -1; }
  /// The number of processes on this machine.
  int processesHere() const;

  /// Fails unless there is a process for every device and all have the same
  /// artifact.
  runtime::Status check(const Model &model);
  /// The communicator of all processes. Null with one process: the session then
  /// makes its own.
  runtime::Expected<std::shared_ptr<runtime::Communicator>>
  communicator(const Model &model, double timeout_s);

  /// Prints the error of the lowest process that has one, and returns whether
  /// no process has one. Every process must call this at the same points.
  bool allWell(const runtime::Status &status);
  /// Prints the error and ends all processes with exit status 1.
  [[noreturn]] void fail(const runtime::Status &status);

  void barrier();
  void max(std::span<double> values);
  void sum(std::span<double> values);
  /// Brings each output from the process that stored it to process 0.
  void gatherOutputs(const Model &model, std::vector<runtime::Tensor> &outputs);
  /// Gathers one entry per process on process 0.
  std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> bytes);

private:
  Team();
  void require(const runtime::Status &status);
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TEAM_H
