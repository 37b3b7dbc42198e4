//===- Fleet.h - Devices that NCCL joins ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_NCCL_FLEET_H
#define PARTITA_TEST_UNIT_NCCL_FLEET_H

#include "runtime/comm/Ends.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/comm/nccl/Endpoint.h"
#include "runtime/comm/nccl/NcclCommunicator.h"
#include "test/unit/comm/Ends.h"
#include "test/unit/cuda/Loaded.h"

#include <memory>
#include <optional>
#include <vector>

namespace partita::test {

constexpr int kDevices = 4;

/// What the processes of the test know of each other; one process has all
/// devices.
struct World {
  int rank = 0;
  std::vector<int> process_of = std::vector<int>(kDevices, 0);
  runtime::nccl::Processes processes;
  /// What NCCL has in front of it.
  std::function<std::shared_ptr<runtime::Communicator>(
      const runtime::nccl::Traffic &, double timeout_s)>
      base = [](const runtime::nccl::Traffic &traffic, double timeout_s) {
        return std::make_shared<runtime::LocalCommunicator>(
            traffic.channels, traffic.micro_batches, timeout_s, false,
            traffic.collectives);
      };
  /// Waits for the others.
  std::function<void()> barrier = [] {};
};
inline World &world() {
  static World the;
  return the;
}

/// The devices of this process, each on a GPU of its own, and the communicator
/// of all.
class Fleet {
public:
  explicit Fleet(
      const runtime::nccl::Traffic &traffic, double timeout_s = 60,
      const runtime::nccl::Library &library = runtime::nccl::loadLibrary(),
      const runtime::cuda::Api &api = **runtime::cuda::loadApi())
      : artifact(openPlan(onGpus(doublingPipeline(kDevices, 1)))) {
    runtime::nccl::Gpus gpus;
    for (int device = 0; device < kDevices; ++device)
      gpus.push_back(device);
    auto made =
        runtime::nccl::withNccl(world().base(traffic, timeout_s), traffic, gpus,
                                world().processes, timeout_s, library);
    status = made.status();
    if (!made)
      return;
    comm = made->communicator;
    ends = std::make_unique<Ends>(*comm);
    remark = made->remark;
    runtime::DeviceOptions options;
    options.timeout_s = timeout_s;
    for (int device = 0; device < kDevices; ++device)
      options.places.push_back(device);
    for (int device = 0; device < kDevices; ++device) {
      loaded.emplace_back();
      if (world().process_of[size_t(device)] != world().rank)
        continue;
      loaded.back().emplace(artifact, api, device, options);
      EXPECT_TRUE(loaded.back()->device) << loaded.back()->status.message();
      comm->attach(device, *loaded.back()->device);
      here.push_back(device);
    }
  }
  ~Fleet() {
    for (int device : here)
      EXPECT_TRUE(comm->detach(device));
  }

  runtime::Device &device(int index) { return *loaded[size_t(index)]->device; }
  runtime::Queue &queue(int index) { return device(index).queue(); }
  uint8_t *allocate(int index, size_t bytes) {
    auto made = device(index).allocate(bytes + 1, "a test");
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *made;
  }
  /// All that a device was given is done.
  runtime::Status await(int index) {
    return queue(index).synchronize(queue(index).record());
  }

  std::shared_ptr<const runtime::Artifact> artifact;
  runtime::Status status;
  std::string remark;
  std::shared_ptr<runtime::Communicator> comm;
  std::unique_ptr<Ends> ends;
  std::vector<std::optional<LoadedDevice>> loaded;
  std::vector<int> here; ///< devices of this process
};

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_NCCL_FLEET_H
