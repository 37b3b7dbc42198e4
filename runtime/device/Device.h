//===- Device.h - The interface of a device ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device has memory, units that are prepared at load, and a queue that works
// in order. The session enqueues work and goes on. Events tell it when work is
// done:
//
//   queue.copyIn(device.slot(in, m), sample, bytes);
//   queue.run(*instance, m, nullptr);
//   queue.copyOut(result, device.slot(out, m), bytes);
//   Status status = queue.synchronize(queue.record());
//
// A device with a queue may be given a step while those before it are at work:
//
//   device.beginStep();            // copyIn, run, copyOut as above
//   Event first = device.closeStep();
//   device.beginStep();            // the next step
//   Event second = device.closeStep();
//   Status status = device.awaitStep(first);
//
// A kind of device is a folder of `runtime/device` and a line of
// `all/Registry.cpp`. The thread that made the device must make all calls,
// except `upload`, `download`, `awaitStep` and waiting for an event.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_DEVICE_H
#define PARTITA_RUNTIME_DEVICE_DEVICE_H

#include "runtime/abi/plan_generated.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace partita::runtime {

class Device;
class Queue;

/// Memory a device holds, in bytes.
struct DeviceMemory {
  int64_t planned = 0; ///< the sum of the planned sizes of what follows
  int64_t arena = 0;   ///< planned and allocated
  /// Measured: bytes up to the highest that a step wrote (see SessionOptions).
  int64_t arena_touched = 0;
  int64_t parameters = 0; ///< weights and constants in their plain layout
  int64_t packed = 0;     ///< weights in the library's own layout
  int64_t workspace = 0;  ///< the library's scratch
  /// Beside the plan: bytes on their way between a GPU and the host.
  int64_t staging = 0;

  /// The part of `planned` that a run uses.
  int64_t used() const {
    return (arena_touched ? arena_touched : arena) + parameters + packed +
           workspace;
  }
};

/// The mapped address of each of Plan.weights. It may not be aligned to the
/// element.
using WeightPointers = std::vector<const uint8_t *>;

/// A point in the work of a queue. The event happens when all work that was
/// enqueued before it is done.
struct Event {
  Queue *queue = nullptr; ///< null: there is nothing to wait for
  uint64_t number = 0;    ///< counted by the queue
};

/// Observes when the tasks of an instance end. The thread that runs them calls
/// it in their order. Data that it writes may be read after the end of the
/// step.
class TaskObserver {
public:
  /// `timed`: whether it needs the times. They cost two reads of the clock per
  /// task.
  explicit TaskObserver(bool timed) : timed(timed) {}
  virtual ~TaskObserver() = default;
  /// Times are nanoseconds of CLOCK_MONOTONIC, or 0 if not `timed`.
  virtual void finished(size_t task, int64_t begin_ns, int64_t end_ns) = 0;

  const bool timed;
};

/// A unit that is prepared to run on any micro-batch. It has a task for each
/// instruction.
class Instance {
public:
  /// A slot whose address may change (Device::letMove), and the last task that
  /// uses it.
  struct Movable {
    int slot = -1;
    size_t last_task = 0;
  };
  virtual ~Instance() = default;

  const std::vector<Movable> &movable() const { return movables; }
  /// Moves movable()[which] to `address`, for every micro-batch.
  virtual void move(size_t which, uint8_t *address) = 0;

protected:
  std::vector<Movable> movables;
};

/// A queue does its work in order. The failing call itself, or at the latest
/// the next `synchronize`, returns the error. Work after a failure is not done.
class Queue {
public:
  virtual ~Queue() = default;

  /// Copies bytes of the host into the device's memory. They are there when it
  /// is called, or `copyOut` of this queue brings them. They must not change
  /// before the copy is done.
  virtual Status copyIn(uint8_t *to, const void *from, size_t bytes) = 0;
  /// Copies bytes of the device's memory to the host.
  virtual Status copyOut(void *to, const uint8_t *from, size_t bytes) = 0;
  /// The same, for bytes that no `copyIn` of this queue will read.
  virtual Status tell(void *to, const uint8_t *from, size_t bytes) {
    return copyOut(to, from, bytes);
  }
  /// Copies bytes of another device, of any kind, into this device's memory.
  virtual Status copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                          size_t bytes) = 0;
  /// Runs a unit on a micro-batch's copies of the frames. `observer` may be
  /// null, and must live until the unit is done.
  virtual Status run(Instance &instance, int micro_batch,
                     TaskObserver *observer) = 0;

  /// An event that happens when all work that is enqueued so far is done.
  virtual Event record() = 0;
  /// Makes work that is enqueued from now on, and uses the device's memory,
  /// begin after an event, which may be of another queue.
  virtual Status wait(const Event &event) = 0;

  /// Blocks until an event of this queue has happened. Fails if something
  /// failed before it, or past the deadline. May be called from any thread.
  virtual Status synchronize(const Event &event) = 0;
};

class Device {
public:
  virtual ~Device() = default;

  /// Whether the host can use the addresses below, and work is done when the
  /// call that enqueues it returns. Otherwise the addresses mean nothing to the
  /// host.
  virtual bool isHost() const = 0;

  //===--- Memory ---------------------------------------------------------===//

  /// The device's own address of a slot for a micro-batch, even if the slot may
  /// move. A weight may not be aligned to its element.
  virtual uint8_t *slot(int index, int micro_batch) const = 0;
  /// Allocates zeroed memory in addition to that of the plan. It lives as long
  /// as the device. The error message for too little memory names `what`.
  virtual Expected<uint8_t *> allocate(size_t bytes, const char *what) = 0;
  /// Copy immediately, without the queue. Nothing else may use the bytes
  /// meanwhile (weights, state of a run). May be called from any thread.
  virtual Status upload(uint8_t *to, const void *from, size_t bytes) = 0;
  virtual Status download(void *to, const uint8_t *from, size_t bytes) = 0;
  /// The begin of the arena, which has Program.arena_bytes bytes.
  virtual uint8_t *arena() const = 0;
  /// The memory that the device holds, without `arena_touched`.
  virtual DeviceMemory memory() const = 0;

  //===--- Load -----------------------------------------------------------===//

  /// Allows instances to move these slots of the arena or of frames
  /// (Instance::move). Only for devices of the host. Call before the first
  /// `prepare`.
  virtual Status letMove(const std::vector<int> &slots) = 0;
  /// Prepares a unit, or returns the instance that it prepared before. The
  /// pointer lives as long as the device.
  virtual Expected<Instance *> prepare(int unit) = 0;
  /// Call once, after the last `prepare` and before anything runs.
  virtual Status finish() = 0;
  /// What the user should know of how the device was loaded; empty: nothing.
  virtual std::string remark() const { return {}; }

  //===--- A step ---------------------------------------------------------===//

  virtual Queue &queue() = 0;
  /// The most steps that may be begun, and not awaited.
  static constexpr int kMostSteps = 4;

  /// Call before the first work of a step. A device of the host has one step at
  /// a time.
  virtual Status beginStep() = 0;
  /// Call behind the last work of every step that was begun. The event happens
  /// when all of it is done.
  virtual Event closeStep() = 0;
  /// Blocks until a step is done, and returns its error, if any. Call it once
  /// for each step, in their order. Other steps may be begun meanwhile, by
  /// another thread.
  virtual Status awaitStep(const Event &end) = 0;
  Status endStep() { return awaitStep(closeStep()); }
  /// Whether the step that was last awaited met NaN, and the device has code
  /// that may have turned it into a number (SessionOptions.keep_nan).
  virtual bool metNan() const = 0;
  /// Nanoseconds that the units of that step took. Negative: they were not
  /// measured, for no observer asked a device that works behind a queue.
  virtual int64_t busyNs() const = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_DEVICE_H
