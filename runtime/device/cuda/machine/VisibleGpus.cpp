//===- VisibleGpus.cpp - The GPUs that this process may use ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/machine/VisibleGpus.h"

namespace partita::runtime::cuda {

Expected<GpuFacts> readFacts(const Api &api, int number) {
  const std::string what =
      "cannot read the properties of GPU " + std::to_string(number);
  GpuFacts facts;
  Ordinal ordinal = 0;
  int major = 0, minor = 0;
  for (Result result :
       {api.deviceGet(&ordinal, number),
        api.deviceGetName(facts.model, sizeof(facts.model), ordinal),
        api.deviceGetUuid(&facts.id, ordinal),
        api.deviceGetAttribute(
            &major, DeviceAttribute::compute_capability_major, ordinal),
        api.deviceGetAttribute(
            &minor, DeviceAttribute::compute_capability_minor, ordinal)})
    PARTITA_TRY(api.check(result, what.c_str()));
  facts.model[sizeof(facts.model) - 1] = 0;
  facts.architecture = major * 10 + minor;
  return facts;
}

VisibleGpus readVisibleGpus() {
  VisibleGpus visible;
  auto api = loadApi();
  int count = 0;
  if (!api || (*api)->deviceGetCount(&count) != Result::success ||
      (*api)->driverGetVersion(&visible.driver) != Result::success)
    return {};
  for (int number = 0; number < count; ++number) {
    auto facts = readFacts(**api, number);
    if (!facts)
      return {};
    visible.gpus.push_back(*facts);
  }
  return visible;
}

} // namespace partita::runtime::cuda
