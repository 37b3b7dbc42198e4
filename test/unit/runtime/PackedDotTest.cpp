//===- PackedDotTest.cpp - Products with weights of few bits --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/PackedRows.h"
#include "test/unit/runtime/CallRunner.h"

#include <algorithm>

namespace partita::test {
namespace {

struct Packed {
  int64_t bits, block, rows, depth;
  bool has_zeros = false;

  int64_t blocks() const { return (depth + block - 1) / block; }
  int64_t bytes() const { return block * bits / 8; }
};

void PrintTo(const Packed &each, std::ostream *os) {
  *os << each.bits << " bits, blocks of " << each.block << ", " << each.rows
      << "x" << each.depth << (each.has_zeros ? ", zeros" : "");
}

/// x . weights^T, and its operands.
CallCase packedCase(const Packed &shape, int64_t rows) {
  CallCase call;
  call.spec.call = abi::CallKind::packed_dot;
  call.spec.bits = static_cast<int>(shape.bits);
  const int64_t blocks = shape.blocks(), bytes = shape.bytes();
  Tensor weights;
  weights.shape = {shape.rows, blocks, bytes};
  weights.strides = denseStrides(weights.shape);
  weights.weight = true;
  weights.type = abi::DType::u8;
  std::mt19937 generator(7);
  weights.values.resize(static_cast<size_t>(product(weights.shape) + 3) / 4);
  auto *numbers = reinterpret_cast<uint8_t *>(weights.values.data());
  std::generate_n(numbers, product(weights.shape),
                  [&] { return uint8_t(generator()); });
  call.operands = {Tensor::random({rows, shape.depth}, 1), weights,
                   Tensor::random({shape.rows, blocks}, 2).asWeight()};
  call.result = Tensor::random({rows, shape.rows}, 3);
  if (shape.has_zeros) {
    call.zeros = Tensor::random({shape.rows, blocks}, 4).asWeight();
    for (float &zero : call.zeros.values)
      zero = 3 + 2 * zero;
  }
  return call;
}

double weightAt(const CallCase &call, int64_t row, int64_t column) {
  const int64_t bits = call.spec.bits, each = 8 / bits;
  const Tensor &weights = call.operands[1];
  const int64_t block = column / (weights.shape[2] * each),
                byte = column / each % weights.shape[2];
  const auto *numbers =
      reinterpret_cast<const uint8_t *>(weights.values.data());
  const int number =
      numbers[weights.at({row, block, byte})] >> (column % each * bits) &
      ((1 << bits) - 1);
  const double zero = call.zeros.values.empty() ? double(1 << (bits - 1))
                                                : call.zeros.get({row, block});
  return (number - zero) * call.operands[2].get({row, block});
}

class PackedDot : public testing::TestWithParam<Packed> {};

TEST_P(PackedDot, OfFewAndManyRows) {
  for (int64_t rows : {1, 2, 3, 4, 5, 8, 9, 40}) {
    SCOPED_TRACE(std::to_string(rows) + " rows");
    const CallCase call = packedCase(GetParam(), rows);
    expectCall(
        call,
        [&](const Shape &i) {
          double sum = 0;
          for (int64_t k = 0; k < GetParam().depth; ++k)
            sum += call.operands[0].get({i[0], k}) * weightAt(call, i[1], k);
          return sum;
        },
        1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , PackedDot,
    testing::Values(Packed{4, 32, 5, 64}, Packed{4, 32, 33, 100, true},
                    Packed{4, 16, 7, 16}, Packed{4, 128, 48, 1}, // K < a block
                    Packed{8, 16, 4, 48}, Packed{8, 64, 20, 130, true},
                    Packed{2, 16, 19, 40}, Packed{2, 32, 4, 33, true},
                    Packed{2, 128, 17, 256}));

/// Several tiles of rows and of columns, and the last ones are smaller.
TEST(PackedDotTiles, SameBitsOnAnyNumberOfThreads) {
  const Packed wide{4, 32, 700, 1056};
  for (int64_t rows : {4, 300}) {
    const CallCase call = packedCase(wide, rows);
    const Values one = runCall(call, {.threads = 1});
    ASSERT_FALSE(one.empty());
    for (int threads : {2, 3, 5}) {
      const Values several = runCall(call, {.threads = threads});
      EXPECT_EQ(std::memcmp(one.data(), several.data(), one.size() * 4), 0);
    }
    for (int64_t row : {int64_t(0), rows - 1})
      for (int64_t column : {0, 256, 512, 699}) {
        double sum = 0;
        for (int64_t k = 0; k < wide.depth; ++k)
          sum += call.operands[0].get({row, k}) * weightAt(call, column, k);
        EXPECT_NEAR(one[call.result.at({row, column})], sum, 1e-3);
      }
  }
}

/// NaN and infinity stay in their row of x.
TEST(PackedDotTiles, KeepNan) {
  for (int64_t rows : {2, 12}) {
    CallCase call = packedCase({4, 32, 6, 40}, rows);
    call.operands[0].values[5] = std::nanf("");
    const Values result = runCall(call);
    ASSERT_FALSE(result.empty());
    for (int64_t i = 0; i < rows * 6; ++i)
      EXPECT_EQ(std::isnan(result[static_cast<size_t>(i)]), i < 6);
  }
}

/// The code of each level of processors, in vectors of each width.
TEST(PackedRows, LevelsAgree) {
  using namespace runtime;
  struct Level {
    PackedFunctions (*functions)(int64_t bits);
    bool runs;
  };
  __builtin_cpu_init();
  const Level levels[] = {
      {packedFunctionsBaseline, true},
      {packedFunctionsV3, bool(__builtin_cpu_supports("x86-64-v3"))},
      {packedFunctionsV4, bool(__builtin_cpu_supports("x86-64-v4"))}};
  for (const Packed &shape :
       {Packed{4, 16, 18, 48}, Packed{4, 32, 5, 90, true},
        Packed{2, 16, 3, 32, true}, Packed{2, 64, 33, 128},
        Packed{8, 32, 20, 64, true}}) {
    const CallCase call = packedCase(shape, kFewVectors);
    PackedRows weights;
    weights.numbers =
        reinterpret_cast<const uint8_t *>(call.operands[1].values.data());
    weights.scales = call.operands[2].values.data();
    weights.zeros = shape.has_zeros ? call.zeros.values.data() : nullptr;
    weights.blocks = shape.blocks();
    weights.bytes = shape.bytes();
    const int64_t padded = shape.blocks() * shape.block;
    const int64_t step =
        (shape.rows + kColumnStep - 1) / kColumnStep * kColumnStep;
    for (const Level &level : levels) {
      if (!level.runs)
        continue;
      const PackedFunctions functions = level.functions(shape.bits);
      Values arranged(size_t(kFewVectors * padded)),
          products(size_t(kFewVectors * shape.rows), 99),
          unpacked(size_t(padded * step));
      for (int64_t k = 0; k < kFewVectors; ++k)
        functions.arrange(weights,
                          call.operands[0].values.data() + k * shape.depth,
                          shape.depth, arranged.data() + k * padded);
      // Rows in two parts, as two threads have them.
      for (auto [begin, end] : {std::pair(int64_t(0), shape.rows / 2),
                                std::pair(shape.rows / 2, shape.rows)})
        functions.multiply({weights, begin, end, arranged.data(), kFewVectors,
                            products.data(), shape.rows});
      functions.unpack(weights, 0, shape.rows, unpacked.data(), step);
      for (int64_t row = 0; row < shape.rows; ++row)
        for (int64_t k = 0; k < shape.depth; ++k)
          EXPECT_FLOAT_EQ(unpacked[size_t(k * step + row)],
                          float(weightAt(call, row, k)));
      for (int64_t row = 0; row < shape.rows; ++row)
        for (int64_t k = 0; k < kFewVectors; ++k) {
          double sum = 0;
          for (int64_t i = 0; i < shape.depth; ++i)
            sum += call.operands[0].get({k, i}) * weightAt(call, row, i);
          EXPECT_NEAR(products[size_t(k * shape.rows + row)], sum, 1e-3);
        }
    }
  }
}

TEST(PackedDotPlan, WrongCallsAreRefused) {
  const CallCase call = packedCase({4, 32, 3, 40, true}, 2);
  EXPECT_EQ(errorOf(call), "");
  auto tensor = [](const Shape &shape) { return Tensor::random(shape, 1); };
  auto expectError = [&](const char *part, auto change) {
    CallCase wrong = call;
    change(wrong);
    const std::string error = errorOf(wrong);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expectError("has weights of 3 bits",
              [](CallCase &wrong) { wrong.spec.bits = 3; });
  // Blocks of 16 numbers: too few of them.
  expectError("do not fit", [](CallCase &wrong) { wrong.spec.bits = 8; });
  expectError("do not fit",
              [&](CallCase &wrong) { wrong.operands[0] = tensor({2, 65}); });
  expectError("do not fit",
              [&](CallCase &wrong) { wrong.operands[0] = tensor({2, 32}); });
  expectError("do not fit",
              [&](CallCase &wrong) { wrong.result = tensor({2, 4}); });
  expectError("operand 2 is not f32",
              [](CallCase &wrong) { wrong.operands[2].type = abi::DType::u8; });
  expectError("has weights of another type", [&](CallCase &wrong) {
    wrong.operands[1] = tensor({3, 2, 16}).asWeight();
  });
  expectError("has zeros [3, 1] of f32, which do not fit",
              [&](CallCase &wrong) { wrong.zeros = tensor({3, 1}); });
  expectError("zeros is not dense",
              [](CallCase &wrong) { wrong.zeros.strides = {1, 3}; });
  expectError("has post-ops", [](CallCase &wrong) {
    wrong.spec.post_ops.push_back({abi::PostOpKind::relu});
  });
}

std::string errorOfPlan(const PlanSpec &plan) {
  const std::string path = temporary("zeros.partita");
  writeArtifact(path, plan);
  auto artifact = runtime::Artifact::open(path);
  ::unlink(path.c_str());
  return artifact ? "" : artifact.status().message();
}

TEST(PackedDotPlan, ZerosHaveAShape) {
  PlanSpec plan = planOf(packedCase({4, 32, 3, 40, true}, 2));
  ViewSpec &zeros = plan.programs[0].units[0].instructions[0].zeros;
  zeros.has_shape = false;
  zeros.strides.clear();
  const std::string error = errorOfPlan(plan);
  EXPECT_NE(error.find("has zeros [] of f32, which do not fit its scales"),
            std::string::npos)
      << error;
}

/// The proof of a schedule knows that zeros are read.
TEST(PackedDotPlan, ZerosMustBeThere) {
  CallCase call = packedCase({4, 32, 3, 40, true}, 2);
  call.zeros.weight = false;
  PlanSpec plan = planOf(call);
  EXPECT_EQ(errorOfPlan(plan), "");
  ProgramSpec &program = plan.programs[0];
  const int zeros = program.units[0].instructions[0].zeros.slot;
  std::erase_if(program.actions, [&](const ActionSpec &action) {
    return action.kind == abi::ActionKind::load_input && action.slot == zeros;
  });
  EXPECT_NE(errorOfPlan(plan).find("reads"), std::string::npos)
      << errorOfPlan(plan);
}

} // namespace
} // namespace partita::test
