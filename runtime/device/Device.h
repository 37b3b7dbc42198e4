//===- Device.h - What a session needs of a device --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device has memory, units that are prepared at load, and a queue that works
// in order. The session gives work to the queue and goes on; it learns by
// events what is done:
//
//   queue.copyIn(device.slot(in, m), sample, bytes);
//   queue.run(*instance, m, nullptr);
//   queue.copyOut(result, device.slot(out, m), bytes);
//   Status status = queue.synchronize(queue.record());
//
// A kind of device is a folder of `runtime/device` and a line of `all/Registry.cpp`.
// All calls come from the thread that made the device, but for `upload` and
// `download`, and for waiting for an event.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_DEVICE_H
#define PARTITA_RUNTIME_DEVICE_DEVICE_H

#include "runtime/abi/plan_generated.h"
#include "runtime/base/Status.h"
#include "runtime/device/DeviceMemory.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace partita::runtime {

class Device;
class Queue;

/// Where each of Plan.weights is mapped, maybe not aligned to its element.
using WeightPointers = std::vector<const uint8_t *>;

/// A point in the work of a queue: all that was given to it before.
struct Event {
  Queue *queue = nullptr; ///< null: there is nothing to wait for
  uint64_t number = 0;    ///< of the queue's own counting
};

/// Learns when the tasks of an instance end. Called in their order, by the
/// thread that runs them; what it writes may be read when the step has ended.
class TaskObserver {
public:
  /// `timed`: whether it wants to know the times, which takes two looks at the
  /// clock a task.
  explicit TaskObserver(bool timed) : timed(timed) {}
  virtual ~TaskObserver() = default;
  /// Times are nanoseconds of CLOCK_MONOTONIC, 0 if they are not wanted.
  virtual void finished(size_t task, int64_t begin_ns, int64_t end_ns) = 0;

  const bool timed;
};

/// A unit prepared to run on any micro-batch: one task for each of its
/// instructions.
class Instance {
public:
  /// A slot that may lie elsewhere (Device::letMove), and the last task that
  /// uses it.
  struct Movable {
    int slot = -1;
    size_t last_task = 0;
  };
  virtual ~Instance() = default;

  const std::vector<Movable> &movable() const { return movables; }
  /// From now on movable()[which] lies at `address`, on every micro-batch.
  virtual void move(size_t which, uint8_t *address) = 0;

protected:
  std::vector<Movable> movables;
};

/// Work in order. What fails is told by the call itself or, at the latest, by
/// the next `synchronize`; what comes after it is not done any more.
class Queue {
public:
  virtual ~Queue() = default;

  /// Brings bytes of the host into the device's memory. They must not change
  /// before that is done.
  virtual Status copyIn(uint8_t *to, const void *from, size_t bytes) = 0;
  /// Brings bytes of the device's memory to the host.
  virtual Status copyOut(void *to, const uint8_t *from, size_t bytes) = 0;
  /// Brings bytes of another device, of whatever kind, into this one's memory.
  virtual Status copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                          size_t bytes) = 0;
  /// Runs a unit on the frames' copies of a micro-batch. `observer` may be null,
  /// and must live until it is done.
  virtual Status run(Instance &instance, int micro_batch,
                     TaskObserver *observer) = 0;

  /// The point that is reached when all that was given so far is done.
  virtual Event record() = 0;
  /// What is given from now on begins when an event, maybe of another queue,
  /// is there.
  virtual Status wait(const Event &event) = 0;

  /// Blocks until an event of this queue is there. An error if something failed
  /// before it, or past the deadline. From any thread.
  virtual Status synchronize(const Event &event) = 0;
};

class Device {
public:
  virtual ~Device() = default;

  /// Whether the host reads and writes its memory at the addresses below, and
  /// its queue has done what it is given when the call returns. Where it is
  /// not so, addresses mean nothing to the host.
  virtual bool isHost() const = 0;

  //===--- Memory ---------------------------------------------------------===//

  /// The place of a slot on a micro-batch, whether it may move or not. A
  /// weight's may not be aligned to its element.
  virtual uint8_t *slot(int index, int micro_batch) const = 0;
  /// Memory beside what the plan has, zeroed, for as long as the device lives.
  /// `what` is for the message when there is not as much.
  virtual Expected<uint8_t *> allocate(size_t bytes, const char *what) = 0;
  /// Copies at once, past the queue: bytes that nothing else uses meanwhile
  /// (weights, state of a run). From any thread.
  virtual Status upload(uint8_t *to, const void *from, size_t bytes) = 0;
  virtual Status download(void *to, const uint8_t *from, size_t bytes) = 0;
  /// Begin of the arena, which has Program.arena_bytes of the plan.
  virtual uint8_t *arena() const = 0;
  /// What is held of what is planned; nothing of `arena_touched`.
  virtual DeviceMemory memory() const = 0;

  //===--- Load -----------------------------------------------------------===//

  /// Lets instances have these slots of the arena or of frames elsewhere. Only
  /// of the host; call before the first `prepare`.
  virtual Status letMove(const std::vector<int> &slots) = 0;
  /// Prepares a unit, or finds what it prepared before. The pointer lives as
  /// long as the device.
  virtual Expected<Instance *> prepare(int unit) = 0;
  /// Call once, after the last `prepare` and before anything runs.
  virtual Status finish() = 0;

  //===--- A step ---------------------------------------------------------===//

  virtual Queue &queue() = 0;
  /// Before the first work of a step.
  virtual Status beginStep() = 0;
  /// Returns when all work of a step is done, or with what failed. To be called
  /// after every `beginStep`.
  virtual Status endStep() = 0;
  /// Whether the last step met NaN, and has code that may have made a number of
  /// it (SessionOptions.keep_nan).
  virtual bool metNan() const = 0;
  /// Nanoseconds that the last step's units took.
  virtual int64_t busyNs() const = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_DEVICE_H
