//===- SharedDevices.h - What devices of several plans share ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An artifact may have several plans: the same model for several sizes of its
// dimensions. Sessions of such plans may share memory if they never compute at
// the same time. Each device then has one arena for all plans, and one thread.
// Each constant and each packed weight exists once if the plans have the same
// bytes for it.
//
//   auto shared = std::make_shared<SharedDevices>(arenaBytes);
//   options.shared = shared;
//   auto small = Session::create(artifacts[0], options);
//   auto large = Session::create(artifacts[1], options);
//   shared->releaseUnread();
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_SHAREDDEVICES_H
#define PARTITA_RUNTIME_DEVICE_SHAREDDEVICES_H

#include "runtime/base/DeviceThread.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace partita::runtime {

/// The memory that a device shares with the same device of other plans. Each
/// kind of device that shares memory derives its own class.
class DeviceShare {
public:
  virtual ~DeviceShare() = default;
  /// Frees constants that no plan reads. Call it when the devices of all plans
  /// are loaded, while none computes.
  virtual void releaseUnread() = 0;
};

class SharedDevices {
public:
  /// `arenaBytes`: for each device, the largest arena of any plan.
  explicit SharedDevices(std::vector<size_t> arenaBytes)
      : sizes(std::move(arenaBytes)) {}

  size_t arenaBytes(int device) const {
    return sizes[static_cast<size_t>(device)];
  }

  /// The share of a device. `make` makes it when the first plan asks. Any
  /// thread may call this.
  std::shared_ptr<DeviceShare>
  of(int device, const std::function<std::shared_ptr<DeviceShare>()> &make) {
    std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<DeviceShare> &share = shares[device];
    if (!share)
      share = make();
    return share;
  }

  /// The thread of a device, where sessions have threads for their devices.
  /// Throws std::system_error if it cannot be started.
  std::shared_ptr<DeviceThread> thread(int device) {
    std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<DeviceThread> &found = threads[device];
    if (!found)
      found = startDeviceThread();
    return found;
  }

  void releaseUnread() {
    std::lock_guard<std::mutex> lock(mutex);
    for (auto &[device, share] : shares)
      share->releaseUnread();
  }

private:
  const std::vector<size_t> sizes;
  std::mutex mutex;
  std::map<int, std::shared_ptr<DeviceShare>> shares;
  std::map<int, std::shared_ptr<DeviceThread>> threads;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_SHAREDDEVICES_H
