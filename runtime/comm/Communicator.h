//===- Communicator.h - How devices exchange bytes --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transfers and collectives of a plan. Implementations: `local` (threads of
// one process; the receiver reads or copies the sender's slot itself) and `mpi`
// (one device a process). Every blocking call has a deadline.
//
// All buffers and bookkeeping are made in the constructor from the plan's
// channels and collectives: none of the calls below allocates, except to build
// an error.
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
  Device *device = nullptr; ///< whose memory it is; null: the host's
  Event ready;              ///< when it is there
};

class Communicator {
public:
  virtual ~Communicator() = default;

  /// Posts `bytes` bytes at `data` (null with 0 bytes: a token) for the
  /// receiver of (channel, micro_batch). Does not block. The bytes must stay
  /// unchanged until waitSent of the same key returns.
  virtual Status send(int channel, int micro_batch, const void *data,
                      int64_t bytes) = 0;

  /// Blocks until the matching send was posted, and copies its bytes to `data`.
  /// Past the deadline, or when another device failed (`abort`), an error; the
  /// caller adds which operation waited for whom.
  virtual Status recv(int channel, int micro_batch, void *data,
                      int64_t bytes) = 0;

  /// Like recv, but where the receiver can read the sender's bytes itself, it
  /// returns where they are instead of copying them: until `release` of the
  /// same key. Otherwise it returns `data`.
  virtual Expected<const uint8_t *> borrow(int channel, int micro_batch,
                                           uint8_t *data, int64_t bytes) {
    if (Status status = recv(channel, micro_batch, data, bytes); !status.ok())
      return status;
    return data;
  }

  /// Whether the devices at both ends of its channels are in this process, so
  /// that one may fetch bytes out of the memory of another: `post` and `take`.
  virtual bool carriesDevices() const { return false; }

  /// Like send, of bytes that may lie in a device's memory and will be there
  /// when an event is.
  virtual Status post(int channel, int micro_batch, const Parcel &parcel) {
    return send(channel, micro_batch, parcel.data, parcel.bytes);
  }

  /// Blocks until the matching `post` or `send`, and says where its bytes are:
  /// until `release` of the same key.
  virtual Expected<Parcel> take(int, int, int64_t) {
    return Status::error("this communicator has no messages of devices");
  }

  /// Gives back what `borrow` or `take` returned; once for each. Does not
  /// block.
  virtual void release(int, int) {}

  /// Blocks until the receiver has taken (or released) the bytes of the send
  /// with that key.
  virtual Status waitSent(int channel, int micro_batch) = 0;

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

  /// Blocks until the target is complete and nobody reads this device's source
  /// any more. Devices work here, so what is started is not done before all
  /// devices of the group are here. An error names the devices that have not
  /// come.
  virtual Status finish(int /*collective*/, int /*device*/,
                        int /*micro_batch*/) {
    return Status::error("this communicator has no collectives");
  }

  /// Wakes every waiting device with an error. Safe from any thread (local) or
  /// from the process's own thread (mpi).
  virtual void abort() = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_COMMUNICATOR_H
