//===- RemoteCpuDevice.h - A CPU that is as far away as a GPU ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests: with this device every machine can test how a session uses a
// device that is not the host. A CpuDevice computes, on its own thread, which
// takes work from a queue. Addresses of its memory are not canonical, so a
// process that accesses them without the device crashes.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_REMOTE_CPU_REMOTECPUDEVICE_H
#define PARTITA_TEST_REMOTE_CPU_REMOTECPUDEVICE_H

#include "runtime/device/cpu/CpuDevice.h"
#include "test/remote_cpu/CommandQueue.h"

#include <array>

namespace partita::runtime {

class RemoteCpuDevice final : public Device {
public:
  /// See Driver::create. Copies the weights that the device uses into its own
  /// memory.
  static Expected<std::unique_ptr<RemoteCpuDevice>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         std::shared_ptr<const KernelLibrary> kernels,
         const DeviceOptions &options, const std::vector<int> &cores);
  ~RemoteCpuDevice() override;

  bool isHost() const override { return false; }

  uint8_t *slot(int index, int micro_batch) const override;
  Expected<uint8_t *> allocate(size_t bytes, const char *what) override;
  Status upload(uint8_t *to, const void *from, size_t bytes) override;
  Status download(void *to, const uint8_t *from, size_t bytes) override;
  uint8_t *arena() const override;
  DeviceMemory memory() const override { return cpu->memory(); }

  Status letMove(const std::vector<int> &slots) override;
  Expected<Instance *> prepare(int unit) override;
  Status finish() override;

  Queue &queue() override { return *commands; }
  Status beginStep() override;
  Event closeStep() override;
  Status awaitStep(const Event &end) override;
  bool metNan() const override { return awaited.met_nan; }
  int64_t busyNs() const override { return awaited.busy_ns; }

private:
  /// What a step was like.
  struct Step {
    bool met_nan = false;
    int64_t busy_ns = 0;
  };

  class Share;

  RemoteCpuDevice();

  std::shared_ptr<Share> share;
  WeightPointers weights;
  std::unique_ptr<CommandQueue> commands;
  std::unique_ptr<CpuDevice> cpu; ///< all calls come from the queue's thread

  const std::function<Status()> begin, close; ///< calls of a step
  std::array<Step, kMostSteps> steps;
  size_t closed_count = 0;  ///< counted by the queue's thread
  size_t awaited_count = 0; ///< counted by those who wait
  Step awaited;
};

} // namespace partita::runtime

#endif // PARTITA_TEST_REMOTE_CPU_REMOTECPUDEVICE_H
