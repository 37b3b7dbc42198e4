//===- CollectiveCases.h - Collectives and their results --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every process or thread of a test makes the sources of all devices itself,
// from the case and the round. It computes with plain loops the result that a
// device must have at the end.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_COMM_COLLECTIVECASES_H
#define PARTITA_TEST_UNIT_COMM_COLLECTIVECASES_H

#include "runtime/comm/Collective.h"
#include "runtime/comm/Communicator.h"

#include <string>

namespace partita::test {

using Bytes = std::vector<uint8_t>;

struct CollectiveCase {
  runtime::CollectiveInfo info;
  bool in_place = false; ///< the target is the source
};

/// All kinds, element types and reductions, with one group of all devices.
/// There are sizes of no elements and of one, sizes just beyond a vector, a
/// cache line and a block, and one that is too large to be copied into seats.
std::vector<CollectiveCase> allCases(int devices);
std::vector<runtime::CollectiveInfo>
infosOf(const std::vector<CollectiveCase> &cases);

/// "all_reduce sum of float32[3, 13] in place"
std::string nameOf(const CollectiveCase &of);

/// The sources of the devices of a group in a round, in their order. They have
/// numbers of all magnitudes. Floats include NaN. A boolean is 0 or 1.
std::vector<Bytes> sourcesOf(const CollectiveCase &of, int group, int round);
/// The target that device `rank` of a group must have afterwards.
Bytes expectedOf(const CollectiveCase &of, const std::vector<Bytes> &sources,
                 int rank);

/// Whether the bits are equal. Any NaN equals any other.
bool agree(abi::DType dtype, const Bytes &a, const Bytes &b);

/// The buffers of a device in one collective.
class Buffers {
public:
  Buffers(const CollectiveCase &of, const std::vector<Bytes> &sources,
          int rank);
  const void *source() const { return bytes.data(); }
  void *target() { return in_place ? bytes.data() : result.data(); }
  const Bytes &results() const { return in_place ? bytes : result; }
  /// Whether the source still has its bytes; true if the target is the source.
  bool sourceIsUnchanged() const { return in_place || bytes == before; }

private:
  bool in_place;
  Bytes bytes, before, result;
};

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_COMM_COLLECTIVECASES_H
