//===- Processes.h - Those that train one model together --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_PROCESSES_H
#define PARTITA_RUNTIME_TRAINER_PROCESSES_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <memory>
#include <span>

namespace partita::runtime {
class Artifact;
class Communicator;
} // namespace partita::runtime

namespace partita::runtime::train {

/// The processes of one training. Each runs some of the plan's devices, and all
/// call the same functions of a trainer in the same order. What fails in these
/// calls themselves, such as a process that does not come, ends all of them.
class Processes {
public:
  virtual ~Processes() = default;

  /// From 0 on. Process 0 writes files, and prints.
  virtual int rank() const = 0;
  virtual int count() const = 0;
  virtual int processOf(int device) const = 0;

  /// What carries the messages of a plan between the processes.
  virtual Expected<std::shared_ptr<Communicator>>
  communicator(std::shared_ptr<const Artifact> artifact) = 0;

  /// Success if all processes pass success. Otherwise all get the error of the
  /// first process that has one.
  virtual Status agree(const Status &mine) = 0;
  /// Gives all processes the bytes that one of them knows, and that are 0 in
  /// the others. Allocates nothing, from the second call with as many bytes on.
  virtual void join(std::span<uint8_t> bytes) = 0;
  /// Several threads may send.
  virtual void send(int to, std::span<const uint8_t> bytes) = 0;
  virtual void receive(int from, std::span<uint8_t> bytes) = 0;

  /// Says an error that only this process has, and ends all of them: others may
  /// wait for it anywhere.
  [[noreturn]] virtual void abandon(const Status &status) = 0;
};

/// Of one process, which `all` stands for if it is null, its own status.
inline Status agree(Processes *all, const Status &mine) {
  return all ? all->agree(mine) : mine;
}

/// Whether this is the process that writes files, and prints.
inline bool isFirst(const Processes *all) { return !all || all->rank() == 0; }

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_PROCESSES_H
