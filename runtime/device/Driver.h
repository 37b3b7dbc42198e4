//===- Driver.h - A kind of devices -----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_DRIVER_H
#define PARTITA_RUNTIME_DEVICE_DRIVER_H

#include "runtime/device/Device.h"
#include "runtime/device/DeviceFigures.h"
#include "runtime/device/SharedDevices.h"

#include <memory>
#include <span>

namespace partita::runtime {

class Artifact;

struct DeviceOptions {
  int threads_per_device = 1; ///< cores per device
  bool keep_nan = false;      ///< use no code that turns NaN into a number
  int max_cpu_level = 4;      ///< use no object above this x86-64 level
  double timeout_s = 60;      ///< deadline of every wait
  /// What to share with devices of other plans; null: nothing.
  std::shared_ptr<SharedDevices> shared;
  /// By device of the plan: the number of the hardware that it uses, e.g. a
  /// GPU. Several devices may use the same. Empty: each its own, in their
  /// order. CPU devices do not read it.
  std::vector<int> places = {};
  /// Launch a unit as one CUDA graph, where that is possible. CPU devices do
  /// not read it.
  bool graphs = true;
};

/// State that the devices of one kind share in a process: code that is loaded
/// once.
class Driver {
public:
  virtual ~Driver() = default;

  /// Creates device `index` of the plan: allocates arena and constant region
  /// and runs the load program. Its threads are pinned to `cores`; empty: they
  /// are not pinned. The plan must have been verified. The plan and `weights`
  /// must outlive the device.
  virtual Expected<std::unique_ptr<Device>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         const DeviceOptions &options, const std::vector<int> &cores) = 0;
};

/// Loads the driver of a kind of devices from an artifact.
using LoadDriver = Expected<std::unique_ptr<Driver>> (*)(
    const Artifact &artifact, const DeviceOptions &options);

/// Measures one device of each architecture that this machine has. None if it
/// has no devices of the kind. An error if they cannot be used.
using MeasureDevices = Expected<std::vector<DeviceFigures>> (*)();

/// What a machine must have to run an artifact's devices of the kind, for
/// people: hardware, a driver, libraries.
using DescribeNeeds = std::vector<std::string> (*)(const Artifact &artifact);

/// A kind of device that this program supports.
struct DeviceType {
  abi::DeviceKind kind;
  bool is_host; ///< Device::isHost
  /// Whether a TaskObserver is told of a task before the next one begins, and
  /// may look at the device's memory then (Device::download).
  bool shows_tasks;
  LoadDriver load;
  MeasureDevices measure; ///< null: what is measured of cores says it
  DescribeNeeds needs;
  /// The library that computes for it, with its version, e.g. "oneDNN 2.6.3";
  /// null if this program is linked with none.
  std::string (*library)();
};

/// The type of a kind of device; null if this program does not support it.
const DeviceType *findDeviceType(abi::DeviceKind kind);

/// All of them.
std::span<const DeviceType> getDeviceTypes();

/// Adds a kind that a program brings itself, before it opens an artifact. Tests
/// have such a kind. Returns true.
bool addDeviceType(const DeviceType &type);

/// What the devices of an artifact need, of all kinds.
std::vector<std::string> describeNeeds(const Artifact &artifact);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_DRIVER_H
