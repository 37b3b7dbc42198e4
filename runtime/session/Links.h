//===- Links.h - What a communicator needs of a plan ------------*- C++ -*-===//
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

/// Number, for a communicator, of a channel of the plan between the devices of
/// a position: each position of the mesh has its own.
inline int linkOf(const Mesh &mesh, int channel, int position) {
  return channel * mesh.size() + position;
}

/// By these numbers.
std::vector<ChannelInfo> linksOf(const abi::Plan &plan, const Mesh &mesh);

/// Those of Plan.collectives, by their index.
std::vector<CollectiveInfo> collectivesOf(const abi::Plan &plan,
                                          const Mesh &mesh);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_SESSION_LINKS_H
