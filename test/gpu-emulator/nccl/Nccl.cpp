//===- Nccl.cpp - NCCL between the devices of a process ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nccl/Nccl.h"

#include "Emulator.h"
#include "nccl/Clique.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

using namespace gpuemu::nccl;

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  /// How many calls there were: of all ranks, and with each rank.
  uint64_t collectives = 0, splits = 0;
  std::map<int, uint64_t> sent, received;
};

namespace {

std::mutex registry;
std::map<std::string, std::shared_ptr<Clique>> cliques;
thread_local std::string lastError;

ncclResult_t fail(ncclResult_t result, const std::string &what) {
  lastError = what;
  return result;
}

/// The calls of one group for one stream: one operation, since sends and
/// receives of a group go on together.
struct Batch {
  struct Entry {
    std::shared_ptr<Clique> clique;
    Call call;
  };
  std::vector<Entry> entries;
  std::string wrong;
};

struct Group {
  int depth = 0;
  std::vector<std::pair<ncclStream_t, Batch>> batches;
  std::vector<std::shared_ptr<Clique>> joining;
};
thread_local Group group;

ncclResult_t enqueue(ncclStream_t stream, Batch batch) {
  CuEmuOperation operation = {};
  operation.name = "calls of NCCL";
  operation.ready = [](void *data) -> int {
    // All arrive, also behind one that still waits.
    bool ready = true;
    for (Batch::Entry &entry : static_cast<Batch *>(data)->entries)
      ready &= entry.clique->arrive(entry.call);
    return ready;
  };
  operation.run = [](void *data) -> const char * {
    auto &batch = *static_cast<Batch *>(data);
    batch.wrong.clear();
    for (Batch::Entry &entry : batch.entries) {
      std::string wrong = entry.clique->run(entry.call);
      ++entry.call.round;
      if (!wrong.empty())
        batch.wrong = wrong;
    }
    return batch.wrong.empty() ? nullptr : batch.wrong.c_str();
  };
  operation.drop = [](void *data) { delete static_cast<Batch *>(data); };
  auto *kept = new Batch(std::move(batch));
  operation.data = kept;
  return cuEmuEnqueue(stream, &operation)
             ? fail(ncclUnhandledCudaError, cuEmuLastError())
             : ncclSuccess;
}

ncclResult_t add(ncclComm_t comm, ncclStream_t stream, Call call) {
  if (!comm || call.type < 0 || call.type > ncclBfloat16 ||
      call.operation < 0 || call.operation > ncclAvg || call.peer < 0 ||
      call.peer >= comm->clique->size)
    return fail(ncclInvalidArgument, "a communicator, type, operation or rank "
                                     "that does not exist");
  if (cuEmuDevice(stream) != comm->device)
    return fail(ncclInvalidUsage, "the stream belongs to another device than "
                                  "the communicator");
  call.rank = comm->rank;
  call.number = call.kind == Kind::Send      ? comm->sent[call.peer]++
                : call.kind == Kind::Receive ? comm->received[call.peer]++
                                             : comm->collectives++;
  Batch::Entry entry{comm->clique, call};
  if (group.depth == 0) {
    Batch batch;
    batch.entries.push_back(std::move(entry));
    return enqueue(stream, std::move(batch));
  }
  auto found =
      std::find_if(group.batches.begin(), group.batches.end(),
                   [&](const auto &batch) { return batch.first == stream; });
  if (found == group.batches.end()) {
    group.batches.emplace_back(stream, Batch());
    found = std::prev(group.batches.end());
  }
  found->second.entries.push_back(std::move(entry));
  return ncclSuccess;
}

uint64_t address(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

ncclResult_t waitForRanks(const std::shared_ptr<Clique> &clique) {
  using Clock = std::chrono::steady_clock;
  for (auto start = Clock::now();;) {
    {
      std::lock_guard guard(clique->mutex);
      if (clique->joined == clique->size)
        return ncclSuccess;
      if (clique->isAborted)
        return fail(ncclRemoteError, "the communicator was aborted");
    }
    if (Clock::now() - start > std::chrono::seconds(60))
      return fail(ncclRemoteError, "not all ranks joined the communicator");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

ncclResult_t join(ncclComm_t *comm, std::shared_ptr<Clique> clique, int rank,
                  bool isBlocking) {
  auto *result = new ncclComm;
  result->clique = clique;
  result->rank = rank;
  result->device = cuEmuDevice(nullptr);
  *comm = result;
  {
    std::lock_guard guard(clique->mutex);
    ++clique->joined;
  }
  if (!isBlocking)
    return ncclInProgress;
  if (group.depth) {
    group.joining.push_back(clique);
    return ncclSuccess;
  }
  return waitForRanks(clique);
}

/// NCCL says nothing about `blocking` with its least integer.
bool blocks(const ncclConfig_t *config) {
  return !config || config->blocking != 0;
}

} // namespace

ncclResult_t ncclGetVersion(int *version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static uint64_t number = 0;
  std::lock_guard guard(registry);
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "emulated %llu",
           static_cast<unsigned long long>(++number));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  if (!comm || ranks < 1 || rank < 0 || rank >= ranks)
    return fail(ncclInvalidArgument, "no such rank");
  if (cuEmuDevice(nullptr) < 0)
    return fail(ncclUnhandledCudaError, "the thread has no context");
  std::shared_ptr<Clique> clique;
  {
    std::lock_guard guard(registry);
    std::shared_ptr<Clique> &slot = cliques[id.internal];
    if (!slot)
      slot = std::make_shared<Clique>(ranks);
    clique = slot;
  }
  if (clique->size != ranks)
    return fail(ncclInvalidArgument, "the ranks do not agree on their number");
  return join(comm, clique, rank, blocks(config));
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *result, ncclConfig_t *config) {
  if (!comm || !result)
    return ncclInvalidArgument;
  *result = nullptr;
  Clique &clique = *comm->clique;
  uint64_t number = comm->splits++;
  auto complete = [&] {
    std::lock_guard guard(clique.mutex);
    clique.splits[number][comm->rank] = {color, key};
    return clique.splits[number].size() == size_t(clique.size);
  };
  // Every rank asks; what it gets depends on what all asked for.
  for (int i = 0; !complete(); ++i) {
    if (i > 60000)
      return fail(ncclRemoteError, "not all ranks asked for the split");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (color < 0)
    return ncclSuccess;
  std::lock_guard guard(clique.mutex);
  std::vector<std::pair<int, int>> members;
  for (const auto &[rank, wish] : clique.splits[number])
    if (wish.first == color)
      members.emplace_back(wish.second, rank);
  std::sort(members.begin(), members.end());
  int rank = int(std::find(members.begin(), members.end(),
                           std::pair<int, int>(key, comm->rank)) -
                 members.begin());
  std::shared_ptr<Clique> &part = clique.parts[{number, color}];
  if (!part)
    part = std::make_shared<Clique>(int(members.size()));
  ncclResult_t joined = join(result, part, rank, false);
  return joined == ncclInProgress && blocks(config) ? ncclSuccess : joined;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return comm ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm)
    return ncclInvalidArgument;
  {
    std::lock_guard guard(comm->clique->mutex);
    comm->clique->isAborted = true;
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (!comm || !error)
    return ncclInvalidArgument;
  std::lock_guard guard(comm->clique->mutex);
  *error = comm->clique->isAborted                      ? ncclRemoteError
           : comm->clique->joined == comm->clique->size ? ncclSuccess
                                                        : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = comm->clique->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  *device = comm->device;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const words[] = {
      "no error",
      "unhandled cuda error",
      "unhandled system error",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "in progress"};
  return result >= 0 && result <= ncclInProgress ? words[result]
                                                 : "unknown result code";
}
const char *ncclGetLastError(ncclComm_t) { return lastError.c_str(); }

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0)
    return fail(ncclInvalidUsage, "no group was begun");
  if (--group.depth > 0)
    return ncclSuccess;
  Group ended = std::move(group);
  group = {};
  for (const std::shared_ptr<Clique> &clique : ended.joining)
    if (ncclResult_t result = waitForRanks(clique); result != ncclSuccess)
      return result;
  for (auto &[stream, batch] : ended.batches)
    if (ncclResult_t result = enqueue(stream, std::move(batch));
        result != ncclSuccess)
      return result;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, ncclStream_t stream) {
  return add(comm, stream,
             {Kind::AllReduce, 0, address(from), address(to), count, type,
              operation, 0, 0});
}
ncclResult_t ncclReduce(const void *from, void *to, size_t count,
                        ncclDataType_t type, ncclRedOp_t operation, int root,
                        ncclComm_t comm, ncclStream_t stream) {
  return add(comm, stream,
             {Kind::Reduce, 0, address(from), address(to), count, type,
              operation, root, 0});
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count,
                               ncclDataType_t type, ncclRedOp_t operation,
                               ncclComm_t comm, ncclStream_t stream) {
  return add(comm, stream,
             {Kind::ReduceScatter, 0, address(from), address(to), count, type,
              operation, 0, 0});
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           ncclStream_t stream) {
  return add(comm, stream,
             {Kind::AllGather, 0, address(from), address(to), count, type,
              ncclSum, 0, 0});
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           ncclStream_t stream) {
  return add(comm, stream,
             {Kind::Broadcast, 0, address(from), address(to), count, type,
              ncclSum, root, 0});
}
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, ncclStream_t stream) {
  return add(comm, stream,
             {Kind::Send, 0, address(from), 0, count, type, ncclSum, peer, 0});
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, ncclStream_t stream) {
  return add(comm, stream,
             {Kind::Receive, 0, 0, address(to), count, type, ncclSum, peer, 0});
}
