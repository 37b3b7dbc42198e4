//===- AllocationTest.cpp - A step allocates nothing ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces the allocation functions of the process by counting ones. What
// oneDNN allocates inside its own calls is counted apart and printed.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"
#include "test/unit/runtime/CallRunner.h"
#include "test/unit/runtime/LoadedPlan.h"

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <thread>

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
}

namespace {

std::atomic<bool> counting = false;
std::atomic<long> ours = 0, library = 0;
/// Depth of calls into the library, over all threads: its own threads allocate
/// for it as well.
std::atomic<int> inside = 0;

void count() {
  if (counting.load(std::memory_order_relaxed))
    (inside.load() ? library : ours).fetch_add(1);
}

} // namespace

extern "C" {
void *malloc(size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes) {
  count();
  return __libc_calloc(n, bytes);
}
void *realloc(void *old, size_t bytes) {
  count();
  return __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **out, size_t alignment, size_t bytes) {
  count();
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}

// Stands before the library's own in the order of symbols.
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive,
                                     dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t *args) {
  using Function = dnnl_status_t (*)(const_dnnl_primitive_t, dnnl_stream_t, int,
                                     const dnnl_exec_arg_t *);
  static Function next =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  inside.fetch_add(1);
  dnnl_status_t status = next(primitive, stream, count, args);
  inside.fetch_sub(1);
  return status;
}
}

namespace partita::test {
namespace {

using namespace partita::runtime;

void expectNoAllocation(const PlanSpec &plan, const SessionOptions &options) {
  LoadedPlan loaded(plan, options);
  ASSERT_TRUE(loaded.session);
  ours = library = 0;
  counting = true;
  bool ok = loaded.run(20);
  counting = false;
  EXPECT_TRUE(ok);
  EXPECT_EQ(ours.load(), 0);
  std::printf("allocations of oneDNN in 20 steps: %ld\n", library.load());
}

TEST(Allocation, CountsAtAll) {
  ours = 0;
  counting = true;
  auto *value = new std::string(100, 'x');
  counting = false;
  delete value;
  EXPECT_GE(ours.load(), 2);
}

TEST(Allocation, PipelineOfKernels) {
  SessionOptions options;
  options.profile = true;
  expectNoAllocation(doublingPipeline(1, 4), options);
  expectNoAllocation(doublingPipeline(3, 4), options);
  options.threads_per_device = 2;
  options.measure_arena = true;
  expectNoAllocation(doublingPipeline(2, 4, 5000), options);
}

TEST(Allocation, LibraryCalls) {
  CallCase dot;
  dot.operands = {Tensor::random({64, 64}, 1),
                  Tensor::random({64, 64}, 2).asWeight()};
  dot.result = Tensor::random({64, 64}, 3);
  expectNoAllocation(planOf(dot), {});
  CallCase attention;
  attention.spec.call = abi::CallKind::attention;
  for (unsigned i = 0; i < 3; ++i)
    attention.operands.push_back(Tensor::random({1, 4, 32, 16}, i));
  attention.result = Tensor::random({1, 4, 32, 16}, 4);
  expectNoAllocation(planOf(attention), {});
}

TEST(Allocation, Collectives) {
  constexpr int kRounds = 20;
  std::vector<CollectiveInfo> infos;
  for (CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather,
        CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
        CollectiveKind::broadcast})
    for (int64_t part : {3, 30000})
      infos.push_back(
          {kind, Reduction::sum, abi::DType::f16, 2, part, {{0, 1}}});
  LocalCommunicator comm({}, 1, 60, true, infos);
  auto round = [&](int device, std::vector<uint8_t> &from,
                   std::vector<uint8_t> &to) {
    bool ok = true;
    for (int i = 0; i < int(infos.size()); ++i)
      ok &= comm.start(i, device, 0, from.data(), to.data()).ok() &&
            comm.finish(i, device, 0).ok();
    return ok;
  };
  bool there = true, here = true;
  std::thread other([&] {
    std::vector<uint8_t> from(240000), to(240000);
    for (int i = 0; i < kRounds; ++i)
      there &= round(1, from, to);
  });
  // The other device comes to the second round after it has allocated, and to
  // the end of the last one after the counting.
  std::vector<uint8_t> from(240000), to(240000);
  here &= round(0, from, to);
  ours = library = 0;
  counting = true;
  for (int i = 1; i < kRounds - 1; ++i)
    here &= round(0, from, to);
  counting = false;
  here &= round(0, from, to);
  other.join();
  EXPECT_TRUE(here && there);
  EXPECT_EQ(ours.load() + library.load(), 0);
}

} // namespace
} // namespace partita::test
