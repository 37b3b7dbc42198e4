//===- Clique.cpp - Where the calls of ranks meet -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nccl/Clique.h"

#include "Emulator.h"
#include "ops/Number.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unistd.h>

using namespace gpuemu;
using namespace gpuemu::nccl;

namespace {

bool isPair(Kind kind) { return kind == Kind::Send || kind == Kind::Receive; }

size_t bytesOf(ncclDataType_t type) {
  constexpr size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return bytes[type];
}

template <typename T> T combine(ncclRedOp_t operation, T a, T b) {
  switch (operation) {
  case ncclProd:
    return T(a * b);
  // As fmax and fmin: a number before NaN.
  case ncclMax:
    return a != a || a < b ? b : a;
  case ncclMin:
    return a != a || b < a ? b : a;
  default:
    return T(a + b);
  }
}
template <typename T>
  requires std::is_class_v<T>
T combine(ncclRedOp_t operation, T a, T b) {
  float result = combine(operation, toFloat(a), toFloat(b));
  return {std::is_same_v<T, Half> ? roundHalf(result) : roundBFloat(result)};
}
template <typename T> T divided(T value, int by) { return T(value / by); }
template <typename T>
  requires std::is_class_v<T>
T divided(T value, int by) {
  float result = toFloat(value) / float(by);
  return {std::is_same_v<T, Half> ? roundHalf(result) : roundBFloat(result)};
}

/// As in a ring: each sum in the type itself, rank after rank, and every few
/// elements begin with another rank.
template <typename T>
void reduceAs(const std::vector<const uint8_t *> &inputs, size_t count,
              ncclRedOp_t operation, uint8_t *out) {
  const size_t ranks = inputs.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t first = (i / 16 + 1) % ranks;
    T result, next;
    memcpy(&result, inputs[first] + i * sizeof(T), sizeof(T));
    for (size_t step = 1; step < ranks; ++step) {
      memcpy(&next, inputs[(first + step) % ranks] + i * sizeof(T), sizeof(T));
      result = combine(operation, result, next);
    }
    if (operation == ncclAvg)
      result = divided(result, int(inputs.size()));
    memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

void reduce(const std::vector<const uint8_t *> &inputs, size_t count,
            ncclDataType_t type, ncclRedOp_t operation, uint8_t *out) {
  switch (type) {
  case ncclInt8:
    return reduceAs<int8_t>(inputs, count, operation, out);
  case ncclUint8:
    return reduceAs<uint8_t>(inputs, count, operation, out);
  case ncclInt32:
    return reduceAs<int32_t>(inputs, count, operation, out);
  case ncclUint32:
    return reduceAs<uint32_t>(inputs, count, operation, out);
  case ncclInt64:
    return reduceAs<int64_t>(inputs, count, operation, out);
  case ncclUint64:
    return reduceAs<uint64_t>(inputs, count, operation, out);
  case ncclFloat16:
    return reduceAs<Half>(inputs, count, operation, out);
  case ncclFloat32:
    return reduceAs<float>(inputs, count, operation, out);
  case ncclFloat64:
    return reduceAs<double>(inputs, count, operation, out);
  case ncclBfloat16:
    return reduceAs<BFloat>(inputs, count, operation, out);
  }
}

std::string checkAlike(const std::map<int, Posted> &calls) {
  const Call &first = calls.begin()->second.call;
  for (const auto &[place, posted] : calls) {
    const Call &call = posted.call;
    bool root = first.kind == Kind::Reduce || first.kind == Kind::Broadcast;
    bool alike = isPair(first.kind)
                     ? call.count == first.count && call.type == first.type
                     : call.kind == first.kind && call.count == first.count &&
                           call.type == first.type &&
                           call.operation == first.operation &&
                           (!root || call.peer == first.peer);
    if (!alike)
      return "rank " + std::to_string(call.rank) + " and rank " +
             std::to_string(first.rank) + " make different calls (" +
             std::to_string(call.count) + " and " +
             std::to_string(first.count) + " elements)";
  }
  return {};
}

size_t inputBytes(const Call &call, int size) {
  const size_t bytes = call.count * bytesOf(call.type);
  return call.kind == Kind::Receive ||
                 (call.kind == Kind::Broadcast && call.rank != call.peer)
             ? 0
         : call.kind == Kind::ReduceScatter ? bytes * size_t(size)
                                            : bytes;
}

/// What rank `mine` of the calls receives. Returns what is wrong, or nothing.
std::string perform(const std::map<int, Posted> &calls, const Call &mine,
                    int size) {
  if (std::string wrong = checkAlike(calls); !wrong.empty())
    return wrong;
  const size_t bytes = mine.count * bytesOf(mine.type);
  const Kind kind = mine.kind;
  if (bytes == 0 || kind == Kind::Send ||
      (kind == Kind::Reduce && mine.rank != mine.peer))
    return {};
  std::vector<const uint8_t *> inputs;
  std::vector<uint8_t> result;
  for (const auto &[place, posted] : calls)
    inputs.push_back(posted.bytes.data());
  if (kind == Kind::AllGather) {
    for (const auto &[place, posted] : calls)
      result.insert(result.end(), posted.bytes.begin(), posted.bytes.end());
  } else if (kind == Kind::Broadcast) {
    result = calls.at(mine.peer).bytes;
  } else if (kind == Kind::Receive) {
    for (const auto &[place, posted] : calls)
      if (posted.call.kind == Kind::Send)
        result = posted.bytes;
  } else {
    const size_t in = inputBytes(mine, size);
    result.resize(in);
    reduce(inputs, in / bytesOf(mine.type), mine.type, mine.operation,
           result.data());
    if (kind == Kind::ReduceScatter) {
      const auto begin =
          result.begin() + std::ptrdiff_t(bytes * size_t(mine.rank));
      result = std::vector<uint8_t>(begin, begin + std::ptrdiff_t(bytes));
    }
  }
  auto *data = static_cast<uint8_t *>(cuEmuBytes(mine.to, result.size(), 2));
  if (!data)
    return "what rank " + std::to_string(mine.rank) +
           " receives: " + cuEmuLastError();
  memcpy(data, result.data(), result.size());
  return {};
}

/// Where cliques have their files.
std::filesystem::path root() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
}
constexpr char prefix[] = "gpuemu-nccl-";

/// Between two looks at the files: hosts ask far more often than anything
/// changes, and each look is a call of the system.
constexpr auto kPause = std::chrono::microseconds(200);

} // namespace

std::string gpuemu::nccl::newClique() {
  static std::atomic<unsigned> number = 0;
  // Those whose processes were killed are swept away.
  std::error_code ignored;
  for (const auto &entry :
       std::filesystem::directory_iterator(root(), ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix))
      continue;
    const int owner = atoi(name.c_str() + sizeof prefix - 1);
    if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH)
      std::filesystem::remove_all(entry.path(), ignored);
  }
  return (root() /
          (prefix + std::to_string(getpid()) + "-" + std::to_string(++number)))
      .string();
}

Clique::Clique(std::string where, int size) : size(size), where(where) {
  std::error_code ignored;
  std::filesystem::create_directories(this->where, ignored);
}

bool Clique::has(const std::string &name) const {
  return access((where / name).c_str(), F_OK) == 0;
}

bool Clique::mayLook(const std::string &what) const {
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard<std::mutex> lock(mutex);
  auto [look, isFirst] = looks.try_emplace(what, now);
  if (!isFirst && now - look->second < kPause)
    return false;
  look->second = now;
  return true;
}

bool Clique::isAborted() const {
  if (wasAborted || sawAbort)
    return true;
  // All communicators ask with each poll of one; few are ever aborted.
  using Clock = std::chrono::steady_clock;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  Clock::rep next = nextAbortLook;
  constexpr Clock::duration pause = std::chrono::milliseconds(2);
  if (now >= next &&
      nextAbortLook.compare_exchange_strong(next, now + pause.count()) &&
      has("aborted"))
    sawAbort = true;
  return sawAbort;
}

bool Clique::haveAll(const std::string &name) const {
  return mayLook(name) && areThere(name);
}

bool Clique::areThere(const std::string &name) const {
  for (int rank = 0; rank < size; ++rank)
    if (!has(name + std::to_string(rank)))
      return false;
  return true;
}

/// Readers see the whole file or none.
void Clique::put(const std::string &name, const void *data,
                 size_t bytes) const {
  static std::atomic<unsigned> number = 0;
  const std::filesystem::path made =
      where /
      (".made-" + std::to_string(getpid()) + "-" + std::to_string(++number));
  {
    std::ofstream file(made, std::ios::binary);
    file.write(static_cast<const char *>(data), std::streamsize(bytes));
  }
  std::error_code ignored;
  std::filesystem::rename(made, where / name, ignored);
}

std::string Clique::get(const std::string &name) const {
  std::ifstream file(where / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Clique::leave(int rank) const {
  put("left-" + std::to_string(rank), "", 0);
  if (!areThere("left-"))
    return;
  // A stream may still be at a call. Under another name no further file comes
  // or goes, except by what already looks at the folder: `remove_all` stops
  // where a file goes away meanwhile, and is to be asked again.
  const std::filesystem::path gone = where.string() + ".gone";
  std::error_code error;
  std::filesystem::rename(where, gone, error);
  for (int tries = 0; !error && tries < 1000; ++tries) {
    std::error_code stopped;
    std::filesystem::remove_all(gone, stopped);
    if (!std::filesystem::exists(gone, error))
      break;
  }
}

int Clique::placeOf(const Call &call) const {
  // A send to itself arrives as two.
  return call.kind == Kind::Receive && call.peer == call.rank ? call.rank + size
                                                              : call.rank;
}

std::string Clique::nameOf(const Call &call) const {
  const int from = call.kind == Kind::Send      ? call.rank
                   : call.kind == Kind::Receive ? call.peer
                                                : -1;
  const int to = call.kind == Kind::Send      ? call.peer
                 : call.kind == Kind::Receive ? call.rank
                                              : -1;
  return std::to_string(from) + "." + std::to_string(to) + "." +
         std::to_string(call.number) + "." + std::to_string(call.round) + "-";
}

std::vector<int> Clique::partiesOf(const Call &call) const {
  if (isPair(call.kind))
    return {call.rank, call.peer == call.rank ? call.rank + size : call.peer};
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank)
    all.push_back(rank);
  return all;
}

bool Clique::arrive(const Call &call, Arrival &arrival, std::string &wrong) {
  // What another rank aborts, stays in the stream.
  if (wasAborted)
    return true;
  const auto now = std::chrono::steady_clock::now();
  if (now < arrival.next)
    return false;
  arrival.next = now + kPause;
  const std::string name = "call-" + nameOf(call);
  if (!arrival.isPosted) {
    std::vector<uint8_t> bytes(sizeof call + inputBytes(call, size));
    memcpy(bytes.data(), &call, sizeof call);
    if (const size_t in = bytes.size() - sizeof call) {
      const void *data = cuEmuBytes(call.from, in, 1);
      if (!data) {
        wrong = "what rank " + std::to_string(call.rank) +
                " sends: " + cuEmuLastError();
        return true;
      }
      memcpy(bytes.data() + sizeof call, data, in);
    }
    put(name + std::to_string(placeOf(call)), bytes.data(), bytes.size());
    arrival.isPosted = true;
    ++waiting;
    arrival.wait = {nullptr,
                    [self = shared_from_this()](void *) { --self->waiting; }};
  }
  const std::vector<int> parties = partiesOf(call);
  while (arrival.seen < parties.size()) {
    if (!has(name + std::to_string(parties[arrival.seen])))
      return false;
    ++arrival.seen;
  }
  arrival.next = {};
  return true;
}

std::string Clique::run(const Call &call) {
  if (wasAborted)
    return {};
  const std::string name = nameOf(call);
  std::map<int, Posted> calls;
  for (int place : partiesOf(call)) {
    const std::string bytes = get("call-" + name + std::to_string(place));
    Posted &posted = calls[place];
    if (bytes.size() < sizeof posted.call)
      return isAborted() ? "" : "a rank has left the communicator";
    memcpy(&posted.call, bytes.data(), sizeof posted.call);
    posted.bytes.assign(bytes.begin() + sizeof posted.call, bytes.end());
  }
  std::string wrong = perform(calls, call, size);
  put("done-" + name + std::to_string(placeOf(call)), "", 0);
  for (int place : partiesOf(call))
    if (!has("done-" + name + std::to_string(place)))
      return wrong;
  // All have read.
  for (int place : partiesOf(call))
    for (const char *what : {"call-", "done-"})
      unlink((where / (what + name + std::to_string(place))).c_str());
  return wrong;
}
