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

namespace partita::runtime {

/// A channel of the plan as a communicator needs it.
struct ChannelInfo {
  int source = 0; ///< device
  int target = 0; ///< device
  int64_t bytes = 0;
};

/// A message, where the sender has it.
struct Parcel {
  const uint8_t *data = nullptr;
  int64_t bytes = 0;
  Device *device = nullptr; ///< the owner of the memory; null: the host
  Event ready;              ///< when the bytes are there
};

class Communicator {
public:
  virtual ~Communicator() = default;

  //===--- Load -----------------------------------------------------------===//

  /// Tells that a device of this process is there, and that it goes. `detach`
  /// is false if something may still use the device's memory: then the memory
  /// may not be given back. `device` is its index in the plan.
  virtual void attach(int /*device*/, Device &) {}
  virtual bool detach(int /*device*/) { return true; }
  /// Makes connections. Call it before the first step, when the devices of all
  /// processes are attached, in every process. Later calls do nothing.
  virtual Status connect() { return Status(); }

  /// Whether a channel, or a device's part of a collective, is carried in the
  /// order of the devices' queues. Its calls below then take addresses of the
  /// devices, and only enqueue: what they wait for, the queue waits for, and
  /// what fails later, the queue tells.
  virtual bool usesQueues(int /*channel*/) const { return false; }
  virtual bool usesQueue(int /*collective*/, int /*device*/) const {
    return false;
  }

  //===--- A step ---------------------------------------------------------===//

  /// Posts `bytes` bytes at `data` (null with 0 bytes: a token) for the
  /// receiver of (channel, micro_batch). Does not block. The bytes must stay
  /// unchanged until waitSent of the same key returns.
  virtual Status send(int channel, int micro_batch, const void *data,
                      int64_t bytes) = 0;

  /// Blocks until the matching send was posted, and copies its bytes to `data`.
  /// Fails past the deadline, or when another device failed (`abort`). The
  /// caller adds to the error which operation waited for which device.
  virtual Status recv(int channel, int micro_batch, void *data,
                      int64_t bytes) = 0;

  /// Like recv, but does not copy the bytes if the receiver can read them in
  /// the sender's memory. Then it returns their address, which is valid until
  /// `release` of the same key. Otherwise it returns `data`.
  virtual Expected<const uint8_t *> borrow(int channel, int micro_batch,
                                           uint8_t *data, int64_t bytes) {
    if (Status status = recv(channel, micro_batch, data, bytes); !status.ok())
      return status;
    return data;
  }

  /// Whether the devices at both ends of a channel are in this process. Then
  /// one device may fetch bytes from the memory of the other, with `post` and
  /// `take`.
  virtual bool carriesDevices(int /*channel*/) const { return false; }

  /// Like send, but the bytes may be in a device's memory, and are there when
  /// the parcel's event has happened.
  virtual Status post(int channel, int micro_batch, const Parcel &parcel) {
    return send(channel, micro_batch, parcel.data, parcel.bytes);
  }

  /// Blocks until the matching `post` or `send`, and returns where its bytes
  /// are. They are valid until `release` of the same key.
  virtual Expected<Parcel> take(int, int, int64_t) {
    return Status::error("this communicator has no messages of devices");
  }

  /// Gives back the bytes that `borrow` or `take` returned. Must be called once
  /// for each of them. Does not block.
  virtual void release(int, int) {}

  /// Like release, when `read` has happened: the queue of the receiver still
  /// copies the bytes. Does not block where the sender's queue can wait for it.
  virtual Status releaseAfter(int channel, int micro_batch, const Event &read) {
    if (read.queue)
      if (Status status = read.queue->synchronize(read); !status.ok())
        return status;
    release(channel, micro_batch);
    return Status();
  }

  /// Blocks until the receiver has taken (or released) the bytes of the send
  /// with that key.
  virtual Status waitSent(int channel, int micro_batch) = 0;

  /// Like waitSent, but what the receiver's queue still does with the bytes,
  /// `queue` waits for: the sender's.
  virtual Status waitSentOn(int channel, int micro_batch, Queue & /*queue*/) {
    return waitSent(channel, micro_batch);
  }

  /// Posts `device`'s part of a collective (an index into those that the
  /// communicator was made with). Does not block. The source must stay
  /// unchanged, and the target must not be read or written, until `finish` of
  /// the same collective. A device starts a collective again only when it has
  /// finished it; it may start others in between. All devices of a group start
  /// their collectives in the same order, micro-batch by micro-batch, and
  /// finish them in the same order.
  virtual Status start(int /*collective*/, int /*device*/, int /*micro_batch*/,
                       const void * /*source*/, void * /*target*/) {
    return Status::error("this communicator has no collectives");
  }

  /// Blocks until the target is complete and no device reads this device's
  /// source any more. The devices compute the result in this call, so it ends
  /// only after all devices of the group have called it. An error names the
  /// devices that have not.
  virtual Status finish(int /*collective*/, int /*device*/,
                        int /*micro_batch*/) {
    return Status::error("this communicator has no collectives");
  }

  /// Wakes every waiting device of this process with an error, and makes their
  /// later calls fail. Safe from any thread.
  virtual void abort() = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_COMMUNICATOR_H
