//===- Links.h - A plan's channels and collectives --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_SESSION_LINKS_H
#define PARTITA_RUNTIME_SESSION_LINKS_H

#include "runtime/base/Mesh.h"
#include "runtime/comm/Collective.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/nccl/NcclCommunicator.h"

#include <vector>

namespace partita::runtime {

/// The number by which a communicator knows a channel of the plan between the
/// devices of a position. Each position of the mesh has its own number.
inline int linkOf(const Mesh &mesh, int channel, int position) {
  return channel * mesh.size() + position;
}

/// The communicator's channels, by these numbers.
std::vector<ChannelInfo> linksOf(const abi::Plan &plan, const Mesh &mesh);

/// The communicator's collectives, by their index in Plan.collectives.
std::vector<CollectiveInfo> collectivesOf(const abi::Plan &plan,
                                          const Mesh &mesh);

/// All that devices do together, with the messages of each in the order of its
/// program.
nccl::Traffic trafficOf(const abi::Plan &plan, const Mesh &mesh);

/// The numbers of GPUs, by device of the plan. `places` is as in
/// SessionOptions; empty: GPUs are counted in the plan's order.
nccl::Gpus gpusOf(const abi::Plan &plan, const std::vector<int> &places);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_LINKS_H
