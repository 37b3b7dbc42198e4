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

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_LINKS_H
