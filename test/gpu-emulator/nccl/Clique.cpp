//===- Clique.cpp - Where the calls of ranks meet ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nccl/Clique.h"

#include "Emulator.h"
#include "ops/Number.h"

#include <algorithm>
#include <cstring>

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
  case ncclMax:
    return std::max(a, b);
  case ncclMin:
    return std::min(a, b);
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

/// Rank after rank, each sum in the type itself.
template <typename T>
void reduceAs(const std::vector<const uint8_t *> &inputs, size_t count,
              ncclRedOp_t operation, uint8_t *out) {
  for (size_t i = 0; i < count; ++i) {
    T result, next;
    memcpy(&result, inputs[0] + i * sizeof(T), sizeof(T));
    for (size_t rank = 1; rank < inputs.size(); ++rank) {
      memcpy(&next, inputs[rank] + i * sizeof(T), sizeof(T));
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

std::string checkAlike(const std::map<int, Call> &calls) {
  const Call &first = calls.begin()->second;
  for (const auto &[rank, call] : calls) {
    bool root = first.kind == Kind::Reduce || first.kind == Kind::Broadcast;
    bool alike = isPair(first.kind)
                     ? call.count == first.count && call.type == first.type
                     : call.kind == first.kind && call.count == first.count &&
                           call.type == first.type &&
                           call.operation == first.operation &&
                           (!root || call.peer == first.peer);
    if (!alike)
      return "rank " + std::to_string(rank) + " and rank " +
             std::to_string(first.rank) + " make different calls (" +
             std::to_string(call.count) + " and " +
             std::to_string(first.count) + " elements)";
  }
  return {};
}

} // namespace

std::string gpuemu::nccl::perform(const std::map<int, Call> &calls, int size) {
  if (std::string wrong = checkAlike(calls); !wrong.empty())
    return wrong;
  const Call &first = calls.begin()->second;
  size_t bytes = first.count * bytesOf(first.type);
  if (bytes == 0)
    return {};
  Kind kind = first.kind;
  bool scatters = kind == Kind::ReduceScatter,
       gathers = kind == Kind::AllGather;
  size_t in = scatters ? bytes * size_t(size) : bytes;
  size_t out = gathers ? bytes * size_t(size) : bytes;
  // All inputs first: they may lie where the results go.
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<const uint8_t *> pointers;
  for (const auto &[rank, call] : calls) {
    bool reads = call.kind != Kind::Receive &&
                 (kind != Kind::Broadcast || rank == first.peer);
    inputs.emplace_back();
    if (reads) {
      auto *data = static_cast<const uint8_t *>(cuEmuBytes(call.from, in, 1));
      if (!data)
        return "what rank " + std::to_string(rank) +
               " sends: " + cuEmuLastError();
      inputs.back().assign(data, data + in);
    }
  }
  for (const std::vector<uint8_t> &input : inputs)
    pointers.push_back(input.data());
  std::vector<uint8_t> result;
  if (gathers) {
    for (const std::vector<uint8_t> &input : inputs)
      result.insert(result.end(), input.begin(), input.end());
  } else if (kind == Kind::Broadcast) {
    result = inputs[size_t(first.peer)];
  } else if (isPair(kind)) {
    size_t at = 0;
    for (const auto &[rank, call] : calls) {
      if (call.kind == Kind::Send)
        result = inputs[at];
      ++at;
    }
  } else {
    result.resize(in);
    reduce(pointers, in / bytesOf(first.type), first.type, first.operation,
           result.data());
  }
  for (const auto &[rank, call] : calls) {
    bool writes =
        call.kind != Kind::Send && (kind != Kind::Reduce || rank == first.peer);
    if (!writes)
      continue;
    auto *data = static_cast<uint8_t *>(cuEmuBytes(call.to, out, 2));
    if (!data)
      return "what rank " + std::to_string(rank) +
             " receives: " + cuEmuLastError();
    memcpy(data, result.data() + (scatters ? bytes * size_t(rank) : 0), out);
  }
  return {};
}

Clique::Key Clique::keyOf(const Call &call) const {
  if (call.kind == Kind::Send)
    return {{call.rank, call.peer}, {call.number, call.round}};
  if (call.kind == Kind::Receive)
    return {{call.peer, call.rank}, {call.number, call.round}};
  return {{-1, -1}, {call.number, call.round}};
}

size_t Clique::partiesOf(const Call &call) const {
  return isPair(call.kind) ? 2 : size_t(size);
}

bool Clique::arrive(const Call &call) {
  std::lock_guard guard(mutex);
  Meeting &meeting = meetings[keyOf(call)];
  // A send to itself arrives as two.
  int place = call.kind == Kind::Receive && call.peer == call.rank
                  ? call.rank + size
                  : call.rank;
  meeting.calls[place] = call;
  return isAborted || meeting.isDone || meeting.calls.size() == partiesOf(call);
}

std::string Clique::run(const Call &call) {
  std::lock_guard guard(mutex);
  if (isAborted)
    return {};
  Meeting &meeting = meetings[keyOf(call)];
  if (!meeting.isDone) {
    meeting.wrong = perform(meeting.calls, size);
    meeting.isDone = true;
  }
  std::string wrong = meeting.wrong;
  if (++meeting.finished == partiesOf(call))
    meetings.erase(keyOf(call));
  return wrong;
}
