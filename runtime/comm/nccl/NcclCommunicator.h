//===- NcclCommunicator.h - Messages and collectives of GPUs ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What GPUs do together, NCCL does, in the order of their queues (Routes.h says
// what that is). Everything else another communicator does, between threads or
// processes.
//
// NCCL adds in an order of its own, which depends on the number of GPUs, on
// how they are connected and on the size. All devices of a group get the same
// bits, and the same machines give them again; other communicators give others.
//
// Every wait has a deadline. When a device fails or is late, the communicators
// of all devices of this process are aborted. So nothing stays in their
// streams, and devices of other processes fail, too.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_NCCL_NCCLCOMMUNICATOR_H
#define PARTITA_RUNTIME_COMM_NCCL_NCCLCOMMUNICATOR_H

#include "runtime/comm/nccl/Endpoint.h"
#include "runtime/comm/nccl/Handshake.h"

#include <memory>

namespace partita::runtime::nccl {

/// A communicator, and what the user should know of it.
struct Made {
  std::shared_ptr<Communicator> communicator;
  /// Why GPUs go through the host although NCCL could serve them, or that
  /// drivers differ; empty: nothing.
  std::string remark;
};

/// Puts NCCL in front of a communicator, or returns that one if there is
/// nothing that NCCL could do. All processes must call it. `gpus` is right for
/// the devices of this process. Fails if the processes do not fit together
/// (Handshake.h). Without NCCL there is a remark.
Expected<Made> withNccl(std::shared_ptr<Communicator> base,
                        const Traffic &traffic, const Gpus &gpus,
                        const Processes &processes, double timeout_s,
                        const Library &library);

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_NCCLCOMMUNICATOR_H
