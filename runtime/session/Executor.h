//===- Executor.h - Runs one device's program -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_EXECUTOR_H
#define PARTITA_RUNTIME_SESSION_EXECUTOR_H

#include "runtime/abi/Steps.h"
#include "runtime/base/Mesh.h"
#include "runtime/device/Driver.h"
#include "runtime/session/DirectPorts.h"
#include "runtime/session/Session.h"

#include <map>

namespace partita::runtime {

/// One device of the plan with its program resolved to addresses. All calls
/// come from the device's thread; only the results of a finished step may be
/// read from another.
class Executor {
public:
  ~Executor();
  /// Creates the device, runs its load program and prepares its program.
  static Expected<std::unique_ptr<Executor>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         Driver &driver, const SessionOptions &options,
         const std::vector<int> &cores, Communicator &comm, const Mesh &mesh);

  /// Runs the entries of the first `binding.micro_batches` micro-batches. What
  /// it has sent may still be read by others when it returns: that is waited
  /// for in the next step, just before its bytes are written again. So steps
  /// follow one another without a pause.
  Status run(const StepBinding &binding);
  /// Waits until nobody reads what the last step has sent.
  Status finishSends();

  /// Whether the program reads input (writes output) `port`.
  bool usesInput(int port) const { return inputs_used[port]; }
  bool usesOutput(int port) const { return outputs_used[port]; }

  /// Whether the last step met NaN, and has code that may have made a number of
  /// it.
  bool mayHaveDroppedNan() const { return device->metNan(); }

  int64_t busyNs() const { return device->busyNs(); }
  const std::vector<ProfileEvent> &events() const { return recorded; }
  /// The most events a step can record.
  size_t mostEvents() const { return most_events; }
  DeviceMemory memory() const;

private:
  struct Entry;

  /// A slot that may lie with the caller, or with the device that sends it.
  struct DirectSlot {
    DirectPort port;
    int64_t bytes, alignment;
    std::vector<uint8_t *> own;      ///< by copy: in the arena
    std::vector<uint8_t *> borrowed; ///< by copy: where the last one that a
                                     ///< channel brought lies

    size_t copyOf(int micro_batch) const {
      return static_cast<size_t>(micro_batch) % own.size();
    }

    /// Where it lies for a micro-batch: with the caller or the sender, unless
    /// the bytes there are not aligned as a kernel expects; then `own`.
    uint8_t *place(const Entry &entry, const StepBinding &binding) const;
  };
  /// What to give back to a sender after a task of an instance.
  struct Release {
    size_t task;
    int link;
  };
  /// What to give back to a sender when a copy is done.
  struct PendingRelease {
    Event copied;
    int link, micro_batch;
  };
  /// Bytes of the host on the way between a slot and a communicator that
  /// carries only those.
  struct Staging {
    std::vector<uint8_t> bytes;
    Event read; ///< when the device has taken what lay there
  };
  class EntryObserver;

  /// How a message comes into a slot.
  enum class Arrival {
    borrowed, ///< it stays with the sender
    copied,   ///< the communicator brings it into the slot
    taken,    ///< this device fetches it from the sender
    staged ///< the communicator brings it to the host, from there to the slot
  };

  /// A wait after which the program does not write the bytes that were sent:
  /// the next step waits for it.
  struct CarriedWait {
    size_t entry;         ///< the wait's
    bool pending = false; ///< from the step before
  };

  /// A Step with everything looked up.
  struct Entry {
    abi::StepKind kind = abi::StepKind::run;
    int micro_batch = 0; ///< of the replica
    int fed = 0;         ///< the same one, among those of the step
    int channel = -1;
    int link = -1; ///< the channel's, for the communicator
    int io = -1;   ///< Plan.inputs or Plan.outputs
    int collective = -1;
    /// start: of its finish.
    size_t finish = 0;
    uint8_t *data = nullptr; ///< of the slot; null for a token
    int64_t bytes = 0;
    Instance *instance = nullptr;
    std::vector<std::pair<size_t, DirectSlot *>>
        movable; ///< run: which of the instance's slots, where it lies
    std::vector<Release> releases; ///< run; in the order of their tasks; or of
                                   ///< a release, if no run reads the slot
    std::unique_ptr<EntryObserver> observer; ///< run; null: nothing to observe
    DirectSlot *direct =
        nullptr; ///< of load_input, store_output, recv; or null
    Arrival arrival = Arrival::copied; ///< recv
    Staging *staging = nullptr; ///< send, recv, start and finish; or null
    int carried = -1;           ///< wait: which of the carried ones; -1: none
    std::vector<int>
        before; ///< carried waits, of what it writes or sends again
  };

  Executor(const abi::Plan &plan, int index, const SessionOptions &options,
           Communicator &comm, const Mesh &mesh);
  Status prepare();
  DirectSlot directSlot(int slot, const DirectPort &port) const;
  int copiesOf(int slot) const;
  bool sendsFromHost(int channel) const;
  Status prepareEntry(const abi::ProgramStep &step, Entry &entry);
  Arrival arrivalOf(const Entry &entry) const;
  void placeReleases();
  void carryWaits();
  Status finish(CarriedWait &wait);
  Status runSteps(const StepBinding &binding);
  Status execute(const Entry &entry, const StepBinding &binding);
  Status runInstance(const Entry &entry, const StepBinding &binding);
  void matchCollectives();
  Status start(const Entry &entry);
  Status finish(const Entry &entry);
  Status send(const Entry &entry);
  Status receive(const Entry &entry);
  Status borrow(const Entry &entry);
  Status take(const Entry &entry);
  Status releasePending();
  Status explain(const Entry &entry, const Status &status) const;
  void measureArena();

  const abi::Plan &plan;
  const int index;
  const abi::Device &described;
  const abi::Program &program;
  const bool profile, measure;
  Communicator &comm;
  const Mesh &mesh;
  const int position; ///< in the mesh
  const bool stores;  ///< the outputs
  std::unique_ptr<Device> device;
  std::vector<Entry> entries; ///< the program's steps
  std::vector<CarriedWait> carried;
  std::vector<bool> inputs_used, outputs_used;
  std::map<int, DirectSlot> direct; ///< by slot; fixed once made
  std::map<std::pair<int, int>, Staging>
      staging; ///< by slot and copy; likewise
  std::vector<PendingRelease> pending;
  std::vector<ProfileEvent> recorded;
  /// Of a device that is not the host: written by its own thread.
  std::vector<ProfileEvent> recorded_there;
  size_t most_events = 0;
  std::vector<uint8_t> image; ///< of the arena, where it is measured
  int64_t touched = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_EXECUTOR_H
