//===- DeviceThread.cpp - The thread that works for a device --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/DeviceThread.h"

#include "runtime/base/SignalMask.h"

namespace partita::runtime {

DeviceThread::DeviceThread() : thread([this] { work(); }) {}

DeviceThread::~DeviceThread() {
  posted.fetch_add(1); // and there is no job
  posted.notify_one();
  thread.join();
}

void DeviceThread::post(Job &job) {
  job.next = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex);
    (last ? last->next : first) = &job;
    last = &job;
  }
  posted.fetch_add(1);
  posted.notify_one();
}

void DeviceThread::drain() {
  const uint32_t wanted = posted.load();
  for (uint32_t seen = returned.load(); static_cast<int32_t>(seen - wanted) < 0;
       seen = returned.load())
    returned.wait(seen);
}

void DeviceThread::work() {
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

} // namespace partita::runtime
