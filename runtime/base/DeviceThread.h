//===- DeviceThread.h - The thread that works for a device ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_DEVICETHREAD_H
#define PARTITA_RUNTIME_BASE_DEVICETHREAD_H

#include <memory>

namespace partita::runtime {

/// Carries out jobs in the order in which they are posted.
class DeviceThread {
public:
  class Job {
  public:
    virtual ~Job() = default;
    virtual void run() = 0;
    Job *next = nullptr; ///< of those that a thread has not begun
  };

  virtual ~DeviceThread() = default;

  /// Any thread may call this. The job must not be posted again before it was
  /// run. Allocates nothing.
  virtual void post(Job &job) = 0;

  /// Waits until all that was posted before has returned.
  virtual void drain() = 0;

  /// Whether a job has been run when `post` returns.
  virtual bool runsAtOnce() const = 0;
};

/// A thread of its own. Sessions of several plans share the thread of a device.
/// So the device has one team of threads for its loops (ThreadTeam.h): OpenMP's
/// runtime lets the threads of teams sleep between loops if all teams together
/// have more of them than there are cores. Finishes what was posted when it is
/// destroyed. Throws std::system_error if no thread can be started.
std::shared_ptr<DeviceThread> startDeviceThread();

/// The thread that posts: for a session of one device, which need not wait for
/// another thread to wake up. The cores of the calling thread are restored when
/// it is destroyed.
std::shared_ptr<DeviceThread> useCallersThread();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_DEVICETHREAD_H
