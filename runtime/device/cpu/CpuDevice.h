//===- CpuDevice.h - Memory, kernels and library calls of one device --*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything a device of the plan needs to run its units, on one ThreadTeam.
// All calls come from the device's thread.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define PARTITA_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "runtime/device/cpu/KernelLibrary.h"
#include "runtime/device/cpu/onednn/LibraryCalls.h"

#include <map>

namespace partita::runtime {

/// Where each of Plan.weights is mapped, maybe not aligned to its element.
using WeightPointers = std::vector<const uint8_t *>;

/// Where an instance has the addresses of one slot that may lie elsewhere.
struct MovableSlot {
  struct Place {
    AddressPlace place;
    int64_t offset; ///< bytes from the slot's begin
  };
  int slot = -1;
  std::vector<Place> places;
  size_t last_task = 0;   ///< the last one that uses the slot
  uint8_t *now = nullptr; ///< where it lies

  void moveTo(uint8_t *address) {
    if (address == now)
      return;
    for (const Place &each : places)
      each.place.set(address + each.offset);
    now = address;
  }
};

/// Instructions of a unit (or of the load program) for one set of bindings.
struct Instance {
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<bool> drops_nan; ///< by task: may make a number of NaN
  std::vector<MovableSlot> movable;
};

class CpuDevice {
public:
  /// Allocates arena and constant region and runs the load program. `plan` has
  /// been verified; it and `weights` outlive the device. `keep_nan`: no task
  /// drops NaN.
  static Expected<std::unique_ptr<CpuDevice>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         std::shared_ptr<const KernelLibrary> kernels, int threads,
         const std::vector<int> &cores, bool keep_nan);

  /// Lets instances have these slots of the arena elsewhere (Instance.movable).
  /// Call before the first `prepare`.
  Status letMove(const std::vector<int> &slots);

  /// Prepares a unit for the slots it is bound to, or finds what it prepared
  /// before for the same. The pointer lives as long as the device.
  Expected<Instance *> prepare(int unit,
                               const flatbuffers::Vector<int32_t> *bindings);

  /// Allocates the scratch of all instances, and gives back the pages of
  /// constants that were packed or that only the load program read. Call once,
  /// after the last `prepare` and before anything runs.
  Status finish();

  /// Address of a slot that is no argument. A weight's may not be aligned to
  /// its element.
  uint8_t *slot(int index) const;

  uint8_t *arena() const { return arena_bytes.data(); }
  const ThreadTeam &threads() const { return team; }
  const OnednnContext &onednn() const { return *context; }
  size_t scratchBytes() const { return scratch.size(); }
  /// Weights and constants that units read as they lie.
  size_t parameterBytes() const { return parameters; }
  size_t arenaBytes() const { return arena_bytes.size(); }

private:
  CpuDevice(const abi::Plan &plan, int index, const WeightPointers &weights,
            int threads, const std::vector<int> &cores);

  /// Of the rooms for scratch that calls have beyond what each has.
  int64_t largestRoom() const;

  using Bindings = flatbuffers::Vector<int32_t>;
  const abi::Slot &boundSlot(int slot, const Bindings *bindings,
                             int &bound) const;
  Expected<void *> alignedSlot(int slot, const Bindings *bindings);
  Operand operand(const abi::View &view, const Bindings *bindings) const;
  Expected<std::unique_ptr<Task>> prepare(const abi::Instruction &instruction,
                                          const Bindings *bindings, bool pack);
  Status runLoadProgram();
  void findMovable(Instance &instance);
  void releaseUnread();
  Status reserveScratch(const std::vector<Instance *> &instances);

  const abi::Plan &plan;
  const abi::Device &device;
  const WeightPointers &weights;
  std::shared_ptr<const KernelLibrary> kernels;
  ThreadTeam team;
  Arena arena_bytes, constants, scratch;
  size_t parameters = 0;
  /// While instances are prepared, a movable slot has addresses of its own, by
  /// which they are found; nothing is read or written there.
  std::map<int, Arena> stand_ins;
  /// Weights that a kernel reads and that no file has aligned, by their number.
  std::map<int64_t, Arena> aligned_weights;
  std::unique_ptr<OnednnContext> context;
  std::map<std::pair<int, std::vector<int>>, std::unique_ptr<Instance>>
      instances;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
