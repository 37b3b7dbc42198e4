//===- IntegerCallTest.cpp - Products of 8-bit integers are exact ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers are the largest there are now and then, so that sums which saturate
// in 16 bits would show. Run again by `partita_runtime_tests.avx2` with the
// code for processors that have no instruction for such sums.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/IntegerRows.h"
#include "test/unit/runtime/CallRunner.h"

#include <algorithm>

namespace partita::test {
namespace {

using Bytes = std::vector<uint8_t>;
using Sums = std::vector<int32_t>;

struct Integers {
  abi::DType type = abi::DType::u8;
  Shape shape, strides;
  Bytes bytes;
  bool weight = false;

  static Integers random(abi::DType type, const Shape &shape, unsigned seed,
                         bool weight = false) {
    Integers made{type, shape, denseStrides(shape), {}, weight};
    std::mt19937 generator(seed);
    const uint8_t least = type == abi::DType::i8 ? 0x80 : 0,
                  most = type == abi::DType::i8 ? 0x7f : 0xff;
    for (int64_t i = 0; i < product(shape); ++i) {
      const unsigned number = generator();
      made.bytes.push_back(number % 5 == 0   ? most
                           : number % 7 == 0 ? least
                                             : uint8_t(number >> 8));
    }
    return made;
  }
  Integers seenAs(const Shape &other, const Shape &steps) const {
    Integers copy = *this;
    copy.shape = other;
    copy.strides = steps;
    return copy;
  }
  int32_t get(const Shape &index) const {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i)
      at += index[i] * strides[i];
    const uint8_t byte = bytes[size_t(at)];
    return type == abi::DType::i8 ? int8_t(byte) : byte;
  }
};

/// The call on these operands; the result is dense in the order of its axes
/// unless `steps` says otherwise.
Sums runIntegers(InstructionSpec spec, const Integers &x, const Integers &w,
                 const Shape &shape, Shape steps = {}, int threads = 2,
                 std::string *error = nullptr) {
  PlanSpec plan;
  const int device = plan.addDevice();
  std::vector<ActionSpec> program;
  auto describe = [&](int slot, abi::DType type, int64_t count, int64_t size) {
    SlotSpec &made = plan.programs[size_t(device)].slots[size_t(slot)];
    made.dtype = type;
    made.bytes = count * size;
  };
  auto place = [&](const Integers &operand) {
    const auto count = int64_t(operand.bytes.size());
    int slot;
    if (operand.weight) {
      Values packed((operand.bytes.size() + 3) / 4);
      std::memcpy(packed.data(), operand.bytes.data(), operand.bytes.size());
      slot = plan.addWeight(device, {count}, packed);
      plan.weights.back().dtype = operand.type;
      plan.weights.back().bytes = count;
      plan.weights.back().hash =
          XXH3_64bits(operand.bytes.data(), operand.bytes.size());
    } else {
      slot = plan.addSlot(device, {count});
      const int input = int(plan.inputs.size());
      program.push_back({abi::ActionKind::load_input, 0, input, slot});
      plan.inputs.push_back(
          {"i" + std::to_string(input), operand.type, {count}});
    }
    describe(slot, operand.type, count, 1);
    return ViewSpec{slot, operand.shape, operand.strides, 0};
  };
  spec.views = {place(x), place(w)};
  const int64_t count = product(shape);
  const int result = plan.addSlot(device, {count});
  describe(result, abi::DType::i32, count, 4);
  spec.views.push_back(
      {result, shape, steps.empty() ? denseStrides(shape) : steps, 0});
  plan.programs[0].units.push_back({"F0", 0, {spec}});
  program.push_back({abi::ActionKind::run, 0, 0});
  program.push_back({abi::ActionKind::store_output, 0, 0, result});
  plan.programs[0].actions = program;
  plan.outputs.push_back({"y", abi::DType::i32, {count}});

  const std::string path = temporary("integers.partita");
  writeArtifact(path, plan);
  auto artifact = runtime::Artifact::open(path);
  ::unlink(path.c_str());
  if (!artifact) {
    if (error)
      *error = artifact.status().message();
    else
      ADD_FAILURE() << artifact.status().message();
    return {};
  }
  runtime::SessionOptions options;
  options.threads_per_device = threads;
  auto session = runtime::Session::create(*artifact, options);
  if (!session) {
    ADD_FAILURE() << session.status().message();
    return {};
  }
  runtime::StepBinding binding;
  for (const Integers *operand : {&x, &w})
    if (!operand->weight)
      binding.inputs.push_back(operand->bytes.data());
  Sums sums(static_cast<size_t>(count), 1);
  binding.outputs.push_back(reinterpret_cast<uint8_t *>(sums.data()));
  for (int i = 0; i < 2; ++i) {
    runtime::Status status = (*session)->run(binding);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return sums;
}

void expectDot(const Integers &x, const Integers &w, const Shape &shape) {
  for (int threads : {1, 3}) {
    const Sums sums = runIntegers({}, x, w, shape, {}, threads);
    ASSERT_FALSE(sums.empty());
    const size_t last = shape.size() - 1;
    size_t at = 0;
    forEachIndex(shape, [&](const Shape &i) {
      Shape l = i, r = i;
      int32_t sum = 0;
      for (int64_t k = 0; k < x.shape[last]; ++k) {
        l[last] = k;
        r[last - 1] = k;
        sum += x.get(l) * w.get(r);
      }
      EXPECT_EQ(sums[at++], sum) << "at " << ::testing::PrintToString(i);
    });
  }
}

TEST(Dot, IntegersWithWeights) {
  for (abi::DType type : {abi::DType::u8, abi::DType::i8})
    for (Shape mkn : {Shape{5, 33, 70}, Shape{1, 64, 1}, Shape{7, 1, 3},
                      Shape{64, 300, 48}, Shape{1, 1280, 100}})
      expectDot(Integers::random(type, {mkn[0], mkn[1]}, 1),
                Integers::random(abi::DType::i8, {mkn[1], mkn[2]}, 2, true),
                {mkn[0], mkn[2]});
}

TEST(Dot, IntegersOfGreatDepth) {
  expectDot(Integers::random(abi::DType::u8, {6, 9001}, 1),
            Integers::random(abi::DType::i8, {9001, 5}, 2, true), {6, 5});
}

TEST(Dot, IntegersThatAreBothComputed) {
  expectDot(Integers::random(abi::DType::u8, {2, 3, 6, 8}, 1)
                .seenAs({2, 3, 6, 8}, {144, 8, 24, 1}),
            Integers::random(abi::DType::i8, {2, 3, 8, 5}, 2)
                .seenAs({2, 3, 8, 5}, {120, 40, 1, 8}),
            {2, 3, 6, 5});
}

TEST(Dot, IntegersOfOneMatrixForAll) {
  expectDot(Integers::random(abi::DType::i8, {3, 4, 20}, 1),
            Integers::random(abi::DType::i8, {20, 9}, 2, true)
                .seenAs({3, 20, 9}, {0, 9, 1}),
            {3, 4, 9});
}

struct Images {
  int64_t in, out, side, window, stride, pad, dilation, groups;
};

void expectConv(abi::DType type, const Images &c, bool channels_last) {
  const int64_t side =
      (c.side + 2 * c.pad - (c.window - 1) * c.dilation - 1) / c.stride + 1;
  auto stepsOf = [&](int64_t channels, int64_t extent) -> Shape {
    if (!channels_last)
      return {channels * extent * extent, extent * extent, extent, 1};
    return {channels * extent * extent, 1, extent * channels, channels};
  };
  const Shape xShape{2, c.in, c.side, c.side},
      wShape{c.out, c.in / c.groups, c.window, c.window},
      shape{2, c.out, side, side}, steps = stepsOf(c.out, side);
  const Integers x =
      Integers::random(type, xShape, 3).seenAs(xShape, stepsOf(c.in, c.side));
  const Integers w = Integers::random(abi::DType::i8, wShape, 4, true);
  InstructionSpec spec;
  spec.call = abi::CallKind::conv;
  spec.strides = {c.stride, c.stride};
  spec.dilations = {c.dilation, c.dilation};
  spec.pads_low = spec.pads_high = {c.pad, c.pad};
  spec.groups = c.groups;
  const Sums sums = runIntegers(spec, x, w, shape, steps);
  ASSERT_FALSE(sums.empty());
  forEachIndex(shape, [&](const Shape &i) {
    int32_t sum = 0;
    const int64_t first = i[1] / (c.out / c.groups) * (c.in / c.groups);
    forEachIndex({c.in / c.groups, c.window, c.window}, [&](const Shape &t) {
      const int64_t row = i[2] * c.stride + t[1] * c.dilation - c.pad,
                    column = i[3] * c.stride + t[2] * c.dilation - c.pad;
      if (row >= 0 && row < c.side && column >= 0 && column < c.side)
        sum += x.get({i[0], first + t[0], row, column}) *
               w.get({i[1], t[0], t[1], t[2]});
    });
    int64_t at = 0;
    for (size_t axis = 0; axis < 4; ++axis)
      at += i[axis] * steps[axis];
    EXPECT_EQ(sums[size_t(at)], sum) << "at " << ::testing::PrintToString(i);
  });
}

TEST(Conv, IntegersInAllForms) {
  for (abi::DType type : {abi::DType::u8, abi::DType::i8})
    for (bool channels_last : {true, false})
      for (const Images &images :
           {Images{3, 32, 9, 3, 2, 1, 1, 1}, Images{16, 24, 7, 1, 1, 0, 1, 1},
            Images{64, 32, 6, 3, 1, 1, 1, 1}, Images{40, 40, 8, 3, 1, 1, 1, 40},
            Images{32, 32, 9, 5, 2, 2, 1, 32}, Images{8, 12, 7, 3, 1, 2, 2, 4},
            Images{5, 7, 6, 2, 1, 0, 1, 1}})
        expectConv(type, images, channels_last);
}

TEST(Dot, IntegersTakeNoPostOps) {
  InstructionSpec spec;
  spec.post_ops.emplace_back();
  std::string error;
  runIntegers(spec, Integers::random(abi::DType::u8, {2, 3}, 1),
              Integers::random(abi::DType::i8, {3, 4}, 2), {2, 4}, {}, 1,
              &error);
  EXPECT_NE(error.find("which only floats have"), std::string::npos) << error;
  runIntegers({}, Integers::random(abi::DType::u8, {2, 3}, 1),
              Integers::random(abi::DType::u8, {3, 4}, 2), {2, 4}, {}, 1,
              &error);
  EXPECT_NE(error.find("is not f32"), std::string::npos) << error;
}

void expectRows(const runtime::IntegerFunctions &functions) {
  constexpr int64_t kDepth = 74;
  constexpr int kRows = runtime::kIntegerRows,
                kColumns = runtime::kIntegerColumns;
  std::vector<int16_t> left(kRows * kDepth), right(kColumns * kDepth);
  std::mt19937 generator(5);
  for (int16_t &each : left)
    each = int16_t(generator() % 256);
  for (int16_t &each : right)
    each = int16_t(int(generator() % 256) - 128);
  runtime::IntegerTile tile;
  tile.left = left.data();
  tile.right = right.data();
  tile.depth = kDepth;
  functions.tile(tile);
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) {
      int32_t sum = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        sum += left[size_t(i * kDepth + k)] *
               right[size_t(((k / 2) * kColumns + j) * 2 + k % 2)];
      EXPECT_EQ(tile.sums[i][j], sum);
    }
  Bytes bytes;
  for (int i = 0; i < 77; ++i)
    bytes.push_back(uint8_t(generator()));
  std::vector<int16_t> wide(bytes.size());
  for (bool has_sign : {true, false}) {
    functions.widen(bytes.data(), int64_t(bytes.size()), has_sign, wide.data());
    for (size_t i = 0; i < bytes.size(); ++i)
      EXPECT_EQ(wide[i], has_sign ? int8_t(bytes[i]) : bytes[i]);
  }
  // Two taps of which one is outside, of channels that are no whole vectors.
  constexpr int64_t kChannels = 75;
  const Integers image = Integers::random(abi::DType::i8, {2, kChannels}, 6);
  for (bool has_sign : {true, false}) {
    const uint8_t *pixels[] = {image.bytes.data(), nullptr,
                               image.bytes.data() + kChannels};
    Sums sums(kChannels, 7);
    runtime::IntegerPixel pixel;
    pixel.pixels = pixels;
    pixel.weights = right.data();
    pixel.taps = 3;
    pixel.channels = kChannels;
    pixel.has_sign = has_sign;
    pixel.to = sums.data();
    functions.pixel(pixel);
    for (int64_t c = 0; c < kChannels; ++c) {
      auto number = [&](int64_t row) {
        const uint8_t byte = image.bytes[size_t(row * kChannels + c)];
        return has_sign ? int(int8_t(byte)) : int(byte);
      };
      EXPECT_EQ(sums[size_t(c)],
                number(0) * right[size_t(c)] +
                    number(1) * right[size_t(2 * kChannels + c)]);
    }
  }
}

TEST(Dot, IntegerRowsOfEveryLevel) {
  expectRows(runtime::integerFunctionsBaseline());
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v3"))
    expectRows(runtime::integerFunctionsV3());
  if (__builtin_cpu_supports("x86-64-v4"))
    expectRows(runtime::integerFunctionsV4());
}

} // namespace
} // namespace partita::test
