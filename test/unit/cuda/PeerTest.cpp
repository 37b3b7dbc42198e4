//===- PeerTest.cpp - Copies between two GPUs -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/cuda/Loaded.h"
#include "test/unit/cuda/WrappedApi.h"

#include <dlfcn.h>

namespace partita::test {
namespace {

using namespace runtime;

/// Devices of a plan, each on a GPU of its own.
struct Peers {
  /// On `count` GPUs, from the number `first` on.
  explicit Peers(const Api &api, int count, int first = 0)
      : artifact(openPlan(onGpus(doublingPipeline(count, 1)))) {
    DeviceOptions options;
    for (int i = 0; i < count; ++i)
      options.places.push_back(first + i);
    auto loaded = cuda::makeCudaDriver(*artifact, options, api);
    EXPECT_TRUE(loaded.ok());
    driver = std::move(*loaded);
    for (int i = 0; i < count && status.ok(); ++i) {
      auto made = driver->create(artifact->plan(), i, {}, options, {});
      status = made.status();
      if (made)
        devices.push_back(std::move(*made));
    }
  }

  /// Whether each device takes bytes of the one before.
  bool copies() {
    std::vector<float> got(16);
    bool ok = true;
    for (size_t i = 1; i < devices.size(); ++i) {
      const std::vector<float> sent(16, float(i));
      Device &from = *devices[i - 1], &to = *devices[i];
      ok &= from.upload(from.slot(0, 0), sent.data(), 64).ok();
      ok &= to.beginStep().ok();
      ok &= to.queue().copyFrom(from, to.slot(0, 0), from.slot(0, 0), 64).ok();
      ok &= to.endStep().ok();
      ok &= to.download(got.data(), to.slot(0, 0), 64).ok() && got == sent;
    }
    return ok;
  }

  std::shared_ptr<const Artifact> artifact;
  std::unique_ptr<Driver> driver;
  std::vector<std::unique_ptr<Device>> devices;
  Status status;
};

/// The emulator's counter; null: this is another driver.
uint64_t (*counter())(const char *) {
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<uint64_t (*)(const char *)>(
      ::dlsym(driver, "cuEmuCount"));
}

bool hasGpus(int wanted) {
  int count = 0;
  return (*cuda::loadApi())->deviceGetCount(&count) == Result::success &&
         count >= wanted;
}

#define SKIP_WITHOUT_GPUS(COUNT)                                               \
  SKIP_WITHOUT_GPU();                                                          \
  if (!hasGpus(COUNT))                                                         \
  GTEST_SKIP() << "this machine has fewer than " << COUNT << " GPUs"

TEST(CudaPeers, ReachEachOtherBeforeTheFirstStep) {
  SKIP_WITHOUT_GPUS(3);
  WrappedApi wrapped(**cuda::loadApi());
  for (int time = 1; time <= 2; ++time) {
    Peers peers(wrapped.api, 3);
    ASSERT_TRUE(peers.status.ok()) << peers.status.message();
    // Both ways of three pairs.
    EXPECT_EQ(wrapped.calls("deviceCanAccessPeer"), 6 * time);
    auto *count = counter();
    const uint64_t staged = count ? count("staged-copies") : 0,
                   copied = count ? count("peer-copies") : 0;
    EXPECT_TRUE(peers.copies());
    EXPECT_EQ(wrapped.calls("deviceCanAccessPeer"), 6 * time);
    if (count) {
      EXPECT_EQ(wrapped.calls("ctxEnablePeerAccess"), 6 * time);
      EXPECT_EQ(count("peer-copies"), copied + 2);
      EXPECT_EQ(count("staged-copies"), staged);
    }
  }
}

TEST(CudaPeers, GoThroughTheHostWhereThereIsNoWay) {
  SKIP_WITHOUT_GPUS(2);
  WrappedApi wrapped(**cuda::loadApi());
  // Contexts stay, and so does a way that another test has opened.
  const int first = hasGpus(32) ? 30 : 0;
  for (Result said :
       {Result::peer_access_unsupported, Result::too_many_peers}) {
    wrapped.answer = [&](const std::string &name, int) {
      return name == "ctxEnablePeerAccess" ? std::optional(said) : std::nullopt;
    };
    Peers peers(wrapped.api, 2, first);
    ASSERT_TRUE(peers.status.ok()) << peers.status.message();
    EXPECT_TRUE(peers.copies());
    if (auto *count = counter(); count && first > 0) {
      EXPECT_GT(count("staged-copies"), 0u);
    }
  }
  // Another plan may have been first.
  wrapped.answer = [&](const std::string &name, int) {
    return name == "ctxEnablePeerAccess"
               ? std::optional(Result::peer_access_already_enabled)
               : std::nullopt;
  };
  EXPECT_TRUE(Peers(wrapped.api, 2).status.ok());
}

TEST(CudaPeers, AnErrorIsTold) {
  SKIP_WITHOUT_GPUS(2);
  WrappedApi wrapped(**cuda::loadApi());
  for (const char *call : {"deviceCanAccessPeer", "ctxEnablePeerAccess"}) {
    wrapped.answer = [&](const std::string &name, int) {
      return name == call ? std::optional(Result::launch_failed) : std::nullopt;
    };
    const Peers peers(wrapped.api, 2);
    EXPECT_NE(peers.status.message().find(" cannot reach GPU "),
              std::string::npos)
        << peers.status.message();
  }
}

} // namespace
} // namespace partita::test
