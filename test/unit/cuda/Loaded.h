//===- Loaded.h - Devices of a plan, on the driver that there is -*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_LOADED_H
#define PARTITA_TEST_UNIT_CUDA_LOADED_H

#include "runtime/base/Elements.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "test/unit/runtime/Pipelines.h"

#include <gtest/gtest.h>

/// Skips a test where there is no driver or no GPU.
#define SKIP_WITHOUT_GPU()                                                     \
  if (auto api = runtime::cuda::loadApi(); !api)                               \
  GTEST_SKIP() << api.status().message()
/// The same where there is no cuDNN.
#define SKIP_WITHOUT_CUDNN()                                                   \
  SKIP_WITHOUT_GPU();                                                          \
  if (auto dnn = runtime::cuda::cudnn::loadApi(); !dnn)                        \
  GTEST_SKIP() << dnn.status().message()

namespace partita::test {

inline PlanSpec onGpus(PlanSpec plan) {
  for (DeviceSpec &device : plan.devices)
    device.kind = abi::DeviceKind::cuda;
  for (size_t i = 0; i < plan.devices.size(); ++i)
    plan.devices[i].name = "cuda:" + std::to_string(i);
  return plan;
}

inline std::shared_ptr<const runtime::Artifact>
openPlan(const PlanSpec &plan,
         const std::vector<ObjectSpec> &objects = testObjects()) {
  const std::string path = temporary("cuda.partita");
  writeArtifact(path, plan, objects);
  auto artifact = runtime::Artifact::open(path);
  ::unlink(path.c_str());
  EXPECT_TRUE(artifact.ok()) << artifact.status().message();
  return artifact ? *artifact : nullptr;
}

/// A device of a plan; null with a failure.
struct LoadedDevice {
  LoadedDevice(std::shared_ptr<const runtime::Artifact> opened,
               const runtime::cuda::Api &api, int index = 0,
               runtime::DeviceOptions options = {},
               const runtime::cuda::LibraryApis &libraries = {})
      : artifact(std::move(opened)) {
    if (options.places.empty())
      options.places.assign(artifact->plan().devices()->size(), 0);
    for (int64_t i = 0; i < runtime::length(artifact->plan().weights()); ++i)
      weights.push_back(artifact->weight(static_cast<int>(i)));
    auto loaded =
        runtime::cuda::makeCudaDriver(*artifact, options, api, libraries);
    status = loaded.status();
    if (!loaded)
      return;
    driver = std::move(*loaded);
    auto made = driver->create(artifact->plan(), index, weights, options, {});
    status = made.status();
    if (made)
      device = std::move(*made);
  }

  std::shared_ptr<const runtime::Artifact> artifact;
  runtime::WeightPointers weights;
  std::unique_ptr<runtime::Driver> driver;
  std::unique_ptr<runtime::Device> device;
  runtime::Status status;
};

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_LOADED_H
