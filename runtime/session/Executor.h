//===- Executor.h - Runs one device's program -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_EXECUTOR_H
#define PARTITA_RUNTIME_SESSION_EXECUTOR_H

#include "runtime/abi/Actions.h"
#include "runtime/base/Mesh.h"
#include "runtime/device/Driver.h"
#include "runtime/session/BadIndex.h"
#include "runtime/session/DirectPorts.h"
#include "runtime/session/Session.h"

#include <map>

namespace partita::runtime {

/// One device of the plan, with its program resolved to addresses. All calls
/// but `awaitStep` come from the device's thread. Other threads may read the
/// results of the step that was last awaited.
class Executor {
public:
  ~Executor();
  /// Creates the device, runs its load program and prepares its program.
  static Expected<std::unique_ptr<Executor>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         Driver &driver, const SessionOptions &options,
         const std::vector<int> &cores, Communicator &comm, const Mesh &mesh);

  /// Runs the entries of the first `binding.micro_batches` micro-batches. A
  /// device that is not the host's may not be done with them when this returns,
  /// and other devices may still read sent bytes. The next step waits for them,
  /// just before it writes these bytes again. So steps follow one another
  /// without a pause.
  Status run(const StepBinding &binding);
  /// Blocks until a step is done, and returns what failed on the device. Call
  /// it once after each `run`, in their order; from any thread, except for
  /// devices of the host.
  Status awaitStep();
  /// Waits until no other device reads bytes that the last step sent. No step
  /// may be under way.
  Status finishSends();

  /// Whether the program reads input (writes output) `port`.
  bool usesInput(int port) const { return inputs_used[port]; }
  bool usesOutput(int port) const { return outputs_used[port]; }

  /// Whether the step that was last awaited met NaN, and the device has code
  /// that may have turned it into a number.
  bool mayHaveDroppedNan() const { return device->metNan(); }

  /// The wrong indices of the step that was last awaited.
  const std::vector<BadIndex> &badIndices() const { return bad; }

  /// What it found in the step that was last awaited; null: nobody asked, or
  /// the device does not show its memory.
  const NanSearch *nanSearch() const { return search.get(); }

  /// Whether the device has a state, or a part of it. Its bytes go into, or
  /// come from, the tensor of all micro-batches. No step may be under way.
  bool hasState(int state) const { return slotOfState(state) >= 0; }
  Status readState(int state, void *to, int sequence) const;
  Status writeState(int state, const void *from, int sequence);

  /// What the user should know of how the device was loaded.
  std::string remark() const { return device->remark(); }
  int64_t busyNs() const { return device->busyNs(); }
  const std::vector<ProfileEvent> &events() const { return last->recorded; }
  /// The most events that a step can record.
  size_t mostEvents() const { return most_events; }
  DeviceMemory memory() const;

private:
  struct Entry;

  /// A slot that may use the caller's bytes, or those of the device that sends
  /// it.
  struct DirectSlot {
    DirectPort port;
    int64_t bytes, alignment;
    bool per_step = false;           ///< one tensor for all micro-batches
    std::vector<uint8_t *> own;      ///< by copy: in the arena
    std::vector<uint8_t *> borrowed; ///< by copy: address of the last value
                                     ///< that a channel brought

    size_t copyOf(int micro_batch) const {
      return static_cast<size_t>(micro_batch) % own.size();
    }

    /// The address of the slot for a micro-batch: the caller's or the sender's,
    /// or `own` if that is not aligned as a kernel expects.
    uint8_t *place(const Entry &entry, const StepBinding &binding) const;
  };
  /// Bytes to release to their sender after a task of an instance.
  struct Release {
    size_t task;
    Receiver *receiver;
  };
  /// A step that is under way.
  struct Step {
    Event end;
    bool ran = false; ///< without an error
    int fed = 0;      ///< micro-batches
    /// What its checks said, one after another (Entry.told).
    std::vector<int64_t> told;
    std::vector<ProfileEvent> recorded;
    /// For a device that is not the host: written by the device's thread.
    std::vector<ProfileEvent> recorded_there;
  };
  class EntryObserver;

  /// A wait that is carried into the next step, because this step does not
  /// write the sent bytes after it.
  struct CarriedWait {
    size_t entry;         ///< index of the wait
    bool pending = false; ///< since the step before
  };

  /// An action with everything looked up. Its micro-batch is counted within the
  /// replica.
  struct Entry : abi::ProgramAction {
    int fed = 0;              ///< the micro-batch, counted within the step
    int at = 0;               ///< load_input, store_output: tensor of the port
    bool stores = false;      ///< store_output: whether this device does it
    Sender *sender = nullptr; ///< send, wait
    Receiver *receiver = nullptr;       ///< recv, release
    Participant *participant = nullptr; ///< start, finish
    size_t told = 0; ///< examine: where its numbers begin in Step.told
    /// start: index of the entry of its finish.
    size_t finish = 0;
    uint8_t *data = nullptr; ///< of the slot; null for a token
    int64_t bytes = 0;
    Instance *instance = nullptr;
    /// run: index among the instance's movable slots, and the slot.
    std::vector<std::pair<size_t, DirectSlot *>> movable;
    /// run: in the order of their tasks. release: if no run reads the slot.
    std::vector<Release> releases;
    /// run, by place in Executor::steps; empty: none is needed
    std::vector<std::unique_ptr<EntryObserver>> observers;
    DirectSlot *direct = nullptr; ///< load_input, store_output, recv; or null
    int carried = -1; ///< wait: index in Executor::carried; -1: none
    /// Carried waits that it must finish first: those for bytes that it writes,
    /// and that of the same send.
    std::vector<int> before;
  };

  Executor(const abi::Plan &plan, int index, const SessionOptions &options,
           Communicator &comm, const Mesh &mesh);
  Status prepare();
  bool isPerStep(const DirectPort &port) const;
  bool storesOutput(int output) const;
  bool lastsAsLong(int slot, const DirectPort &port) const;
  DirectSlot directSlot(int slot, const DirectPort &port) const;
  int copiesOf(int slot) const;
  int slotOfState(int state) const;
  void prepareSequences();
  Status beginSequences(const StepBinding &binding);
  template <typename Visit>
  Status forEachCopy(int state, int sequence, Visit visit) const;
  bool sendsFromHost(int channel) const;
  Status prepareEntry(Entry &entry);
  void makeEnd(Entry &entry);
  void placeReleases();
  void carryWaits();
  Status finish(CarriedWait &wait);
  /// The step that is run, in `steps`.
  size_t place() const { return static_cast<size_t>(current - steps.data()); }
  Status runSteps(const StepBinding &binding);
  Status execute(const Entry &entry, const StepBinding &binding);
  Status runInstance(const Entry &entry, const StepBinding &binding);
  void matchCollectives();
  Status borrow(const Entry &entry);
  Status explain(const Entry &entry, const Status &status) const;
  void measureArena();
  void findBadIndices();

  const abi::Plan &plan;
  const int index;
  const abi::Device &described;
  const abi::Program &program;
  const bool profile, measure;
  const Search sought;
  Communicator &comm;
  const Mesh &mesh;
  const int position; ///< in the mesh
  const bool stores;  ///< the outputs of its replica
  std::unique_ptr<Device> device;
  std::unique_ptr<NanSearch> search;
  std::vector<Entry> entries; ///< the program's actions
  std::vector<CarriedWait> carried;
  int stride = 1; ///< micro-batches of a sequence, as the device counts
  /// Of a device that is not the host: as many as the largest carried state of
  /// a sequence has, which begins with them.
  std::vector<uint8_t> zeros;
  std::vector<bool> inputs_used, outputs_used;
  std::map<int, DirectSlot> direct; ///< by slot; fixed once made
  /// By channel; fixed once made, as are the parts of collectives.
  std::map<int, std::unique_ptr<Sender>> senders;
  std::map<int, std::unique_ptr<Receiver>> receivers;
  std::map<int, std::unique_ptr<Participant>> participants;
  /// By number: as many as may be under way. They are counted by those who run
  /// and by those who await them.
  std::vector<Step> steps;
  size_t run_count = 0, awaited_count = 0;
  Step *current = nullptr, *last = nullptr; ///< to be run, awaited
  size_t most_events = 0;
  size_t told = 0;            ///< numbers that the checks of a step say
  std::vector<BadIndex> bad;  ///< of `last`
  std::vector<uint8_t> image; ///< of the arena, if it is measured
  int64_t touched = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_EXECUTOR_H
