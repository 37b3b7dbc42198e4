//===- Links.cpp - What a communicator needs of a plan --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Links.h"

#include "runtime/abi/Actions.h"
#include "runtime/base/Elements.h"
#include "runtime/base/Programs.h"

#include <algorithm>

namespace partita::runtime {

std::vector<ChannelInfo> linksOf(const abi::Plan &plan, const Mesh &mesh) {
  std::vector<ChannelInfo> links;
  for (const abi::Channel &channel : each(plan.channels())) {
    for (int position = 0; position < mesh.size(); ++position)
      links.push_back({mesh.device(channel.source(), position),
                       mesh.device(channel.target(), position),
                       channel.bytes()});
  }
  return links;
}

std::vector<CollectiveInfo> collectivesOf(const abi::Plan &plan,
                                          const Mesh &mesh) {
  std::vector<CollectiveInfo> all;
  for (const abi::Collective &collective : each(plan.collectives())) {
    auto groups = mesh.groups(collective.program(), {collective.axes()->begin(),
                                                     collective.axes()->end()});
    // Of a broadcast, the first device's tensor is what all get.
    if (collective.kind() == CollectiveKind::broadcast)
      for (std::vector<int> &group : groups)
        std::rotate(group.begin(), group.begin() + collective.root(),
                    group.end());
    all.push_back({collective.kind(), collective.reduction(),
                   collective.dtype(), collective.rows(), collective.part(),
                   std::move(groups)});
  }
  return all;
}

nccl::Traffic trafficOf(const abi::Plan &plan, const Mesh &mesh) {
  nccl::Traffic traffic;
  traffic.channels = linksOf(plan, mesh);
  traffic.collectives = collectivesOf(plan, mesh);
  traffic.micro_batches = plan.micro_batches();
  for (int device = 0; device < length(plan.devices()); ++device) {
    const abi::Program &program = programOf(plan, device);
    std::vector<nccl::Message> &messages = traffic.messages.emplace_back();
    for (int64_t i = 0; i < length(program.actions()); ++i) {
      const abi::ProgramAction action = actionOf(program, i);
      if (action.kind == abi::ActionKind::send ||
          action.kind == abi::ActionKind::recv)
        messages.push_back({linkOf(mesh, action.subject, mesh.position(device)),
                            action.micro_batch,
                            action.kind == abi::ActionKind::send,
                            static_cast<size_t>(i)});
    }
  }
  return traffic;
}

nccl::Gpus gpusOf(const abi::Plan &plan, const std::vector<int> &places) {
  nccl::Gpus gpus;
  int next = 0;
  for (int64_t i = 0; i < length(plan.devices()); ++i) {
    const bool is_gpu = at(plan.devices(), i).kind() == abi::DeviceKind::cuda;
    gpus.push_back(!is_gpu          ? -1
                   : places.empty() ? next
                                    : places[static_cast<size_t>(i)]);
    next += is_gpu;
  }
  return gpus;
}

} // namespace partita::runtime
