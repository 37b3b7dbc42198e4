//===- Mesh.cpp - Which devices execute which program ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Mesh.h"

#include "runtime/abi/Collectives.h"
#include "runtime/base/Elements.h"

#include <algorithm>
#include <string_view>

namespace partita::runtime {
namespace {

/// Index of the axis "data" of Plan.axes; -1: there is none.
int dataAxis(const abi::Plan &plan) {
  for (int64_t i = 0; i < length(plan.axes()); ++i)
    if (std::string_view(text(at(plan.axes(), i).name())) == "data")
      return static_cast<int>(i);
  return -1;
}

} // namespace

Mesh::Mesh(const abi::Plan &plan) : data(dataAxis(plan)) {
  for (const abi::Axis &axis : each(plan.axes()))
    sizes.push_back(axis.size());
  strides.resize(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; count *= sizes[i])
    strides[i] = count;
  if (data >= 0)
    replica_count = sizes[static_cast<size_t>(data)];
  devices.assign(static_cast<size_t>(length(plan.programs())) * count, -1);
  for (int64_t i = 0; i < length(plan.devices()); ++i) {
    const abi::Device &device = at(plan.devices(), i);
    int position = 0;
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      position +=
          device.coordinate()->Get(static_cast<unsigned>(axis)) * strides[axis];
    positions.push_back(position);
    devices[static_cast<size_t>(device.program()) * count + position] =
        static_cast<int>(i);
  }
}

int Mesh::replica(int device) const {
  return data < 0 ? 0 : coordinate(position(device), static_cast<size_t>(data));
}

bool Mesh::stores(int device) const {
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (static_cast<int>(axis) != data && coordinate(position(device), axis))
      return false;
  return true;
}

std::vector<std::vector<int>> Mesh::groups(int program,
                                           const std::vector<int> &axes) const {
  int members = 1;
  for (int axis : axes)
    members *= sizes[static_cast<size_t>(axis)];
  std::vector<std::vector<int>> found;
  std::vector<int> groupAt(static_cast<size_t>(count), -1); // by first position
  for (int p = 0; p < count; ++p) {
    int first = p, place = 0;
    for (int axis : axes) {
      const auto a = static_cast<size_t>(axis);
      first -= coordinate(p, a) * strides[a];
      place = place * sizes[a] + coordinate(p, a);
    }
    int &group = groupAt[static_cast<size_t>(first)];
    if (group < 0) {
      group = static_cast<int>(found.size());
      found.emplace_back(static_cast<size_t>(members), -1);
    }
    found[static_cast<size_t>(group)][static_cast<size_t>(place)] =
        device(program, p);
  }
  return found;
}

int groupSize(const abi::Plan &plan, const flatbuffers::Vector<int> &axes) {
  int size = 1;
  for (int axis : axes)
    size *= at(plan.axes(), axis).size();
  return size;
}

int placeInGroup(const abi::Plan &plan, int device,
                 const flatbuffers::Vector<int> &axes) {
  const abi::Device &found = at(plan.devices(), device);
  int place = 0;
  for (int axis : axes)
    place = place * at(plan.axes(), axis).size() +
            found.coordinate()->Get(static_cast<unsigned>(axis));
  return place;
}

int64_t sentBytes(const abi::Plan &plan, const abi::Collective &collective) {
  return abi::sentBytes(collective.kind(),
                        collective.rows() * collective.part() *
                            elementBytes(collective.dtype()),
                        groupSize(plan, *collective.axes()));
}

int stepMicroBatches(const abi::Plan &plan) {
  const int axis = dataAxis(plan);
  return plan.micro_batches() * (axis < 0 ? 1 : at(plan.axes(), axis).size());
}

} // namespace partita::runtime
