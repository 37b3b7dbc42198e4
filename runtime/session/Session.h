//===- Session.h - A loaded plan, ready to run steps ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A session owns the devices of this process: one thread a device, pinned to
// its cores, with its arena, its prepared library calls and its kernels. Load
// prepares everything; `run` performs no heap allocation of its own.
//
//   auto artifact = Artifact::open(path);
//   auto session = Session::create(*artifact, options, comm);
//   Status status = (*session)->run(binding);
//
// Steps that are submitted one after another overlap: the micro-batches of the
// next enter the pipeline while those of the last leave it.
//
//   auto first = (*session)->submit(binding);     // at most kMostSteps
//   auto second = (*session)->submit(other);
//   Status status = (*session)->wait(*first);
//
// A session of one device has no thread of its own: `create`, `run` and
// `submit` work in the calling thread, and must be called from the same one. So
// communicators that are bound to a thread (MPI) are only used from there.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_SESSION_H
#define PARTITA_RUNTIME_SESSION_SESSION_H

#include "runtime/base/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Driver.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace partita::runtime {

class Artifact;

struct SessionOptions {
  int threads_per_device = 1; ///< cores a device
  bool pin = true; ///< keep device k on cores k*T .. k*T+T-1 (modulo the cores
                   ///< there are)
  double timeout_s = 60; ///< deadline of every wait
  int device = -1;       ///< run only this device of the plan (MPI); -1: all
  bool profile = false; ///< record an event for each instruction and step entry
  /// Compute so that NaN stays NaN, as the model's definition has it. Without
  /// that a step is computed by faster code, which drops NaN in some ops; if a
  /// step meets NaN there, it is computed again and the session keeps NaN from
  /// then on. Only a session that runs one device of several cannot do that:
  /// see `mayHaveDroppedNan`.
  bool keep_nan = false;
  int max_cpu_level = 4; ///< use no object above this x86-64 level
  /// Do not compare the weights of this session's devices with the hashes they
  /// had when the model was compiled, which reads all of them once.
  bool trust_weights = false;
  /// Measure DeviceMemory.arena_touched: each step begins with filling the
  /// arena with a pattern and ends with looking for the highest byte that
  /// changed.
  bool measure_arena = false;

  DeviceOptions deviceOptions() const {
    return {threads_per_device, keep_nan, max_cpu_level, timeout_s};
  }
};

/// Where the samples of one step come from and go to. Pointers are to
/// micro-batch-major storage: micro-batch m of port p is at
/// `data[p] + m * bytes of the port`. Ports that this process does not touch,
/// or that have no elements, may be null. A step may read inputs and write
/// outputs there at any time until it returns: they must not overlap.
struct StepBinding {
  int micro_batches =
      1; ///< how many of a step's are fed, from 0 (see stepMicroBatches)
  std::vector<const uint8_t *> inputs; ///< one for each Plan.inputs
  std::vector<uint8_t *> outputs;      ///< one for each Plan.outputs
};

/// One recorded interval. Times are nanoseconds of CLOCK_MONOTONIC.
struct ProfileEvent {
  int device;
  int micro_batch; ///< of the step
  int step;        ///< index into the steps of the device's program
  int instruction; ///< index into the unit, or -1 for the step entry itself
  int64_t begin_ns;
  int64_t end_ns;
};

class Session {
public:
  /// Maps the weights, runs the load programs, prepares library calls and
  /// starts the device threads. `comm` null: the local communicator.
  static Expected<std::unique_ptr<Session>>
  create(std::shared_ptr<const Artifact> artifact,
         const SessionOptions &options,
         std::shared_ptr<Communicator> comm = nullptr);
  ~Session();

  /// Steps that may be under way, submitted and not yet waited for.
  static constexpr int kMostSteps = 4;

  /// Runs one step. An error names the operation, the device and whom it waited
  /// for; afterwards the session can only be destroyed.
  Status run(const StepBinding &binding);

  /// Hands a step to the devices, behind those that were submitted before, and
  /// returns its ticket. What the binding points to must stay until `wait`. An
  /// error if it is wrong, or if kMostSteps are under way. From any thread,
  /// unless the session has one device.
  Expected<uint64_t> submit(const StepBinding &binding);
  /// Waits until a step is done; once for each ticket, in any order. From any
  /// thread. What `profile` and `busyNs` say is of this step then.
  Status wait(uint64_t ticket);

  /// Whether steps keep NaN now: SessionOptions.keep_nan, or a step met one.
  bool keepsNan() const;
  /// Whether a step met NaN where it may have become a number, and could not be
  /// computed again. Its outputs may be wrong.
  bool mayHaveDroppedNan() const;

  /// Events of the step last waited for (with SessionOptions::profile).
  const std::vector<ProfileEvent> &profile() const;
  /// Nanoseconds each device of this process was busy in units, in that step.
  const std::vector<int64_t> &busyNs() const;
  std::vector<DeviceMemory> memory() const;

  struct Impl;

private:
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_SESSION_H
