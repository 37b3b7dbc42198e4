//===- Routes.h - Which bytes go through NCCL -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL carries
//
//  * collectives of groups of two and more GPUs, in one process or several, if
//    it combines their elements as we do, and
//  * messages between GPUs of different processes. GPUs of one process copy
//    from each other by the driver.
//
// A GPU that several devices of the plan use takes no part: NCCL refuses two
// ranks on it. Everything else goes as without NCCL.
//
// All processes choose the same routes from the same facts.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_NCCL_ROUTES_H
#define PARTITA_RUNTIME_COMM_NCCL_ROUTES_H

#include "runtime/comm/Communicator.h"

#include <cstddef>
#include <string>
#include <vector>

namespace partita::runtime::nccl {

/// Where a device of the plan is.
struct Place {
  bool is_gpu = false;
  int process = 0;
  uint64_t machine = 0; ///< the one that NCCL is told (NCCL_HOSTID); or 0
  std::string gpu;      ///< its UUID
};

inline bool sameGpu(const Place &a, const Place &b) {
  return a.is_gpu && b.is_gpu && a.machine == b.machine && a.gpu == b.gpu;
}

/// A send or a receive in a device's program.
struct Message {
  int channel = 0, micro_batch = 0;
  bool is_send = false;
  size_t step = 0; ///< its place in the program
};

/// What devices do together.
struct Traffic {
  std::vector<ChannelInfo> channels;
  std::vector<CollectiveInfo> collectives;
  int micro_batches = 1;
  std::vector<std::vector<Message>> messages; ///< by device, in their order

  /// Numbers a channel's messages of all micro-batches.
  size_t keyOf(int channel, int micro_batch) const {
    return static_cast<size_t>(channel * micro_batches + micro_batch);
  }
};

/// Messages from one device to another that are sent and received in the same
/// order. They have a communicator and streams of their own. So no message
/// waits for one of another edge, and what the plan's proof says of programs
/// holds for streams.
struct Edge {
  int source = 0, target = 0;
  std::vector<int> channels;
  int split = 0;
};

struct Routes {
  std::vector<int> devices; ///< that take part: by rank
  /// Each is a set of disjoint groups of devices, in the order of their ranks.
  /// A communicator of all is split into communicators of these groups.
  std::vector<std::vector<std::vector<int>>> splits;
  std::vector<int> split_of; ///< by collective; -1: none
  std::vector<Edge> edges;
  std::vector<int> edge_of; ///< by channel; -1: none
  /// By channel and micro-batch: whether the next step of the sender
  /// (receiver) is a message of the same edge and micro-batch. They are one
  /// group of calls.
  std::vector<bool> sends_more, receives_more;

  bool empty() const { return splits.empty(); }
  /// A device's group in a split; null: it is in none.
  const std::vector<int> *group(int split, int device) const;
};

Routes chooseRoutes(const std::vector<Place> &places, const Traffic &traffic);

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_ROUTES_H
