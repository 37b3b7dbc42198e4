//===- Nccl.cpp - NCCL between devices of processes on a machine ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nccl/Nccl.h"

#include "Emulator.h"
#include "driver/Cuda.h"
#include "nccl/Clique.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

using namespace gpuemu::nccl;

namespace {

/// The calls of one group for one stream: one operation, since sends and
/// receives of a group go on together.
struct Batch {
  struct Entry {
    std::shared_ptr<Clique> clique;
    Call call;
    Clique::Arrival arrival;
  };
  std::vector<Entry> entries;
  std::string wrong;
  /// Of a communicator that does not block: it goes on by itself.
  ncclStream_t stream = nullptr;
  bool isWatched = false;
};

} // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  bool isBlocking = true;
  /// How many calls there were: of all ranks, and with each rank.
  uint64_t collectives = 0, splits = 0;
  std::map<int, uint64_t> sent, received;

  /// What goes on in a communicator that does not block. A state is asked for
  /// until nothing does.
  bool isJoined = false, isConnected = false, isFinalizing = false;
  std::vector<std::pair<ncclStream_t, Batch>> deferred;
  unsigned polls = 0; ///< how often it says so before calls are in the stream
  struct {
    bool isAsked = false;
    uint64_t number = 0;
    int color = 0, key = 0;
    ncclComm **result = nullptr;
    bool isBlocking = true;
  } split;
  ncclResult_t error = ncclSuccess;
};

namespace {

/// Of everything below. What waits for other threads waits without it.
std::recursive_mutex mutex;
std::set<ncclComm *> living;
std::string lastError;

ncclResult_t fail(ncclResult_t result, const std::string &what) {
  std::lock_guard guard(mutex);
  lastError = what;
  return result;
}

struct Group {
  int depth = 0;
  struct Part {
    ncclComm *comm;
    ncclStream_t stream;
    Batch batch;
  };
  std::vector<Part> parts;
  std::vector<ncclComm *> joining, aborting;
};
thread_local Group group;

/// Goes on with calls that other processes wait for, while the host does not
/// ask. It gives the host some time: with it, streams run in a drawn order.
class Motor {
public:
  void add(ncclStream_t stream) {
    std::lock_guard guard(lock);
    waiting[stream].push_back(Clock::now());
    if (!std::exchange(isRunning, true))
      std::thread([this] { run(); }).detach();
  }
  void remove(ncclStream_t stream) {
    std::lock_guard guard(lock);
    auto found = waiting.find(stream);
    if (found == waiting.end())
      return;
    found->second.pop_front();
    if (found->second.empty())
      waiting.erase(found);
  }

private:
  using Clock = std::chrono::steady_clock;
  void run() {
    while (true) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::vector<ncclStream_t> late;
      {
        std::lock_guard guard(lock);
        for (const auto &[stream, times] : waiting)
          if (Clock::now() - times.front() > std::chrono::milliseconds(50))
            late.push_back(stream);
      }
      for (ncclStream_t stream : late)
        cuEmuAdvance(stream);
    }
  }

  std::mutex lock;
  std::map<ncclStream_t, std::deque<Clock::time_point>> waiting;
  bool isRunning = false;
};
Motor &motor() {
  static auto *the = new Motor; // its thread outlives statics
  return *the;
}

ncclResult_t enqueue(ncclStream_t stream, Batch batch) {
  CuEmuOperation operation = {};
  operation.name = "calls of NCCL";
  operation.ready = [](void *data) -> int {
    // All arrive, also behind one that still waits.
    auto &batch = *static_cast<Batch *>(data);
    bool ready = true;
    for (Batch::Entry &entry : batch.entries)
      ready &= entry.clique->arrive(entry.call, entry.arrival, batch.wrong);
    return ready || !batch.wrong.empty();
  };
  operation.run = [](void *data) -> const char * {
    auto &batch = *static_cast<Batch *>(data);
    for (Batch::Entry &entry : batch.entries) {
      if (!batch.wrong.empty())
        break;
      batch.wrong = entry.clique->run(entry.call);
      ++entry.call.round;
      entry.arrival = {};
    }
    if (batch.isWatched)
      motor().remove(batch.stream);
    batch.isWatched = false;
    return batch.wrong.empty() ? nullptr : batch.wrong.c_str();
  };
  operation.drop = [](void *data) {
    auto *batch = static_cast<Batch *>(data);
    if (batch->isWatched)
      motor().remove(batch->stream);
    delete batch;
  };
  auto *kept = new Batch(std::move(batch));
  operation.data = kept;
  if (kept->isWatched) {
    kept->stream = stream;
    motor().add(stream);
  }
  return cuEmuEnqueue(stream, &operation)
             ? fail(ncclUnhandledCudaError, cuEmuLastError())
             : ncclSuccess;
}

ncclResult_t state(ncclComm &comm);

/// All communicators of the process go on, as NCCL's threads let them.
ncclResult_t advance(ncclComm &comm) {
  std::lock_guard guard(mutex);
  const std::vector<ncclComm *> others(living.begin(), living.end());
  for (ncclComm *other : others)
    if (other != &comm && !other->isBlocking)
      (void)state(*other);
  return state(comm);
}

/// Asks for the state until nothing goes on.
ncclResult_t wait(ncclComm &comm) {
  using Clock = std::chrono::steady_clock;
  for (auto start = Clock::now();;) {
    ncclResult_t now = advance(comm);
    if (now != ncclInProgress)
      return now;
    if (Clock::now() - start > std::chrono::seconds(60))
      return fail(ncclRemoteError, "not all ranks made the call");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

ncclResult_t notReady() {
  return fail(ncclInvalidArgument,
              "Attempt to use communicator before the previous operation "
              "returned ncclSuccess");
}

/// Puts calls into their stream, or lets a communicator that does not block
/// do it later.
ncclResult_t issue(ncclComm &comm, ncclStream_t stream, Batch batch) {
  if (comm.isBlocking)
    return enqueue(stream, std::move(batch));
  std::lock_guard guard(mutex);
  batch.isWatched = true;
  comm.deferred.emplace_back(stream, std::move(batch));
  comm.polls = unsigned(comm.collectives + comm.rank) % 3;
  return ncclInProgress;
}

ncclResult_t add(ncclComm_t comm, ncclStream_t stream, Call call) {
  if (!comm || call.type < 0 || call.type > ncclBfloat16 ||
      call.operation < 0 || call.operation > ncclAvg || call.peer < 0 ||
      call.peer >= comm->clique->size)
    return fail(ncclInvalidArgument, "a communicator, type, operation or rank "
                                     "that does not exist");
  std::lock_guard guard(mutex);
  if (!comm->isBlocking && state(*comm) == ncclInProgress)
    return notReady();
  if (cuEmuDevice(stream) != comm->device)
    return fail(ncclInvalidUsage, "the stream belongs to another device than "
                                  "the communicator");
  call.rank = comm->rank;
  call.number = call.kind == Kind::Send      ? comm->sent[call.peer]++
                : call.kind == Kind::Receive ? comm->received[call.peer]++
                                             : comm->collectives++;
  Batch::Entry entry{comm->clique, call, {}};
  if (group.depth == 0) {
    Batch batch;
    batch.entries.push_back(std::move(entry));
    return issue(*comm, stream, std::move(batch));
  }
  auto found = std::find_if(
      group.parts.begin(), group.parts.end(),
      [&](const Group::Part &part) { return part.stream == stream; });
  if (found == group.parts.end()) {
    group.parts.push_back({comm, stream, Batch()});
    found = std::prev(group.parts.end());
  }
  found->batch.entries.push_back(std::move(entry));
  return ncclSuccess;
}

uint64_t address(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

int libraryVersion() {
  const char *text = getenv("CUDA_EMU_NCCL_VERSION");
  return text && *text ? atoi(text) : 22809;
}

/// What a rank says of itself. Two ranks on one device need host names of
/// their own.
std::string introduction(const ncclComm &comm) {
  const char *host = getenv("NCCL_HOSTID");
  CUuuid gpu = {};
  (void)cuDeviceGetUuid_v2(&gpu, comm.device);
  return std::to_string(comm.clique->size) + " " +
         std::to_string(libraryVersion()) + " " + std::to_string(gpu.bytes[0]) +
         " host-" + (host ? host : "");
}

/// When all ranks are there.
ncclResult_t checkRanks(const Clique &clique) {
  std::vector<std::string> seen;
  std::string first;
  for (int rank = 0; rank < clique.size; ++rank) {
    std::istringstream text(clique.get("rank-" + std::to_string(rank)));
    std::string size, version, device, host;
    text >> size >> version >> device >> host;
    if (size != std::to_string(clique.size))
      return fail(ncclInvalidArgument,
                  "the ranks do not agree on their number");
    if (rank == 0)
      first = version;
    if (version != first)
      return fail(ncclInvalidUsage, "Mismatched NCCL version detected : rank " +
                                        std::to_string(rank) + " has " +
                                        version + ", rank 0 " + first);
    const std::string place = device + " " + host;
    if (std::find(seen.begin(), seen.end(), place) != seen.end())
      return fail(ncclInvalidUsage, "Duplicate GPU detected : rank " +
                                        std::to_string(rank) + " is on GPU " +
                                        device + " too");
    seen.push_back(place);
  }
  return ncclSuccess;
}

ncclResult_t join(ncclComm_t *comm, const std::string &where, int ranks,
                  int rank, int device, bool isBlocking) {
  auto *result = new ncclComm;
  result->clique = std::make_shared<Clique>(where, ranks);
  result->rank = rank;
  result->device = device;
  result->isBlocking = isBlocking;
  const std::string text = introduction(*result);
  result->clique->put("rank-" + std::to_string(rank), text.data(), text.size());
  *comm = result;
  {
    std::lock_guard guard(mutex);
    living.insert(result);
  }
  if (!isBlocking)
    return ncclInProgress;
  if (group.depth) {
    group.joining.push_back(result);
    return ncclSuccess;
  }
  return wait(*result);
}

/// When all ranks have asked for a split.
ncclResult_t finishSplit(ncclComm &comm) {
  const std::string name = "split-" + std::to_string(comm.split.number) + "-";
  if (!comm.clique->haveAll(name))
    return ncclInProgress;
  comm.split.isAsked = false;
  if (comm.split.color < 0)
    return ncclSuccess;
  std::vector<std::pair<int, int>> members;
  for (int rank = 0; rank < comm.clique->size; ++rank) {
    std::istringstream text(comm.clique->get(name + std::to_string(rank)));
    int color = -1, key = 0;
    text >> color >> key;
    if (color == comm.split.color)
      members.emplace_back(key, rank);
  }
  std::sort(members.begin(), members.end());
  const auto rank = std::find(members.begin(), members.end(),
                              std::pair(comm.split.key, comm.rank)) -
                    members.begin();
  const ncclResult_t joined =
      join(comm.split.result,
           comm.clique->where.string() + ".split" +
               std::to_string(comm.split.number) + "." +
               std::to_string(comm.split.color),
           int(members.size()), int(rank), comm.device, false);
  (*comm.split.result)->isBlocking = comm.split.isBlocking;
  return joined == ncclInProgress ? ncclSuccess : joined;
}

/// Whether the first calls make connections. Those of collectives may have been
/// made with the communicator.
bool makesConnections(const ncclComm &comm) {
  const char *text = getenv("NCCL_RUNTIME_CONNECT");
  const bool later = !text || std::string(text) != "0";
  return std::any_of(
      comm.deferred.begin(), comm.deferred.end(), [&](const auto &part) {
        const auto &entries = part.second.entries;
        return later || std::any_of(entries.begin(), entries.end(),
                                    [](const Batch::Entry &entry) {
                                      return entry.call.kind == Kind::Send ||
                                             entry.call.kind == Kind::Receive;
                                    });
      });
}

/// Goes on with what a communicator is at.
ncclResult_t state(ncclComm &comm) {
  if (comm.error != ncclSuccess)
    return comm.error;
  if (comm.clique->isAborted())
    return fail(ncclRemoteError, "a rank has aborted the communicator");
  if (!comm.isJoined) {
    if (!comm.clique->haveAll("rank-"))
      return ncclInProgress;
    if (comm.error = checkRanks(*comm.clique); comm.error != ncclSuccess)
      return comm.error;
    comm.isJoined = true;
  }
  if (comm.split.isAsked)
    if (ncclResult_t result = finishSplit(comm); result != ncclSuccess)
      return result;
  if (!comm.deferred.empty()) {
    // The first call makes connections, for which it needs all ranks.
    if (!comm.isConnected && makesConnections(comm)) {
      const std::string mine = "connected-" + std::to_string(comm.rank);
      if (!comm.clique->has(mine))
        comm.clique->put(mine, "", 0);
      if (!comm.clique->haveAll("connected-"))
        return ncclInProgress;
      comm.isConnected = true;
    }
    if (comm.polls > 0) {
      --comm.polls;
      return ncclInProgress;
    }
    auto deferred = std::move(comm.deferred);
    comm.deferred.clear();
    for (auto &[stream, batch] : deferred)
      if (comm.error = enqueue(stream, std::move(batch));
          comm.error != ncclSuccess)
        return comm.error;
  }
  return comm.isFinalizing && !comm.clique->haveAll("final-") ? ncclInProgress
                                                              : ncclSuccess;
}

void leave(ncclComm_t comm) {
  std::lock_guard guard(mutex);
  living.erase(comm);
  comm->clique->leave(comm->rank);
  delete comm;
}

/// An abort gives memory back, for which the device must be idle: it waits for
/// the kernels of other communicators, too. And it waits until the ranks of
/// this process are aborted that may use that memory.
void finishAbort(ncclComm_t comm) {
  auto othersWait = [comm] {
    std::lock_guard guard(mutex);
    return std::any_of(living.begin(), living.end(), [&](ncclComm *other) {
      if (other == comm)
        return false;
      return (other->device == comm->device && other->clique->isBusy()) ||
             (!comm->isFinalizing &&
              other->clique->where == comm->clique->where &&
              !other->clique->wasAbortedHere());
    });
  };
  using Clock = std::chrono::steady_clock;
  const auto hung = Clock::now() + std::chrono::seconds(60);
  while (othersWait() && Clock::now() < hung)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  leave(comm);
}

} // namespace

ncclResult_t ncclGetVersion(int *version) {
  *version = libraryVersion();
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "%s", newClique().c_str());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  if (!comm || ranks < 1 || rank < 0 || rank >= ranks)
    return fail(ncclInvalidArgument, "no such rank");
  if (config && (config->magic != 0xcafebeef || config->size < 32))
    return fail(ncclInvalidArgument, "ncclConfig_t argument not initialized "
                                     "via NCCL_CONFIG_INITIALIZER");
  if (!memchr(id.internal, 0, sizeof id.internal) || id.internal[0] != '/')
    return fail(ncclInvalidArgument, "that is no unique id");
  const int device = cuEmuDevice(nullptr);
  if (device < 0)
    return fail(ncclUnhandledCudaError, "the thread has no context");
  return join(comm, id.internal, ranks, rank, device,
              !config || config->blocking != 0);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *result, ncclConfig_t *config) {
  if (!comm || !result || color < -1)
    return fail(ncclInvalidArgument, "no communicator, or no such color");
  std::unique_lock guard(mutex);
  if (!comm->isBlocking && state(*comm) == ncclInProgress)
    return notReady();
  *result = nullptr;
  comm->split = {true,
                 comm->splits++,
                 color,
                 key,
                 result,
                 config && config->blocking != INT_MIN ? config->blocking != 0
                                                       : comm->isBlocking};
  const std::string text = std::to_string(color) + " " + std::to_string(key);
  comm->clique->put("split-" + std::to_string(comm->split.number) + "-" +
                        std::to_string(comm->rank),
                    text.data(), text.size());
  guard.unlock();
  return comm->isBlocking ? wait(*comm) : ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (!comm)
    return fail(ncclInvalidArgument, "no communicator");
  if (comm->isBlocking)
    return ncclSuccess;
  std::lock_guard guard(mutex);
  if (state(*comm) == ncclInProgress)
    return notReady();
  comm->isFinalizing = true;
  comm->clique->put("final-" + std::to_string(comm->rank), "", 0);
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm)
    leave(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm)
    return fail(ncclInvalidArgument, "no communicator");
  if (group.depth > 0 && libraryVersion() < 22200)
    return fail(ncclInvalidUsage, "aborts in a group need NCCL 2.22");
  comm->clique->abort();
  if (group.depth > 0)
    group.aborting.push_back(comm);
  else
    finishAbort(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (!comm || !error)
    return fail(ncclInvalidArgument, "no communicator");
  *error = advance(*comm);
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
const char *ncclGetLastError(ncclComm_t) {
  static thread_local std::string copy;
  std::lock_guard guard(mutex);
  copy = lastError;
  return copy.c_str();
}

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
  for (ncclComm *comm : ended.joining)
    if (ncclResult_t result = wait(*comm); result != ncclSuccess)
      return result;
  for (ncclComm *comm : ended.aborting)
    finishAbort(comm);
  ncclResult_t last = ncclSuccess;
  for (Group::Part &part : ended.parts) {
    const ncclResult_t result =
        issue(*part.comm, part.stream, std::move(part.batch));
    if (result != ncclSuccess && result != ncclInProgress)
      return result;
    last = std::max(last, result);
  }
  return last;
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
