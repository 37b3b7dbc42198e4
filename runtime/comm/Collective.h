//===- Collective.h - Collectives of a group of devices ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_COLLECTIVE_H
#define PARTITA_RUNTIME_COMM_COLLECTIVE_H

#include "runtime/abi/plan_generated.h"

#include <cstdint>
#include <vector>

namespace partita::runtime {

using abi::CollectiveKind;
/// How elements are combined; a mean is a sum and a scale in the graph.
using abi::Reduction;

/// A collective of the plan as a communicator needs it. A tensor is seen as
/// `rows` rows. In each row the devices' parts follow one another. With n
/// devices in a group:
///
///   all_reduce      source[rows, part]      -> target[rows, part]
///                   combined; the target may be the source
///   all_gather      source[rows, part]      -> target[rows, n * part]
///                   part r of each row is device r's
///   reduce_scatter  source[rows, n * part]  -> target[rows, part]
///                   part r of each row, combined, to device r
///   all_to_all      source[rows, n * part]  -> target[n, rows, part]
///                   part r of each row to device r; from device r: target[r]
///   broadcast       source[rows, part]      -> target[rows, part]
///                   the first device's; the target may be the source
///
/// Elements are combined one by one in the order of the group's devices. A power
/// of two of devices is combined in a tree: device r and device r + n / 2, then
/// of those the first half and the second, and so on. So all devices get the
/// same bits with every communicator. f16 and bf16 are combined
/// in f32 and rounded once, at the end. Integers wrap around. Booleans only
/// have a maximum (or) and a minimum (and). If an element is NaN, the result is
/// NaN. -0 is less than 0. Floats of 8 bits and fewer are not combined.
struct CollectiveInfo {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Reduction reduction = Reduction::sum;
  abi::DType dtype = abi::DType::f32;
  int64_t rows = 1, part = 0; ///< in elements
  /// Devices, in the order of their parts; a device is in at most one group.
  std::vector<std::vector<int>> groups;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_COLLECTIVE_H
