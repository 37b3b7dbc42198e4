//===- States.cpp - What a trainer has learned, on the host ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/States.h"

#include "runtime/base/Elements.h"
#include "runtime/base/StateParts.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace partita::runtime::train {

std::string nameOf(const abi::State &state) { return text(state.name()); }

size_t bytesOf(const abi::State &state) {
  return static_cast<size_t>(elementCount(state.shape()) *
                             elementBytes(state.dtype()));
}

bool fits(const abi::State &state, const Tensor &tensor) {
  return tensor.dtype() == state.dtype() &&
         tensor.shape() == shapeOf(state.shape());
}

namespace {

/// Instead of a state that process 0 wants: it wants none any more, or is still
/// at work.
constexpr int64_t kNoMore = -1, kAtWork = -2;
constexpr auto kBetweenSigns = std::chrono::milliseconds(200);

template <typename T> std::span<uint8_t> spanOf(T &value) {
  return {reinterpret_cast<uint8_t *>(&value), sizeof value};
}

/// Sends process 0 the states for which it asks, until it wants no more.
void handOut(const Trainer &trainer, Processes &all) {
  std::vector<uint8_t> bytes;
  while (true) {
    int64_t wanted = kNoMore;
    all.receive(0, spanOf(wanted));
    if (wanted == kNoMore)
      return;
    if (wanted == kAtWork)
      continue;
    bytes.resize(bytesOf(trainer.state(wanted)));
    if (Status status = trainer.readState(wanted, bytes.data()); !status.ok())
      all.abandon(status);
    all.send(0, bytes);
  }
}

void tellOthers(Processes &all, int64_t what) {
  for (int other = 1; other < all.count(); ++other)
    all.send(other, spanOf(what));
}

/// Tells the other processes that process 0 is at work, for as long as the
/// object lives: a disk may take longer than they would wait.
class SignsOfLife {
public:
  explicit SignsOfLife(Processes *all) {
    if (all && all->count() > 1)
      thread = std::thread([this, all] {
        std::unique_lock<std::mutex> lock(mutex);
        while (!ended.wait_for(lock, kBetweenSigns, [this] { return over; }))
          tellOthers(*all, kAtWork);
      });
  }
  ~SignsOfLife() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      over = true;
    }
    ended.notify_one();
    if (thread.joinable())
      thread.join();
  }

private:
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::thread thread; ///< the last: it uses the others
};

} // namespace

Expected<Content::Bytes> StateReader::read(int64_t index) {
  bytes.resize(bytesOf(trainer.state(index)));
  Processes *all = trainer.processes();
  for (int owner : trainer.statePlaces().owners(index)) {
    if (isFirst(all) && owner == 0) {
      PARTITA_TRY(trainer.readState(index, bytes.data()));
      continue;
    }
    std::vector<uint8_t> &to = isCut(trainer.state(index)) ? others : bytes;
    to.resize(bytes.size());
    all->send(owner, spanOf(index));
    all->receive(owner, to);
    if (&to == &others)
      takeParts(index, owner);
  }
  return Content::Bytes(bytes);
}

/// What the devices of a process have of a state, out of what it has sent.
void StateReader::takeParts(int64_t index, int owner) {
  std::vector<uint8_t> own;
  for (int device : trainer.statePlaces().devices(index)) {
    if (trainer.processes()->processOf(device) != owner)
      continue;
    const StatePart part(trainer.plan(), trainer.state(index), device);
    own.resize(part.bytes());
    part.take(others.data(), own.data());
    part.put(own.data(), bytes.data());
  }
}

Status readStates(const Trainer &trainer,
                  const std::function<Status(StateReader &)> &use) {
  PARTITA_TRY(trainer.lostStates());
  Processes *all = trainer.processes();
  Status status;
  if (isFirst(all)) {
    {
      const SignsOfLife signs(all);
      StateReader reader(trainer);
      status = use(reader);
    }
    if (all)
      tellOthers(*all, kNoMore);
  } else {
    handOut(trainer, *all);
  }
  return agree(all, status);
}

Status writeStates(Trainer &trainer, const std::vector<StateChange> &changes) {
  for (const StateChange &change : changes) {
    if (!trainer.statePlaces().isHere(change.index))
      continue;
    PARTITA_TRY(trainer.writeState(change.index, change.tensor->data()));
  }
  return Status();
}

} // namespace partita::runtime::train
