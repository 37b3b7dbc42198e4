//===- TestedDevices.h - The devices that plans of tests use ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans of tests have up to 8 devices, and most machines have fewer GPUs. So
// several devices of a plan share a GPU there.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_RUNTIME_TESTEDDEVICES_H
#define PARTITA_TEST_UNIT_RUNTIME_TESTEDDEVICES_H

#include "runtime/device/cuda/driver/Api.h"
#include "runtime/session/Session.h"
#include "test/unit/runtime/PlanBuilder.h"

namespace partita::test {

/// SessionOptions.places: device k uses GPU k modulo the number of GPUs. Empty
/// if no GPUs are tested.
inline std::vector<int> testedPlaces() {
  constexpr int kMostDevices = 64;
  if (testedKind() != abi::DeviceKind::cuda)
    return {};
  auto api = runtime::cuda::loadApi();
  int count = 0;
  if (!api || (*api)->deviceGetCount(&count) != runtime::cuda::Result::success)
    return {}; // the session says why
  std::vector<int> places;
  for (int device = 0; device < kMostDevices; ++device)
    places.push_back(device % count);
  return places;
}

/// Session::create, on the devices that are tested.
inline runtime::Expected<std::unique_ptr<runtime::Session>>
createSession(std::shared_ptr<const runtime::Artifact> artifact,
              runtime::SessionOptions options,
              std::shared_ptr<runtime::Communicator> comm = nullptr) {
  options.places = testedPlaces();
  return runtime::Session::create(std::move(artifact), options,
                                  std::move(comm));
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_RUNTIME_TESTEDDEVICES_H
