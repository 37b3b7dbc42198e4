//===- CpuDevice.h - Cores of this machine as a device ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device of the plan that runs its units on one ThreadTeam. Its memory is the
// host's. Its queue is the calling thread: enqueued work is done when the call
// returns.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define PARTITA_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "runtime/base/Arena.h"
#include "runtime/device/Driver.h"
#include "runtime/device/cpu/CpuShare.h"
#include "runtime/device/cpu/KernelLibrary.h"
#include "runtime/device/cpu/onednn/LibraryCalls.h"

#include <map>
#include <optional>

namespace partita::runtime {

/// Tasks of a unit, or of the load program.
class CpuInstance final : public Instance {
public:
  void move(size_t which, uint8_t *address) override;

private:
  friend class CpuDevice;
  struct Place {
    AddressPlace place;
    int64_t offset; ///< in bytes, from the begin of what moves
  };
  /// All places that hold an address in something that moves, and its current
  /// address.
  struct Addresses {
    std::vector<Place> places;
    size_t last_task = 0; ///< that has one
    uint8_t *now = nullptr;

    void pointTo(uint8_t *address);
  };
  /// What the unit uses of which micro-batches have copies of their own: a
  /// frame, or a state.
  struct Copied {
    const std::vector<uint8_t *> *copies; ///< of the device
    Addresses addresses;
  };

  int unit = -1;
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<bool> drops_nan;      ///< by task: may turn NaN into a number
  std::vector<Addresses> addresses; ///< as `movables`
  std::vector<Copied> copied;
};

/// Ranges of memory that do not overlap: the first byte of each, and the one
/// behind its last.
using ByteRanges = std::map<uintptr_t, uintptr_t>;

class CpuDevice final : public Device, private Queue {
public:
  /// See Driver::create. `weights_are_mapped`: the weights are mapped files, so
  /// their pages may be released and are read again when they are used.
  /// `kernels`: the kernels of all the plan's devices.
  static Expected<std::unique_ptr<CpuDevice>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         bool weights_are_mapped, std::shared_ptr<const KernelLibrary> kernels,
         const DeviceOptions &options, const std::vector<int> &cores);

  bool isHost() const override { return true; }

  uint8_t *slot(int index, int micro_batch) const override;
  Expected<uint8_t *> allocate(size_t bytes, const char *what) override;
  Status upload(uint8_t *to, const void *from, size_t bytes) override;
  Status download(void *to, const uint8_t *from, size_t bytes) override;
  uint8_t *arena() const override { return share->arena.data(); }
  DeviceMemory memory() const override;

  Status letMove(const std::vector<int> &slots) override;
  Expected<Instance *> prepare(int unit) override;
  /// Allocates the scratch of all instances. Releases the pages of constants
  /// that were packed or that only the load program read.
  Status finish() override;

  Queue &queue() override { return *this; }
  Status beginStep() override;
  Event closeStep() override;
  Status awaitStep(const Event &) override { return Status(); }
  bool metNan() const override { return met_nan; }
  int64_t busyNs() const override { return busy_ns; }

private:
  CpuDevice(const abi::Plan &plan, int index, const WeightPointers &weights,
            bool weights_are_mapped, const DeviceOptions &options,
            const std::vector<int> &cores);

  Status copyIn(uint8_t *to, const void *from, size_t bytes) override;
  Status copyOut(void *to, const uint8_t *from, size_t bytes) override;
  Status copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                  size_t bytes) override;
  Status run(Instance &instance, int micro_batch,
             TaskObserver *observer) override;
  Event record() override { return {}; }
  Status wait(const Event &event) override;
  Status synchronize(const Event &) override { return Status(); }

  /// The largest scratch that a call of the plan may have beyond the common
  /// workspace.
  int64_t largestRoom() const;

  uint8_t *preparedSlot(int index) const;
  Expected<void *> alignedSlot(int slot);
  Operand operand(const abi::View &view) const;
  Expected<std::unique_ptr<Task>> prepare(const abi::Instruction &instruction,
                                          bool pack);
  Status findShare(SharedDevices *shared);
  Status findStates();
  Status runLoadProgram();
  void shareConstants();
  ByteRanges rangesOf(bool (*wanted)(abi::Space)) const;
  const std::vector<uint8_t *> *copiesOf(const abi::Slot &slot) const;
  Status standInForCopies();
  static CpuInstance::Addresses findAddresses(CpuInstance &instance,
                                              const Arena &stand_in);
  void findMovable(CpuInstance &instance);
  void releasePacked(const abi::Call &call, Task &task);
  void releaseUnread();
  void countReaders();
  Status reserveScratch(const std::vector<CpuInstance *> &instances);

  const abi::Plan &plan;
  const int index;
  const abi::Device &device;
  const abi::Program &program;
  const WeightPointers &weights;
  const bool weights_are_mapped;
  std::shared_ptr<const KernelLibrary> kernels;
  ThreadTeam team;
  std::shared_ptr<CpuShare> share;
  std::shared_ptr<const Arena> constants; ///< as the load program wrote them
  std::vector<uint8_t *> constant_places; ///< by slot; null: in `constants`
  /// Addresses of the copies of each of Plan.states; none: it is not used.
  std::vector<std::vector<uint8_t *>> states;
  size_t state_bytes = 0;
  Arena scratch;
  std::vector<Arena> allocated;
  std::vector<int> readers; ///< by slot: uses by units and steps
  size_t parameters = 0;
  std::vector<std::vector<uint8_t *>> frames; ///< addresses of their copies
  /// While instances are prepared, movable slots, and frames and states with
  /// several copies, have placeholder addresses, by which they are found in
  /// tasks. Nothing is read or written there.
  std::map<int, Arena> stand_ins;
  std::map<const std::vector<uint8_t *> *, Arena> copy_stand_ins;
  /// Aligned copies of weights that a kernel reads and that are not aligned in
  /// their file, by their number.
  std::map<int64_t, Arena> aligned_weights;
  std::unique_ptr<OnednnContext> context;
  std::vector<std::unique_ptr<CpuInstance>> instances; ///< by unit; or null
  bool drops_nan = false;              ///< a task of an instance does
  bool met_nan = false;                ///< in the last step
  int64_t busy_ns = 0;                 ///< of the last step
  std::optional<FlushDenormals> flush; ///< while a step runs
};

/// See DescribeNeeds.
std::vector<std::string> describeCpuNeeds(const Artifact &artifact);

/// "oneDNN 2.6.3".
std::string describeCpuLibrary();

/// Loads the kernels of an artifact for this processor.
Expected<std::unique_ptr<Driver>> loadCpuDriver(const Artifact &artifact,
                                                const DeviceOptions &options);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
