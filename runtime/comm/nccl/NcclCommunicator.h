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

#include <memory>
#include <span>

namespace partita::runtime::nccl {

/// The processes of a run.
struct Processes {
  int rank = 0;
  /// By device; empty: all are in this process.
  std::vector<int> process_of = {};
  /// Gives every process what each passes, in the order of their ranks. Null:
  /// there is one process.
  std::function<Expected<std::vector<uint8_t>>(std::span<const uint8_t>)>
      gather_all = nullptr;
  /// An error if somebody ends this process; null: nobody does. It is asked
  /// again and again while the process waits.
  std::function<Status()> interrupted = nullptr;
  /// The processes that do not answer, after a wait that was too long; null:
  /// nobody knows.
  std::function<std::vector<int>()> absent = nullptr;
};

/// By device of the plan: the number of its GPU among those of its process;
/// -1: it is none.
using Gpus = std::vector<int>;

/// A communicator, and what the user should know of it.
struct Made {
  std::shared_ptr<Communicator> communicator;
  /// Why GPUs go through the host although NCCL could serve them; empty: they
  /// do not.
  std::string remark;
};

/// Puts NCCL in front of a communicator, or returns that one if there is
/// nothing that NCCL could do. All processes must call it. `gpus` is right for
/// the devices of this process. Fails if the processes have other versions of
/// NCCL, or one that cannot be used. Without NCCL there is a remark.
Expected<Made> withNccl(std::shared_ptr<Communicator> base,
                        const Traffic &traffic, const Gpus &gpus,
                        const Processes &processes, double timeout_s,
                        const Library &library);

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_NCCLCOMMUNICATOR_H
