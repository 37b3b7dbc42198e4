//===- Executor.h - Runs one device's program -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_EXECUTOR_H
#define PARTITA_RUNTIME_SESSION_EXECUTOR_H

#include "runtime/session/DirectPorts.h"
#include "runtime/session/Session.h"
#include "runtime/device/cpu/CpuDevice.h"

namespace partita::runtime {

/// One device of the plan with its program resolved to addresses. All calls
/// come from the device's thread; only the results of a finished step may be
/// read from another.
class Executor {
public:
  /// Creates the device, runs its load program and prepares its program.
  static Expected<std::unique_ptr<Executor>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         std::shared_ptr<const KernelLibrary> kernels,
         const SessionOptions &options, const std::vector<int> &cores,
         Communicator &comm);

  /// Runs the entries of the first `binding.micro_batches` micro-batches.
  Status run(const StepBinding &binding);

  /// Whether the program reads input (writes output) `port`.
  bool usesInput(int port) const { return inputs_used[port]; }
  bool usesOutput(int port) const { return outputs_used[port]; }

  /// Whether the last step met NaN, and has code that may have made a number of
  /// it.
  bool mayHaveDroppedNan() const { return met_nan; }

  int64_t busyNs() const { return busy_ns; }
  const std::vector<ProfileEvent> &events() const { return recorded; }
  /// The most events a step can record.
  size_t mostEvents() const { return most_events; }
  DeviceMemory memory() const;

private:
  /// A slot that may lie with the caller, or with the device that sends it.
  struct DirectSlot {
    DirectPort port;
    int64_t bytes, alignment;
    uint8_t *own;      ///< in the arena
    uint8_t *borrowed; ///< of a channel: where the last one received lies

    /// Where it lies for a micro-batch: with the caller or the sender, unless
    /// the bytes there are not aligned as a kernel expects; then `own`.
    uint8_t *place(int micro_batch, const StepBinding &binding) const;
  };
  /// What to give back to a sender after a task of an instance.
  struct Release {
    size_t task;
    int channel;
  };

  /// A Step with everything looked up.
  struct Entry {
    abi::StepKind kind;
    int micro_batch;
    int channel;
    int io;
    uint8_t *data; ///< of the slot; null for a token
    int64_t bytes;
    Instance *instance;
    std::vector<std::pair<MovableSlot *, DirectSlot *>> movable; ///< run
    std::vector<Release> releases; ///< run; in the order of their tasks; or of
                                   ///< a release, if no run reads the slot
    DirectSlot *direct; ///< of load_input, store_output, recv; or null
  };

  Executor(const abi::Plan &plan, int index, const WeightPointers &weights,
           const SessionOptions &options, Communicator &comm);
  Status prepare();
  void placeReleases();
  Status borrow(const Entry &entry);
  Status execute(int index, const Entry &entry, const StepBinding &binding);
  Status runInstance(int index, const Entry &entry, const StepBinding &binding);
  Status explain(const Entry &entry, const Status &status) const;
  void record(int index, const Entry &entry, int instruction, int64_t begin);
  void measureArena();

  const abi::Plan &plan;
  const int index;
  const abi::Device &device;
  const WeightPointers &weights;
  const bool profile, measure;
  Communicator &comm;
  std::unique_ptr<CpuDevice> cpu;
  std::vector<Entry> program;
  std::vector<bool> inputs_used, outputs_used;
  std::map<int, DirectSlot> direct; ///< by slot; fixed once made
  std::vector<ProfileEvent> recorded;
  size_t most_events = 0;
  int64_t busy_ns = 0;
  bool drops_nan = false; ///< some task does
  bool met_nan = false;   ///< in the last step
  int64_t touched = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_EXECUTOR_H
