//===- Clique.h - Where the calls of ranks meet -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are devices of one process or of several on this machine. What they
// tell each other are files of a folder in shared memory: a rank writes a file,
// which then does not change, and the others look for it. A process that is
// killed leaves no lock behind.
//
// A call is an operation in a stream. It arrives when the stream gets to it:
// its rank then writes what it sends. When those that belong together have all
// arrived, each computes what it receives.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_NCCL_CLIQUE_H
#define PARTITA_TEST_GPUEMULATOR_NCCL_CLIQUE_H

#include "nccl/Nccl.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
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

/// As it lies in a file, before what is sent.
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

/// A call, and what its rank sends.
struct Posted {
  Call call;
  std::vector<uint8_t> bytes;
};

/// A name for a new clique, which processes tell each other.
std::string newClique();

/// The ranks of a communicator. Each rank has an object of its own.
class Clique : public std::enable_shared_from_this<Clique> {
public:
  Clique(std::string where, int size);
  const int size;
  const std::filesystem::path where;

  bool has(const std::string &name) const;
  /// Whether there is a file of each rank, whose number is the end of its name;
  /// to be asked again if not.
  bool haveAll(const std::string &name) const;
  void put(const std::string &name, const void *data, size_t bytes) const;
  std::string get(const std::string &name) const;
  bool isAborted() const;
  /// Also what this rank has in streams ends, when all have left.
  void abort() {
    wasAborted = true;
    put("aborted", "", 0);
  }
  bool wasAbortedHere() const { return wasAborted; }
  /// Whether a kernel of this rank waits for other ranks.
  bool isBusy() const { return waiting > 0 && !wasAborted; }
  /// The last rank removes the folder.
  void leave(int rank) const;

  /// How far a call's arrival has come; of its rank.
  struct Arrival {
    bool isPosted = false;
    std::shared_ptr<void> wait; ///< from then until the call is done
    size_t seen = 0;            ///< parties, in their order
    std::chrono::steady_clock::time_point next;
  };
  /// Notes that a call has arrived, and tells whether it can run. `wrong`: why
  /// it cannot.
  bool arrive(const Call &call, Arrival &arrival, std::string &wrong);
  /// Receives. Returns what is wrong, or nothing.
  std::string run(const Call &call);

private:
  /// Calls between two ranks meet apart from those of all; a call that a graph
  /// repeats meets its peers' repetition.
  std::string nameOf(const Call &call) const;
  int placeOf(const Call &call) const;
  std::vector<int> partiesOf(const Call &call) const;

  /// Whether `what` may be looked for again.
  bool mayLook(const std::string &what) const;
  bool areThere(const std::string &name) const;

  std::atomic<int> waiting = 0;               ///< calls that have arrived
  std::atomic<bool> wasAborted = false;       ///< by this rank
  mutable std::atomic<bool> sawAbort = false; ///< by another one
  /// When to look for that again.
  mutable std::atomic<std::chrono::steady_clock::rep> nextAbortLook = 0;
  mutable std::mutex mutex;
  /// When it was last looked for what is not there yet.
  mutable std::map<std::string, std::chrono::steady_clock::time_point> looks;
};

} // namespace gpuemu::nccl

#endif // PARTITA_TEST_GPUEMULATOR_NCCL_CLIQUE_H
