//===- DeviceThread.cpp - The thread that works for a device --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/DeviceThread.h"

#include "runtime/base/Cores.h"
#include "runtime/base/SignalMask.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace partita::runtime {
namespace {

class StartedThread final : public DeviceThread {
public:
  StartedThread() : thread([this] { work(); }) {}
  ~StartedThread() override {
    posted.fetch_add(1); // and there is no job
    posted.notify_one();
    thread.join();
  }

  void post(Job &job) override {
    job.next = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex);
      (last ? last->next : first) = &job;
      last = &job;
      // Within the lock: jobs are counted in the order of the list, and so
      // `drain` waits for those of its thread.
      posted.fetch_add(1);
    }
    posted.notify_one();
  }

  void drain() override {
    const uint32_t wanted = posted.load();
    for (uint32_t seen = returned.load();
         static_cast<int32_t>(seen - wanted) < 0; seen = returned.load())
      returned.wait(seen);
  }

  bool runsAtOnce() const override { return false; }

private:
  void work();

  std::mutex mutex; ///< of the list
  Job *first = nullptr, *last = nullptr;
  /// Jobs, counted; the counters go around. One more is posted at the end.
  std::atomic<uint32_t> posted = 0, returned = 0;
  std::thread thread;
};

void StartedThread::work() {
  SignalMask mask;
  for (uint32_t next = 0;; ++next) {
    posted.wait(next);
    Job *job;
    {
      std::lock_guard<std::mutex> lock(mutex);
      job = first;
      if (!job)
        return;
      first = job->next;
      if (!first)
        last = nullptr;
    }
    job->run();
    returned.fetch_add(1);
    returned.notify_all();
  }
}

class CallersThread final : public DeviceThread {
public:
  void post(Job &job) override {
    SignalMask mask;
    job.run();
  }
  void drain() override {}
  bool runsAtOnce() const override { return true; }

private:
  SavedAffinity affinity;
};

} // namespace

std::shared_ptr<DeviceThread> startDeviceThread() {
  return std::make_shared<StartedThread>();
}

std::shared_ptr<DeviceThread> useCallersThread() {
  return std::make_shared<CallersThread>();
}

} // namespace partita::runtime
