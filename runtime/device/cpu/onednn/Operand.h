//===- Operand.h - A strided operand of a library call ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_OPERAND_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_OPERAND_H

#include "runtime/abi/plan_generated.h"
#include "runtime/base/Elements.h"

#include <cstdint>
#include <vector>

namespace partita::runtime {

/// A view with its address. A stride of 0 on an axis longer than 1 broadcasts.
struct Operand {
  float *data = nullptr; ///< or elements of another type
  abi::DType type = abi::DType::f32;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides; ///< elements
  bool constant = false;        ///< the same bytes in every step
  bool mapped = false;          ///< lies in a mapped weight file

  /// Moves the begin by this many elements.
  void advance(int64_t elements) {
    data = reinterpret_cast<float *>(reinterpret_cast<uint8_t *>(data) +
                                     elements * elementBytes(type));
  }
  int rank() const { return static_cast<int>(dims.size()); }
  /// Gives axes of extent 1 the extents of `shape`, with stride 0.
  void broadcastTo(const std::vector<int64_t> &shape) {
    for (int i = 0; i < rank(); ++i)
      if (dims[i] == 1 && shape[i] != 1) {
        dims[i] = shape[i];
        strides[i] = 0;
      }
  }
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_OPERAND_H
