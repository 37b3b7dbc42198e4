//===- LoaderTest.cpp - Steps of samples, filled ahead --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/data/Support.h"

#include "runtime/data/Loader.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

using namespace partita;
using namespace partita::data;
using namespace partita::data::testing;
using partita::abi::DType;

// Counts what is taken from the heap. Sanitizers have functions of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PARTITA_COUNTS_HEAP 1
static std::atomic<long> allocations = 0;

void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#endif

namespace {

/// Samples 0 to count - 1, each its own number.
LoaderInput numbers(int64_t count, const std::string &name = "x") {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(i);
  return {name,
          makeDataset<int64_t>(DType::i64, {count}, values, "'" + name + "'"),
          DType::i64,
          {}};
}

/// A step as a test compares it.
struct Seen {
  int64_t epoch, position, firstSample;
  std::vector<int64_t> samples;
  bool operator==(const Seen &) const = default;
};

Seen look(const LoadedStep &step) {
  std::vector<int64_t> samples;
  for (double value : valuesOf(step.inputs[0]))
    samples.push_back(int64_t(value));
  samples.resize(static_cast<size_t>(step.samples));
  return {step.epoch, step.position, step.firstSample, samples};
}

/// The next `count` steps, or all of them.
std::vector<Seen> take(Loader &loader, size_t count = SIZE_MAX) {
  std::vector<Seen> seen;
  while (seen.size() < count) {
    auto step = loader.next();
    EXPECT_TRUE(step.ok()) << step.status().message();
    if (!step || !*step)
      break;
    seen.push_back(look(**step));
    loader.release(*step);
  }
  return seen;
}

std::unique_ptr<Loader> makeLoader(int64_t samples,
                                   const LoaderOptions &options) {
  auto loader = Loader::create({numbers(samples)}, options);
  EXPECT_TRUE(loader.ok()) << loader.status().message();
  return std::move(*loader);
}

TEST(Loader, givesStepsInOrderAndDropsTheRest) {
  auto loader = makeLoader(
      5, {.samplesPerStep = 2, .order = Order::Kind::inOrder, .endEpoch = 2});
  EXPECT_EQ(loader->samples(), 5);
  EXPECT_EQ(loader->stepsPerEpoch(), 2);
  EXPECT_EQ(loader->samplesDropped(), 1);
  EXPECT_EQ(take(*loader), (std::vector<Seen>{{0, 0, 0, {0, 1}},
                                              {0, 2, 2, {2, 3}},
                                              {1, 0, 5, {0, 1}},
                                              {1, 2, 7, {2, 3}}}));
  // The end stays the end.
  EXPECT_EQ(take(*loader), std::vector<Seen>());
}

TEST(Loader, endsAnEpochWithAPartOfAStep) {
  LoaderOptions options = {.samplesPerStep = 4,
                           .samplesPerPart = 2,
                           .order = Order::Kind::inOrder,
                           .endEpoch = 2};
  auto loader = makeLoader(7, options);
  EXPECT_EQ(loader->stepsPerEpoch(), 2);
  EXPECT_EQ(loader->samplesDropped(), 1);
  EXPECT_EQ(take(*loader), (std::vector<Seen>{{0, 0, 0, {0, 1, 2, 3}},
                                              {0, 4, 4, {4, 5}},
                                              {1, 0, 7, {0, 1, 2, 3}},
                                              {1, 4, 11, {4, 5}}}));
  loader = makeLoader(3, options);
  EXPECT_EQ(loader->stepsPerEpoch(), 1);
  EXPECT_EQ(take(*loader),
            (std::vector<Seen>{{0, 0, 0, {0, 1}}, {1, 0, 3, {0, 1}}}));
  expectError(Loader::create({numbers(1)}, options),
              "a step takes 2 samples, but 'x' has only 1");
  options.samplesPerStep = 3;
  expectError(Loader::create({numbers(3)}, options),
              "a step has no whole number of parts");
}

TEST(Loader, takesOneSampleOfOne) {
  auto loader = makeLoader(1, {.buffers = 1, .endEpoch = 3});
  EXPECT_EQ(loader->samplesDropped(), 0);
  EXPECT_EQ(take(*loader).size(), 3u);
}

TEST(Loader, followsTheOrder) {
  auto loader = makeLoader(10, {.samplesPerStep = 5, .seed = 9, .endEpoch = 2});
  auto order = Order::create(Order::Kind::shuffled, 10, 9);
  for (const Seen &seen : take(*loader)) {
    order->begin(seen.epoch);
    for (size_t i = 0; i < seen.samples.size(); ++i)
      EXPECT_EQ(seen.samples[i], order->at(seen.position + int64_t(i)));
  }
}

TEST(Loader, resumesWhereItWas) {
  for (Order::Kind kind :
       {Order::Kind::inOrder, Order::Kind::shuffled, Order::Kind::drawn}) {
    LoaderOptions options = {
        .samplesPerStep = 3, .order = kind, .seed = 4, .endEpoch = 4};
    const std::vector<Seen> all = take(*makeLoader(11, options));
    ASSERT_EQ(all.size(), 12u);
    for (size_t from = 0; from < all.size(); ++from) {
      options.epoch = all[from].epoch;
      options.position = all[from].position;
      EXPECT_EQ(take(*makeLoader(11, options)),
                std::vector<Seen>(all.begin() + long(from), all.end()));
    }
    // Behind the last whole step of an epoch comes the next one.
    options.epoch = 2;
    for (options.position = 9; options.position <= 11; ++options.position)
      EXPECT_EQ(take(*makeLoader(11, options), 1), std::vector<Seen>({all[9]}));
  }
}

TEST(Loader, dealsTheSameSamplesWhateverAStepTakes) {
  LoaderOptions options = {.samplesPerStep = 2, .seed = 4, .endEpoch = 1};
  std::vector<int64_t> pairs, sixes;
  for (const Seen &seen : take(*makeLoader(12, options)))
    pairs.insert(pairs.end(), seen.samples.begin(), seen.samples.end());
  options.samplesPerStep = 6;
  for (const Seen &seen : take(*makeLoader(12, options)))
    sixes.insert(sixes.end(), seen.samples.begin(), seen.samples.end());
  EXPECT_EQ(pairs, sixes);
}

TEST(Loader, convertsAndReshapes) {
  auto images = makeDataset<uint8_t>(DType::u8, {3, 1, 2}, {0, 1, 2, 3, 4, 5});
  auto loader = Loader::create(
      {numbers(3, "label"),
       {"image", images, DType::f32, {2, 1, 1}, {.divide = 2, .mean = 1}}},
      {.samplesPerStep = 3, .order = Order::Kind::inOrder});
  ASSERT_TRUE(loader.ok()) << loader.status().message();
  auto step = (*loader)->next();
  ASSERT_TRUE(step.ok() && *step);
  ASSERT_EQ((*step)->inputs.size(), 2u);
  const runtime::Tensor &image = (*step)->inputs[1];
  EXPECT_EQ(image.typeText(), "float32 [3, 2, 1, 1]");
  EXPECT_EQ(valuesOf(image), (std::vector<double>{-1, -.5, 0, .5, 1, 1.5}));
  EXPECT_EQ((*step)->inputs[0].typeText(), "int64 [3]");
  for (const runtime::Tensor &input : (*step)->inputs)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(input.data()) % 64, 0u);
  EXPECT_EQ(image.bytes() + (*step)->inputs[0].bytes(), 3 * 8 + 6 * 4);
}

TEST(Loader, takesSamplesOfNothing) {
  auto nothing = makeDataset<float>(DType::f32, {4, 0}, {});
  auto loader = Loader::create({{"x", nothing, DType::f32, {0, 3}}},
                               {.samplesPerStep = 2, .endEpoch = 1});
  ASSERT_TRUE(loader.ok()) << loader.status().message();
  EXPECT_EQ(take(**loader).size(), 2u);
}

TEST(Loader, refusesWhatDoesNotBelongTogether) {
  expectError(Loader::create({numbers(3, "a"), numbers(4, "b")}, {}),
              "'a' has 3 and 'b' has 4");
  expectError(Loader::create({numbers(3), numbers(3)}, {}), "samples twice");
  expectError(Loader::create({}, {}), "no samples to load");
  expectError(Loader::create({numbers(3)}, {.samplesPerStep = 4}),
              "a step takes 4 samples, but 'x' has only 3");
  expectError(Loader::create({numbers(0)}, {}), "has only 0");
  expectError(Loader::create({numbers(3)}, {.samplesPerStep = 0}),
              "at least one sample");
  expectError(Loader::create({numbers(3)}, {.buffers = 0}), "one buffer");
  expectError(Loader::create({numbers(3)}, {.position = 4}),
              "cannot begin at position 4 of epoch 0");
  expectError(Loader::create({numbers(3)}, {.epoch = -1}), "epoch -1");
  expectError(Loader::create({numbers(3)}, {.epoch = Order::kEpochs}),
              "cannot begin");
  LoaderInput wrong = numbers(3);
  wrong.shape = {2};
  expectError(Loader::create({wrong}, {}),
              "a sample is int64 [], and the input's is int64 [2]");
  wrong = numbers(3);
  wrong.dtype = DType::f16;
  expectError(Loader::create({wrong}, {}),
              "input 'x' cannot have the samples of 'x': int64 cannot become");
  // Buffers that no machine has.
  auto windows = std::make_shared<Dataset>(
      "'w'", Samples{.count = int64_t(1) << 40, .shape = {1 << 30}});
  expectError(Loader::create({{"w", windows, DType::f32, {1 << 30}}},
                             {.samplesPerStep = int64_t(1) << 39,
                              .order = Order::Kind::drawn}),
              "is too large");
}

TEST(Loader, reportsAnErrorWhereItIs) {
  auto labels = makeDataset<int64_t>(DType::i64, {5, 2},
                                     {0, 0, 0, 0, 0, 1L << 31, 0, 0, 0, 0},
                                     "'labels.npy'");
  auto loader =
      Loader::create({{"target", labels, DType::i32, {2}}},
                     {.samplesPerStep = 2, .order = Order::Kind::inOrder});
  ASSERT_TRUE(loader.ok()) << loader.status().message();
  EXPECT_EQ(take(**loader, 1).size(), 1u);
  for (int again = 0; again < 2; ++again)
    expectError((*loader)->next(),
                "sample 2 of 'labels.npy': its element 1 is 2147483648, which "
                "does not fit into int32, the type of input 'target'");

  auto large =
      makeDataset<uint64_t>(DType::u64, {1}, {UINT64_MAX}, "'large.npy'");
  loader = Loader::create({{"target", large, DType::i64, {}}}, {});
  expectError((*loader)->next(), "is 18446744073709551615");
}

TEST(Loader, fillsNoBufferThatIsInUse) {
  auto loader = makeLoader(
      8, {.samplesPerStep = 2, .order = Order::Kind::inOrder, .buffers = 2});
  auto first = loader->next(), second = loader->next();
  ASSERT_TRUE(first.ok() && second.ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(look(**first), (Seen{0, 0, 0, {0, 1}}));
  EXPECT_EQ(look(**second), (Seen{0, 2, 2, {2, 3}}));
  // In another order than they were given.
  loader->release(*second);
  loader->release(*first);
  EXPECT_EQ(take(*loader, 1), (std::vector<Seen>{{0, 4, 4, {4, 5}}}));
}

/// Samples that take a while.
class SlowDataset : public Dataset {
public:
  explicit SlowDataset(int64_t count)
      : Dataset("'slow'", {.count = count, .dtype = DType::u8}) {}
  void copySample(int64_t index, uint8_t *destination) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    *destination = uint8_t(index);
  }
};

TEST(Loader, countsWhatNextWaits) {
  auto slow = std::make_shared<SlowDataset>(10);
  auto loader = Loader::create({{"x", slow, DType::u8, {}}},
                               {.samplesPerStep = 2, .endEpoch = 1});
  ASSERT_TRUE(loader.ok());
  EXPECT_EQ((*loader)->waitedNs(), 0);
  EXPECT_EQ(take(**loader).size(), 5u);
  EXPECT_GE((*loader)->waitedNs(), 5 * 5'000'000);
}

TEST(Loader, endsAtAnyTime) {
  auto slow = std::make_shared<SlowDataset>(1000);
  const auto begin = std::chrono::steady_clock::now();
  for (size_t steps : {0, 1, 2}) {
    // While it fills a step that takes five seconds, or while all is full.
    auto filling =
        Loader::create({{"x", slow, DType::u8, {}}}, {.samplesPerStep = 1000});
    ASSERT_TRUE(filling.ok());
    auto loader = makeLoader(1 << 20, {.samplesPerStep = 2});
    take(*loader, steps);
    auto kept = loader->next();
    EXPECT_TRUE(kept.ok());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST(Loader, isReleasedByOtherThreads) {
  auto loader = makeLoader(1000, {.samplesPerStep = 10, .endEpoch = 5});
  std::vector<std::jthread> threads;
  size_t steps = 0;
  for (;; ++steps) {
    auto step = loader->next();
    ASSERT_TRUE(step.ok());
    if (!*step)
      break;
    threads.emplace_back([&, step = *step] { loader->release(step); });
  }
  EXPECT_EQ(steps, 500u);
}

#ifdef PARTITA_COUNTS_HEAP
TEST(Loader, takesNothingFromTheHeap) {
  auto images =
      makeDataset<uint8_t>(DType::u8, {6, 4}, std::vector<uint8_t>(24, 1));
  auto loader = Loader::create(
      {{"image", images, DType::f32, {4}, {.divide = 2}}, numbers(6)},
      {.samplesPerStep = 2});
  ASSERT_TRUE(loader.ok()) << loader.status().message();
  auto step = (*loader)->next();
  const long before = allocations;
  for (int i = 0; i < 100; ++i) {
    (*loader)->release(*step);
    step = (*loader)->next();
  }
  EXPECT_EQ(allocations, before);
}
#endif

} // namespace
