//===- Communicator.h - How devices exchange bytes --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A communicator carries out the transfers and collectives of a plan. There are
// three implementations. `local` is for threads of one process: the receiver
// reads or copies the sender's slot itself. `mpi` is for devices of different
// processes; where a process has several devices, it joins both. `nccl` is for
// GPUs, and leaves to one of these what is not for it. Every blocking call has
// a deadline. The calls of one device come from one thread.
//
// The constructor makes all buffers and bookkeeping from the plan's channels
// and collectives. None of the calls below allocates, except to build an error.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_COMMUNICATOR_H
#define PARTITA_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/base/Status.h"
#include "runtime/comm/Collective.h"
#include "runtime/device/Device.h"

#include <cstdint>
#include <memory>

namespace partita::runtime {

/// A channel of the plan as a communicator needs it.
struct ChannelInfo {
  int source = 0; ///< device
  int target = 0; ///< device
  int64_t bytes = 0;
};

/// Where a device has the bytes of an end of a channel, or of its part of a
/// collective.
struct EndMemory {
  Device *device = nullptr; ///< null: the host
  int copies = 1;    ///< of a message: micro-batch m is in copy m % copies
  int64_t bytes = 0; ///< of a message, or of a collective's source
  int64_t target_bytes = 0; ///< of a collective

  bool isHost() const { return !device || device->isHost(); }
};

/// The end of a channel at which messages are sent. The sending device's thread
/// calls it.
class Sender {
public:
  virtual ~Sender() = default;

  /// Posts `bytes` bytes at `data` (null with 0 bytes: a token), in the memory
  /// that the end was made for, for the receiver of the micro-batch. Bytes of a
  /// device are those that are there when its queue has come so far. Does not
  /// block. The bytes must stay unchanged until `wait` for the micro-batch.
  virtual Status send(int micro_batch, const uint8_t *data, int64_t bytes) = 0;

  /// Blocks until the receiver has taken the bytes, or released them. What its
  /// queue still does with them, the queue of the sending device waits for.
  virtual Status wait(int micro_batch) = 0;
};

/// The end of a channel at which messages arrive. The receiving device's thread
/// calls it.
class Receiver {
public:
  virtual ~Receiver() = default;

  /// Blocks until the matching `send`, and brings its bytes to `data`, in the
  /// memory that the end was made for: at once, or in the order of the device's
  /// queue. Fails past the deadline, or when another device failed (`abort`).
  /// The caller adds to the error which operation waited for which device.
  virtual Status receive(int micro_batch, uint8_t *data, int64_t bytes) = 0;

  /// Like receive, but does not copy the bytes if the receiver can read them in
  /// the sender's memory. Then it returns their address, which is valid until
  /// `release` of the micro-batch. Otherwise it returns `data`. Both devices
  /// are CPUs.
  virtual Expected<const uint8_t *> borrow(int micro_batch, uint8_t *data,
                                           int64_t bytes) {
    PARTITA_TRY(receive(micro_batch, data, bytes));
    return data;
  }

  /// Gives back what `borrow` returned. Must be called once for each of them.
  /// Does not block.
  virtual void release(int /*micro_batch*/) {}
};

/// A device's part of a collective. The device's thread calls it.
class Participant {
public:
  virtual ~Participant() = default;

  /// Posts this device's part. Does not block. The source must stay unchanged,
  /// and the target must not be read or written, until `finish`. A device
  /// starts a collective again only when it has finished it; it may start
  /// others in between. All devices of a group start their collectives in the
  /// same order, micro-batch by micro-batch, and finish them in the same order.
  virtual Status start(int micro_batch, const uint8_t *source,
                       uint8_t *target) = 0;

  /// Blocks until the target is complete and no device reads this device's
  /// source any more, or lets the device's queue wait for that. The devices
  /// compute the result in this call, so it ends only after all devices of the
  /// group have called it. An error names the devices that have not.
  virtual Status finish(int micro_batch) = 0;
};

/// Joins devices. A session asks it for the ends of its devices when it is
/// loaded; which way bytes take is decided then.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// Tells that a device of this process is there, and that it goes. `detach`
  /// is false if something may still use the device's memory: then the memory
  /// may not be given back. `device` is its index in the plan.
  virtual void attach(int /*device*/, Device &) {}
  virtual bool detach(int /*device*/) { return true; }

  /// The ends of a channel, and a device's part of a collective (indices into
  /// those that the communicator was made with). `device` is its index in the
  /// plan, and the memory's device is attached. The communicator must outlive
  /// them.
  virtual std::unique_ptr<Sender> sender(int channel,
                                         const EndMemory &memory) = 0;
  virtual std::unique_ptr<Receiver> receiver(int channel,
                                             const EndMemory &memory) = 0;
  virtual std::unique_ptr<Participant> participant(int collective, int device,
                                                   const EndMemory &memory) = 0;

  /// Makes connections. Call it before the first step, when the devices of all
  /// processes are attached, in every process. Later calls do nothing.
  virtual Status connect() { return Status(); }

  /// Wakes every waiting device of this process with an error, and makes their
  /// later calls fail. Safe from any thread.
  virtual void abort() = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_COMMUNICATOR_H
