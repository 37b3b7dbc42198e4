//===- Session.h - A loaded plan, ready to run steps ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A session owns the devices of this process. Each device has a thread that is
// pinned to its cores, an arena, prepared library calls and kernels. `create`
// prepares everything. `run` itself performs no heap allocation.
//
//   auto artifact = Artifact::open(path);
//   auto session = Session::create(*artifact, options, comm);
//   Status status = (*session)->run(binding);
//
// Steps that are submitted one after another overlap: the micro-batches of the
// next step enter the pipeline while those of the last step leave it.
//
//   auto first = (*session)->submit(binding);     // at most kMostSteps
//   auto second = (*session)->submit(other);
//   Status status = (*session)->wait(*first);
//
// A session of one device has no thread of its own, unless the options say so.
// `create`, `run` and `submit` work in the calling thread, and must be called
// from the same one. If that device is a GPU, `submit` gives it the step, and
// `wait` waits for it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_SESSION_H
#define PARTITA_RUNTIME_SESSION_SESSION_H

#include "runtime/base/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Driver.h"
#include "runtime/session/BadIndex.h"
#include "runtime/session/NanSearch.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace partita::runtime {

class Artifact;

/// Options of a session, beside those of its devices.
///
/// To keep NaN in all ops (`keep_nan`) is what the model's definition requires.
/// Without this option a step is computed by faster code, which drops NaN in
/// some ops. If a step meets NaN there, it is computed again, and the session
/// keeps NaN from then on. A session that does not run all devices of the plan
/// cannot do that: see `mayHaveDroppedNan`. Plans that write states always keep
/// NaN: a step cannot be computed again.
struct SessionOptions : DeviceOptions {
  /// Pin the session's k-th device to T cores: from the core `first_core + k*T`
  /// on, modulo the number of cores.
  bool pin = true;
  int first_core = 0; ///< where another process pins devices to those before
  /// Run only these devices of the plan, in increasing order; others run in
  /// other processes (MPI). Empty: all.
  std::vector<int> devices;
  bool profile = false; ///< record an event for each instruction and action
  /// Do not check the hashes of the weights that this session's devices use.
  /// The check reads all of these weights once.
  bool trust_weights = false;
  /// Measure DeviceMemory.arena_touched. Each step first fills the arena with a
  /// pattern, and at its end looks for the highest byte that changed.
  bool measure_arena = false;
  /// Look for the instructions that make NaN, or infinities, too. A step then
  /// looks at everything that it reads and writes: see Session::nanOrigins.
  Search search = Search::none;
  /// A lone device has a thread, too: sessions that share it are used by
  /// several threads.
  bool lone_thread = false;
};

/// The inputs and outputs of one step. Pointers are to micro-batch-major
/// storage: micro-batch m of port p is at `data[p] + m * bytes of the port`.
/// Ports that this process does not use, or that have no elements, may be null.
/// A step may read inputs and write outputs at any time until it returns, so
/// they must not overlap.
struct StepBinding {
  /// The number of micro-batches that are fed, from 0 on (see
  /// stepMicroBatches).
  int micro_batches = 1;
  std::vector<const uint8_t *> inputs; ///< one for each Plan.inputs
  std::vector<uint8_t *> outputs;      ///< one for each Plan.outputs
  int sequence = 0; ///< of Plan.sequences: whose carried states it is for
  /// Bit i: these states are 0 before it, of sequence i of Plan.step_sequences.
  uint64_t begins = 0;
};

/// One recorded interval. Times are nanoseconds of CLOCK_MONOTONIC.
struct ProfileEvent {
  int device;
  int micro_batch; ///< of the step
  int action;      ///< index into the actions of the device's program
  int instruction; ///< index into the unit, or -1 for the action itself
  int64_t begin_ns;
  int64_t end_ns;
};

class Session {
public:
  /// Maps the weights, runs the load programs, prepares library calls and
  /// starts the device threads. `comm` null: the local communicator, with NCCL
  /// where devices are GPUs. One that is given must be connected before the
  /// first step (Communicator::connect).
  static Expected<std::unique_ptr<Session>>
  create(std::shared_ptr<const Artifact> artifact,
         const SessionOptions &options,
         std::shared_ptr<Communicator> comm = nullptr);
  ~Session();

  /// The most steps that may be in flight: submitted, and not yet waited for.
  static constexpr int kMostSteps = Device::kMostSteps;

  /// Runs one step. An error names the operation, the device, and the device
  /// that it waited for. After an error the session can only be destroyed,
  /// unless `badIndices` says that it was the step's inputs.
  Status run(const StepBinding &binding);
  /// Whether `submit` returns before a step is done. If not, it computes.
  bool overlapsSteps() const;

  /// Submits a step to the devices, behind those that were submitted before,
  /// and returns its ticket. The memory that the binding points to must stay
  /// valid until `wait`. Fails if the binding is wrong, or if kMostSteps are in
  /// flight. May be called from any thread, unless the session has one device.
  Expected<uint64_t> submit(const StepBinding &binding);
  /// Waits until a step is done. Call it once for each ticket, in any order,
  /// from any thread. Afterwards `profile` and `busyNs` describe this step.
  /// After an error all steps fail that are not done, with the same message,
  /// unless it is of `badIndices`.
  Status wait(uint64_t ticket);
  /// The indices of the step that was last waited for that the model does not
  /// allow, sorted. If there are any, `wait` returned an error that describes
  /// the first of them. All micro-batches without one are computed rightly, and
  /// the session goes on. Of a check whose rows are samples, so are the other
  /// samples.
  const std::vector<BadIndex> &badIndices() const;

  /// With SessionOptions.search: for each device of this process and each
  /// micro-batch of the step that was last waited for, the first instruction
  /// that made what is looked for, sorted. A device that does not show its
  /// memory (canBeSearched) has none.
  const std::vector<NanOrigin> &nanOrigins() const;

  /// Waits until all that steps have sent has been taken. No step may be under
  /// way. To be called before another session writes memory that both share,
  /// where a device of another process may still read it.
  Status settle();

  /// Copies a state (Plan.states) of this process to the host, and back. No
  /// step may be under way. Fails if no device of the process has the state.
  Status readState(int state, void *to, int sequence = 0) const;
  Status writeState(int state, const void *from, int sequence = 0);

  /// Whether steps keep NaN now: with SessionOptions.keep_nan, or after a step
  /// that met NaN.
  bool keepsNan() const;
  /// Whether a step met NaN where it may have become a number, and could not be
  /// computed again. Its outputs may be wrong.
  bool mayHaveDroppedNan() const;

  /// What the user should know of how it was loaded, in lines; empty: nothing.
  const std::string &remark() const;

  /// Events of the step that was last waited for (with
  /// SessionOptions::profile).
  const std::vector<ProfileEvent> &profile() const;
  /// For each device of this process, the nanoseconds that its units took in
  /// that step; negative: they were not measured (Device::busyNs).
  const std::vector<int64_t> &busyNs() const;
  std::vector<DeviceMemory> memory() const;

  struct Impl;

private:
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_SESSION_H
