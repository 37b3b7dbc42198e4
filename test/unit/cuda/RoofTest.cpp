//===- RoofTest.cpp - How fast a GPU multiplies ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What test/gpu/run.sh holds models against: PARTITA_ROOF_ROWS says how large
// the products are.
//
//===----------------------------------------------------------------------===//

#include "test/unit/cuda/CallPlan.h"

#include <algorithm>
#include <cstdio>

namespace partita::test {
namespace {

using namespace runtime;

struct Times final : TaskObserver {
  Times() : TaskObserver(/*timed=*/true) {}
  void finished(size_t, int64_t begin, int64_t end) override {
    ns.push_back(end - begin);
  }
  std::vector<int64_t> ns;
};

TEST(CudaRoof, Products) {
  SKIP_WITHOUT_CUBLASLT();
  const char *given = std::getenv("PARTITA_ROOF_ROWS");
  const int64_t n = given ? std::atoll(given) : 48;
  for (const auto &[type, tolerance] :
       {std::pair(abi::DType::f32, 1e-4), std::pair(abi::DType::f16, 1e-3),
        std::pair(abi::DType::bf16, 8e-3)}) {
    CallPlan plan;
    plan.spec.programs[0].workspace_bytes = 32 << 20;
    InstructionSpec dot;
    dot.views = {plan.tensor(type, {n, n}), plan.tensor(type, {n, n})};
    plan.add(dot, type, {n, n});
    LoadedDevice loaded(plan.open(), **cuda::loadApi());
    ASSERT_TRUE(loaded.device) << loaded.status.message();
    Device &device = *loaded.device;
    auto unit = device.prepare(0);
    ASSERT_TRUE(unit.ok() && device.finish().ok());
    Times times;
    for (int step = 0; step < 9; ++step) {
      ASSERT_TRUE(device.beginStep().ok());
      ASSERT_TRUE(device.queue().run(**unit, 0, &times).ok());
      const Status status = device.endStep();
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_EQ(times.ns.size(), 9u);
    std::nth_element(times.ns.begin(), times.ns.begin() + 4, times.ns.end());
    EXPECT_GT(times.ns[4], 0);
    const auto size = static_cast<long long>(n);
    std::printf("roof of products of %s, %lld x %lld x %lld: %.3f TFLOP/s\n",
                abi::EnumNameDType(type), size, size, size,
                2e-3 * double(n) * double(n) * double(n) /
                    double(std::max<int64_t>(times.ns[4], 1)));

    std::vector<uint8_t> row(static_cast<size_t>(n * bytesOf(type)));
    ASSERT_TRUE(device
                    .download(row.data(), device.slot(plan.calls[0].slot, 0),
                              row.size())
                    .ok());
    for (int64_t column = 0; column < n; column += 5) {
      double wanted = 0;
      for (int64_t k = 0; k < n; ++k)
        wanted +=
            plan.at(dot.views[0], {0, k}) * plan.at(dot.views[1], {k, column});
      ASSERT_NEAR(numberAt(type, &row[size_t(column * bytesOf(type))]), wanted,
                  tolerance * (1 + std::abs(wanted)));
    }
  }
}

} // namespace
} // namespace partita::test
