//===- StepHeapTest.cpp - No heap in a step, libraries included -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/heap/StepHeap.h"

#include "runtime/base/StepScope.h"
#include "test/unit/runtime/CallRunner.h"
#include "test/unit/runtime/LoadedPlan.h"

#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <thread>

namespace partita::test {
namespace {

using namespace partita::runtime;

/// What `work` took from the heap and from the stacks.
template <typename Work> StepHeapCounts countsOf(Work work) {
  StepHeapCounts before = stepHeapCounts();
  work();
  StepHeapCounts after = stepHeapCounts();
  after.heap -= before.heap;
  after.served -= before.served;
  return after;
}

// Before the stacks are reserved, which no other test can show after it.
TEST(StepHeap, CountsWhatTheHeapServes) {
  StepHeapCounts counts = countsOf([] {
    StepScope step;
    ::operator delete(::operator new(100));
  });
  EXPECT_EQ(counts.heap, 1);
  EXPECT_EQ(counts.served, 0);
}

/// The compiler leaves out an allocation that nobody looks at.
void allocate(size_t bytes) {
  void *volatile block = malloc(bytes);
  free(block);
}

TEST(StepHeap, ServesStepsOnly) {
  ASSERT_TRUE(reserveStepHeap());
  StepHeapCounts counts = countsOf([] { allocate(100); });
  EXPECT_EQ(counts.served + counts.heap, 0);
  counts = countsOf([] {
    StepScope step;
    allocate(100);
  });
  EXPECT_EQ(counts.served, 1);
  EXPECT_EQ(counts.heap, 0);
}

TEST(StepHeap, BlocksAreApartAlignedAndReused) {
  ASSERT_TRUE(reserveStepHeap());
  StepHeapCounts counts = countsOf([] {
    StepScope step;
    for (int round = 0; round < 1000; ++round) {
      auto *a = static_cast<char *>(malloc(1 << 20));
      void *b = nullptr;
      ASSERT_EQ(posix_memalign(&b, 4096, 5000), 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 4096, 0u);
      auto *c = static_cast<char *>(calloc(10, 100));
      for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(c[i], 0);
      std::memset(a, 1, 1 << 20);
      std::memset(b, 2, 5000);
      std::memset(c, 3, 1000);
      EXPECT_EQ(a[(1 << 20) - 1], 1);
      EXPECT_EQ(static_cast<char *>(b)[4999], 2);
      EXPECT_GE(malloc_usable_size(c), 1000u);
      c = static_cast<char *>(realloc(c, 2000));
      EXPECT_EQ(c[999], 3);
      // Not the order in which they were made.
      free(a);
      free(c);
      free(b);
    }
  });
  EXPECT_EQ(counts.heap, 0);
  EXPECT_EQ(counts.served, 4000);
  EXPECT_LT(counts.bytes, size_t(8) << 20);
}

TEST(StepHeap, BlocksOutliveTheStepAndTheThread) {
  ASSERT_TRUE(reserveStepHeap());
  auto *text = static_cast<char *>(malloc(10));
  char *kept = nullptr;
  {
    StepScope step;
    std::thread([&] {
      kept = static_cast<char *>(malloc(100));
      std::strcpy(kept, "still here");
      free(text); // a block of the heap, freed in a step
    }).join();
  }
  EXPECT_STREQ(kept, "still here");
  kept = static_cast<char *>(realloc(kept, 5000)); // moves to the heap
  EXPECT_STREQ(kept, "still here");
  free(kept);
}

TEST(StepHeap, MoreThanAStackHoldsComesFromTheHeap) {
  ASSERT_TRUE(reserveStepHeap());
  StepHeapCounts counts = countsOf([] {
    StepScope step;
    void *large = malloc(size_t(1) << 30);
    EXPECT_NE(large, nullptr);
    free(large);
  });
  EXPECT_EQ(counts.heap, 1);
}

void expectNoHeap(const PlanSpec &plan, const SessionOptions &options) {
  ASSERT_TRUE(reserveStepHeap());
  LoadedPlan loaded(plan, options);
  ASSERT_TRUE(loaded.session);
  StepHeapCounts counts = countsOf([&] { EXPECT_TRUE(loaded.run(20)); });
  EXPECT_EQ(counts.heap, 0);
  EXPECT_GT(counts.served, 0) << "the library was expected to allocate";
}

TEST(StepHeap, NoHeapInStepsOfLibraryCalls) {
  CallCase dot;
  dot.operands = {Tensor::random({64, 64}, 1),
                  Tensor::random({64, 64}, 2).asWeight()};
  dot.result = Tensor::random({64, 64}, 3);
  // Right side not constant and no packed form: panels are packed in the step.
  CallCase plain;
  plain.operands = {Tensor::random({300, 200}, 1),
                    Tensor::random({200, 300}, 2)};
  plain.result = Tensor::random({300, 300}, 3);
  CallCase attention;
  attention.spec.call = abi::CallKind::attention;
  for (unsigned i = 0; i < 3; ++i)
    attention.operands.push_back(Tensor::random({1, 4, 32, 16}, i));
  attention.result = Tensor::random({1, 4, 32, 16}, 4);
  for (int threads : {1, 2}) {
    SessionOptions options;
    options.threads_per_device = threads;
    for (const CallCase &one : {dot, plain, attention})
      expectNoHeap(planOf(one), options);
  }
}

} // namespace
} // namespace partita::test
