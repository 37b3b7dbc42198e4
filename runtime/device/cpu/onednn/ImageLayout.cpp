//===- ImageLayout.cpp - Layouts of images, as the library knows them -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ImageLayout.h"

namespace partita::runtime {

std::vector<int64_t> denseStrides(const std::vector<int64_t> &dims,
                                  bool channels_last) {
  int rank = static_cast<int>(dims.size());
  std::vector<int64_t> strides(rank);
  int64_t stride = 1;
  auto place = [&](int axis) {
    strides[axis] = stride;
    stride *= dims[axis];
  };
  if (channels_last)
    place(1);
  for (int axis = rank - 1; axis >= 2; --axis)
    place(axis);
  if (!channels_last)
    place(1);
  place(0);
  return strides;
}

bool liesDensely(const Operand &operand, bool channels_last) {
  std::vector<int64_t> dense = denseStrides(operand.dims, channels_last);
  for (int axis = 0; axis < operand.rank(); ++axis)
    if (operand.dims[axis] != 1 && operand.strides[axis] != dense[axis])
      return false;
  return true;
}

dnnl_memory_desc_t imageDesc(const Operand &operand, bool channels_last) {
  Operand described = operand;
  for (int axis = 0; axis < operand.rank(); ++axis)
    if (operand.strides[axis] == 0)
      described.dims[axis] = 1;
  if (liesDensely(described, channels_last))
    return stridedDesc(described.dims,
                       denseStrides(described.dims, channels_last),
                       operand.type);
  return broadcastDesc(operand);
}

} // namespace partita::runtime
