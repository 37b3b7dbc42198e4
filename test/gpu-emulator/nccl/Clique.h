//===- Clique.h - Where the calls of ranks meet -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call is an operation in a stream. It has arrived when the stream gets to
// it; when those that belong together have all arrived, the first that runs
// does the work of all, and the others find it done.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_NCCL_CLIQUE_H
#define PARTITA_TEST_GPUEMULATOR_NCCL_CLIQUE_H

#include "nccl/Nccl.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gpuemu::nccl {

enum class Kind : uint8_t {
  AllReduce,
  Reduce,
  ReduceScatter,
  AllGather,
  Broadcast,
  Send,
  Receive,
};

struct Call {
  Kind kind = Kind::AllReduce;
  int rank = 0;
  uint64_t from = 0, to = 0;
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t operation = ncclSum;
  /// The root, or the other rank of a send or a receive.
  int peer = 0;
  /// Its number among the calls of the same ranks.
  uint64_t number = 0;
  /// How often a graph has run it before.
  uint64_t round = 0;
};

/// The ranks of a communicator.
class Clique {
public:
  explicit Clique(int size) : size(size) {}
  const int size;
  std::mutex mutex;
  int joined = 0, left = 0;
  bool isAborted = false;
  /// Ranks that ask for a split: color and key of each, by the split's number.
  std::map<uint64_t, std::map<int, std::pair<int, int>>> splits;
  std::map<std::pair<uint64_t, int>, std::shared_ptr<Clique>> parts;

  /// Notes that a call has arrived, and tells whether it can run.
  bool arrive(const Call &call);
  /// Does the work if nobody has. Returns what is wrong, or nothing.
  std::string run(const Call &call);

private:
  struct Meeting {
    std::map<int, Call> calls;
    unsigned finished = 0;
    bool isDone = false;
    std::string wrong;
  };
  /// Calls between two ranks meet apart from those of all; a call that a graph
  /// repeats meets its peers' repetition.
  using Key = std::pair<std::pair<int, int>, std::pair<uint64_t, uint64_t>>;
  Key keyOf(const Call &call) const;
  size_t partiesOf(const Call &call) const;
  std::map<Key, Meeting> meetings;
};

/// The numbers of a meeting's calls, in the ranks' order. Returns what is
/// wrong.
std::string perform(const std::map<int, Call> &calls, int size);

} // namespace gpuemu::nccl

#endif // PARTITA_TEST_GPUEMULATOR_NCCL_CLIQUE_H
