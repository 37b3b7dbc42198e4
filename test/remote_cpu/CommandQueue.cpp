//===- CommandQueue.cpp - Work in order, on a thread of its own -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/remote_cpu/CommandQueue.h"

#include <chrono>
#include <cstdio>
#include <cstring>

namespace partita::runtime {
namespace {

constexpr size_t kCommands = 1024;
/// Bits 47 to 63 of an address must be equal for the processor to take it.
constexpr uintptr_t kHidden = uintptr_t(1) << 62;

} // namespace

uint8_t *hidden(uint8_t *real) {
  return real ? reinterpret_cast<uint8_t *>(reinterpret_cast<uintptr_t>(real) |
                                            kHidden)
              : nullptr;
}

uint8_t *real(const uint8_t *hidden) {
  return reinterpret_cast<uint8_t *>(reinterpret_cast<uintptr_t>(hidden) &
                                     ~kHidden);
}

CommandQueue::CommandQueue(double timeout_s)
    : timeout_s(timeout_s), ring(kCommands), thread([this] { work(); }) {}

CommandQueue::~CommandQueue() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  given.notify_all();
  thread.join();
}

bool CommandQueue::Progress::await(std::unique_lock<std::mutex> &lock,
                                   uint64_t number, double timeout_s) {
  return done.wait_for(lock, std::chrono::duration<double>(timeout_s),
                       [&] { return completed >= number; });
}

Status CommandQueue::late(const char *what) const {
  char text[64];
  std::snprintf(text, sizeof(text), "waited %g s for %s", timeout_s, what);
  return Status::error(text);
}

Status CommandQueue::push(const Command &command) {
  std::unique_lock<std::mutex> lock(mutex);
  if (submitted >= ring.size() &&
      !progress->await(lock, submitted - ring.size() + 1, timeout_s))
    return late("room in the queue of the device");
  if (progress->failed)
    return progress->failure;
  ring[submitted++ % ring.size()] = command;
  lock.unlock();
  given.notify_one();
  return Status();
}

void CommandQueue::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    given.wait(lock,
               [&] { return stopping || progress->completed < submitted; });
    if (progress->completed == submitted)
      return;
    const Command &command = ring[progress->completed % ring.size()];
    if (!progress->failed) {
      lock.unlock();
      Status status = carryOut(command);
      lock.lock();
      if (!status.ok()) {
        progress->failed = true;
        progress->failure = status;
      }
    }
    ++progress->completed;
    progress->done.notify_all();
  }
}

Status CommandQueue::carryOut(const Command &command) {
  switch (command.kind) {
  case Kind::copy:
    if (command.bytes)
      std::memcpy(command.to, command.from, command.bytes);
    return Status();
  case Kind::copyFrom:
    return command.source->download(command.to, command.from, command.bytes);
  case Kind::run:
    return runner->run(*command.instance, command.micro_batch,
                       command.observer);
  case Kind::wait:
    return synchronize(*command.other, command.number);
  case Kind::call:
    return (*command.function)();
  }
  return Status();
}

Status CommandQueue::call(const std::function<Status()> &function) {
  if (Status status = enqueueCall(&function); !status.ok())
    return status;
  const Event event = record();
  Status status = synchronize(event);
  // Also past the deadline: the function refers to what the caller has.
  std::unique_lock<std::mutex> lock(mutex);
  progress->done.wait(lock,
                      [&] { return progress->completed >= event.number; });
  return status;
}

Status CommandQueue::enqueueCall(const std::function<Status()> *function) {
  Command command;
  command.kind = Kind::call;
  command.function = function;
  return push(command);
}

Status CommandQueue::copyIn(uint8_t *to, const void *from, size_t bytes) {
  Command command;
  command.to = real(to);
  command.from = static_cast<const uint8_t *>(from);
  command.bytes = bytes;
  return push(command);
}

Status CommandQueue::copyOut(void *to, const uint8_t *from, size_t bytes) {
  Command command;
  command.to = static_cast<uint8_t *>(to);
  command.from = real(from);
  command.bytes = bytes;
  return push(command);
}

Status CommandQueue::copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                              size_t bytes) {
  Command command;
  command.kind = Kind::copyFrom;
  command.source = &source;
  command.to = real(to);
  command.from = from;
  command.bytes = bytes;
  return push(command);
}

Status CommandQueue::run(Instance &instance, int micro_batch,
                         TaskObserver *observer) {
  Command command;
  command.kind = Kind::run;
  command.instance = &instance;
  command.micro_batch = micro_batch;
  command.observer = observer;
  return push(command);
}

Event CommandQueue::record() {
  std::lock_guard<std::mutex> lock(mutex);
  return {this, submitted};
}

Status CommandQueue::wait(const Event &event) {
  if (!event.queue || event.queue == this)
    return Status();
  auto *other = dynamic_cast<CommandQueue *>(event.queue);
  if (!other) // another kind of device may be gone when the command is due
    return event.queue->synchronize(event);
  Command command;
  command.kind = Kind::wait;
  command.other = other->progress;
  command.number = event.number;
  return push(command);
}

Status CommandQueue::synchronize(const Event &event) {
  return synchronize(*progress, event.number);
}

Status CommandQueue::synchronize(Progress &of, uint64_t number) const {
  std::unique_lock<std::mutex> lock(of.mutex);
  if (!of.await(lock, number, timeout_s))
    return late("the work of the device");
  return of.failed ? of.failure : Status();
}

} // namespace partita::runtime
