//===- DeviceThread.h - The thread that works for a device ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_DEVICETHREAD_H
#define PARTITA_RUNTIME_BASE_DEVICETHREAD_H

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace partita::runtime {

/// Carries out jobs in the order in which they are posted. Sessions of several
/// plans share the thread of a device. So the device has one team of threads
/// for its loops (ThreadTeam.h): OpenMP's runtime lets the threads of teams
/// sleep between loops if all teams together have more of them than there are
/// cores.
class DeviceThread {
public:
  class Job {
  public:
    virtual ~Job() = default;
    virtual void run() = 0;

  private:
    friend class DeviceThread;
    Job *next = nullptr;
  };

  /// Throws std::system_error if no thread can be started.
  DeviceThread();
  /// Finishes what was posted.
  ~DeviceThread();
  DeviceThread(const DeviceThread &) = delete;
  DeviceThread &operator=(const DeviceThread &) = delete;

  /// Any thread may call this. The job must not be posted again before it was
  /// run. Allocates nothing.
  void post(Job &job);

  /// Waits until all that was posted before has returned.
  void drain();

private:
  void work();

  std::mutex mutex; ///< of the list
  Job *first = nullptr, *last = nullptr;
  /// Jobs, counted; the counters go around. One more is posted at the end.
  std::atomic<uint32_t> posted = 0, returned = 0;
  std::thread thread;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_DEVICETHREAD_H
