//===- RemoteCpuDevice.cpp - A CPU that is as far away as a GPU -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/remote_cpu/RemoteCpuDevice.h"

#include "runtime/base/Programs.h"

#include <cstring>
#include <map>

namespace partita::runtime {

/// What a device shares with the same device of other plans. They know a
/// weight by its place, so it lives as long as what they share.
class RemoteCpuDevice::Share final : public DeviceShare {
public:
  /// `weight` in the device's own memory, as large as `bytes`.
  Expected<const uint8_t *> bring(const uint8_t *weight, size_t bytes) {
    Arena &own = weights[{weight, bytes}];
    if (!own.data()) {
      auto made = Arena::map(bytes, "a weight");
      if (!made)
        return made.status();
      own = std::move(*made);
      if (bytes)
        std::memcpy(own.data(), weight, bytes);
    }
    return static_cast<const uint8_t *>(own.data());
  }
  void releaseUnread() override { cpu->releaseUnread(); }

  std::shared_ptr<SharedDevices> cpu; ///< null: there are no other plans

private:
  std::map<std::pair<const uint8_t *, size_t>, Arena> weights;
};

RemoteCpuDevice::RemoteCpuDevice()
    : begin([this] { return cpu->beginStep(); }), close([this] {
        const Status status = cpu->endStep();
        steps[closed_count++ % kMostSteps] = {cpu->metNan(), cpu->busyNs()};
        return status;
      }) {}

Expected<std::unique_ptr<RemoteCpuDevice>> RemoteCpuDevice::create(
    const abi::Plan &plan, int index, const WeightPointers &weights,
    std::shared_ptr<const KernelLibrary> kernels, const DeviceOptions &options,
    const std::vector<int> &cores) {
  std::unique_ptr<RemoteCpuDevice> self(new RemoteCpuDevice);
  const abi::Program &program = programOf(plan, index);
  auto make = [&]() -> std::shared_ptr<DeviceShare> {
    auto made = std::make_shared<Share>();
    if (options.shared) // it is asked for the device's own arena alone
      made->cpu = std::make_shared<SharedDevices>(std::vector<size_t>(
          static_cast<size_t>(index) + 1, options.shared->arenaBytes(index)));
    return made;
  };
  self->share = std::static_pointer_cast<Share>(
      options.shared ? options.shared->of(index, make) : make());
  self->weights.assign(weights.size(), nullptr);
  for (int64_t i = 0; i < length(program.slots()); ++i) {
    const abi::Slot &slot = *program.slots()->Get(static_cast<unsigned>(i));
    int64_t weight = -1;
    if (slot.space() == abi::Space::weight)
      weight = slot.offset();
    else if (slot.space() == abi::Space::state)
      weight =
          plan.states()->Get(static_cast<unsigned>(slot.offset()))->weight();
    if (weight < 0 || self->weights[static_cast<size_t>(weight)])
      continue;
    auto own = self->share->bring(
        weights[static_cast<size_t>(weight)],
        static_cast<size_t>(
            plan.weights()->Get(static_cast<unsigned>(weight))->bytes()));
    if (!own)
      return own.status();
    self->weights[static_cast<size_t>(weight)] = *own;
  }
  self->commands = std::make_unique<CommandQueue>(options.timeout_s);
  DeviceOptions own = options;
  own.shared = self->share->cpu;
  Status made = self->commands->call([&] {
    auto cpu = CpuDevice::create(plan, index, self->weights, false, kernels,
                                 own, cores);
    if (!cpu)
      return cpu.status();
    self->cpu = std::move(*cpu);
    return Status();
  });
  if (!made.ok())
    return made;
  self->commands->useQueue(self->cpu->queue());
  return self;
}

RemoteCpuDevice::~RemoteCpuDevice() {
  commands.reset(); // its thread, before what it works with
}

uint8_t *RemoteCpuDevice::slot(int index, int micro_batch) const {
  return hidden(cpu->slot(index, micro_batch));
}

uint8_t *RemoteCpuDevice::arena() const { return hidden(cpu->arena()); }

Expected<uint8_t *> RemoteCpuDevice::allocate(size_t bytes, const char *what) {
  auto made = cpu->allocate(bytes, what);
  if (!made)
    return made.status();
  return hidden(*made);
}

Status RemoteCpuDevice::upload(uint8_t *to, const void *from, size_t bytes) {
  return cpu->upload(real(to), from, bytes);
}

Status RemoteCpuDevice::download(void *to, const uint8_t *from, size_t bytes) {
  return cpu->download(to, real(from), bytes);
}

Status RemoteCpuDevice::letMove(const std::vector<int> &slots) {
  return slots.empty()
             ? Status()
             : Status::error("this device's slots lie in its own memory");
}

Expected<Instance *> RemoteCpuDevice::prepare(int unit) {
  Instance *prepared = nullptr;
  Status status = commands->call([&] {
    auto instance = cpu->prepare(unit);
    if (!instance)
      return instance.status();
    prepared = *instance;
    return Status();
  });
  if (!status.ok())
    return status;
  return prepared;
}

Status RemoteCpuDevice::finish() {
  return commands->call([&] { return cpu->finish(); });
}

Status RemoteCpuDevice::beginStep() { return commands->enqueueCall(&begin); }

Event RemoteCpuDevice::closeStep() {
  (void)commands->enqueueCall(&close); // an error stays, and is told later
  return commands->record();
}

Status RemoteCpuDevice::awaitStep(const Event &end) {
  if (Status status = commands->synchronize(end); !status.ok())
    return status;
  awaited = steps[awaited_count++ % kMostSteps];
  return Status();
}

namespace {

class RemoteCpuDriver final : public Driver {
public:
  explicit RemoteCpuDriver(std::shared_ptr<const KernelLibrary> kernels)
      : kernels(std::move(kernels)) {}
  Expected<std::unique_ptr<Device>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         const DeviceOptions &options, const std::vector<int> &cores) override {
    auto made =
        RemoteCpuDevice::create(plan, index, weights, kernels, options, cores);
    if (!made)
      return made.status();
    return std::unique_ptr<Device>(std::move(*made));
  }

private:
  std::shared_ptr<const KernelLibrary> kernels;
};

/// Loads the kernels of an artifact for this processor.
Expected<std::unique_ptr<Driver>> load(const Artifact &artifact,
                                       const DeviceOptions &options) {
  auto kernels = KernelLibrary::load(artifact, options.max_cpu_level);
  if (!kernels)
    return kernels.status();
  return std::unique_ptr<Driver>(new RemoteCpuDriver(std::move(*kernels)));
}

/// Programs that are linked with this file have the kind.
[[maybe_unused]] const bool added = addDeviceType(
    {abi::DeviceKind::remote_cpu, /*is_host=*/false, /*shows_tasks=*/true, load,
     nullptr, describeCpuNeeds, nullptr});

} // namespace

} // namespace partita::runtime
