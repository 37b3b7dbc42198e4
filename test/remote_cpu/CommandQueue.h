//===- CommandQueue.h - Work in order, on a thread of its own ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_REMOTE_CPU_COMMANDQUEUE_H
#define PARTITA_TEST_REMOTE_CPU_COMMANDQUEUE_H

#include "runtime/device/Device.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace partita::runtime {

/// Convert a real address to one that the host cannot access, and back.
uint8_t *hidden(uint8_t *real);
uint8_t *real(const uint8_t *hidden);

/// Commands wait in a ring of fixed size, so that a step allocates nothing.
/// After a failure they are removed without being executed.
class CommandQueue final : public Queue {
public:
  /// `timeout_s`: deadline of every wait.
  explicit CommandQueue(double timeout_s);
  ~CommandQueue() override;

  /// Sets the queue that runs units. Must be called before the first command
  /// that needs it.
  void useQueue(Queue &runner) { this->runner = &runner; }
  /// Calls `function` on the queue's thread, after all work that was enqueued
  /// before, and returns its result. Must not be used in a step, because it may
  /// allocate.
  Status call(const std::function<Status()> &function);
  /// Enqueues such a call. The function must live until it is done.
  Status enqueueCall(const std::function<Status()> *function);

  Status copyIn(uint8_t *to, const void *from, size_t bytes) override;
  Status copyOut(void *to, const uint8_t *from, size_t bytes) override;
  Status copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                  size_t bytes) override;
  Status run(Instance &instance, int micro_batch,
             TaskObserver *observer) override;
  Event record() override;
  Status wait(const Event &event) override;
  Status synchronize(const Event &event) override;

private:
  enum class Kind { copy, copyFrom, run, wait, call };
  /// How far a queue has come. Others may wait for its events when it is gone.
  struct Progress {
    std::mutex mutex;
    std::condition_variable done;
    uint64_t completed = 0;
    Status failure;
    bool failed = false;

    /// Whether `number` commands were done within the time. `lock` is of
    /// `mutex`.
    bool await(std::unique_lock<std::mutex> &lock, uint64_t number,
               double timeout_s);
  };
  struct Command {
    Kind kind = Kind::copy;
    uint8_t *to = nullptr; ///< real
    const uint8_t *from = nullptr;
    size_t bytes = 0;
    Device *source = nullptr;
    Instance *instance = nullptr;
    int micro_batch = 0;
    TaskObserver *observer = nullptr;
    std::shared_ptr<Progress> other; ///< of the queue to wait for
    uint64_t number = 0;             ///< of its event
    const std::function<Status()> *function = nullptr;
  };

  Status push(const Command &command);
  Status carryOut(const Command &command);
  void work();
  Status late(const char *what) const;
  Status synchronize(Progress &of, uint64_t number) const;

  const double timeout_s;
  Queue *runner = nullptr;
  const std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  std::mutex &mutex = progress->mutex;
  std::condition_variable given;
  std::vector<Command> ring;
  uint64_t submitted = 0;
  bool stopping = false;
  std::thread thread;
};

} // namespace partita::runtime

#endif // PARTITA_TEST_REMOTE_CPU_COMMANDQUEUE_H
