//===- DeviceMesh.cpp - All devices by their coordinates ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/DeviceMesh.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace partita {

DeviceMesh::DeviceMesh(Operation *function, int64_t places) {
  SmallVector<Attribute> others;
  bool hasStages = false;
  auto all = function->getAttrOfType<ArrayAttr>(dist::kAxesAttr);
  if (all)
    for (auto axis : llvm::reverse(all.getAsRange<dist::AxisAttr>())) {
      if (axis.getName() == dist::kStageAxis) {
        stageStride = size;
        size *= places;
        hasStages = true;
        continue;
      }
      others.push_back(axis);
      sizes.push_back(axis.getSize());
      strides.push_back(size);
      size *= axis.getSize();
    }
  if (!hasStages) {
    stageStride = size;
    size *= places;
  }
  std::reverse(others.begin(), others.end());
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  if (!others.empty())
    axes = ArrayAttr::get(function->getContext(), others);
}

SmallVector<int64_t> DeviceMesh::getDevices(int64_t place) const {
  SmallVector<int64_t> devices = {place * stageStride};
  for (auto [count, stride] : llvm::zip(sizes, strides)) {
    SmallVector<int64_t> more;
    for (int64_t device : devices)
      for (int64_t i = 0; i < count; ++i)
        more.push_back(device + i * stride);
    devices = std::move(more);
  }
  return devices;
}

} // namespace partita
