//===- ExpertDotTest.cpp - Products with the matrices of experts ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/ColumnRows.h"
#include "runtime/device/cpu/simd/PackedRows.h"
#include "test/unit/runtime/CallRunner.h"

#include <algorithm>

namespace partita::test {
namespace {

enum class Form { rows, transposed, packed, packed_zeros, outer };

struct Experts {
  int64_t rows, experts, columns, depth;
  Form form = Form::rows;
};

void PrintTo(const Experts &each, std::ostream *os) {
  static const char *const forms[] = {"", ", transposed", ", packed",
                                      ", packed with zeros", ", outer"};
  *os << each.rows << " rows, " << each.experts << " matrices " << each.columns
      << "x" << each.depth << forms[int(each.form)];
}

/// Indices; the first matrix has the most rows, and the last but one none. Two
/// rows have an index of another device.
std::vector<int64_t> chooseExperts(const Experts &shape) {
  std::mt19937 generator(5);
  std::vector<int64_t> chosen;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const int64_t any = int64_t(generator() % size_t(2 * shape.experts));
    chosen.push_back(any < shape.experts && any != shape.experts - 2 ? any : 0);
  }
  chosen.back() = shape.experts;
  if (shape.rows > 2)
    chosen[1] = -1;
  return chosen;
}

Tensor indicesOf(const std::vector<int64_t> &chosen) {
  Tensor tensor;
  tensor.shape = {int64_t(chosen.size())};
  tensor.strides = {1};
  tensor.type = abi::DType::i64;
  tensor.values.resize(2 * chosen.size());
  std::memcpy(tensor.values.data(), chosen.data(), 8 * chosen.size());
  return tensor;
}

constexpr int64_t kBlock = 32; ///< of packed weights, which have 4 bits

CallCase expertCase(const Experts &shape) {
  CallCase call;
  const auto &[rows, experts, columns, depth, form] = shape;
  const Tensor indices = indicesOf(chooseExperts(shape));
  const Tensor x = Tensor::random({rows, depth}, 1);
  call.result = Tensor::random({rows, columns}, 3);
  call.spec.call = abi::CallKind::expert_dot;
  if (form == Form::outer) {
    call.spec.call = abi::CallKind::expert_outer;
    call.operands = {Tensor::random({rows, columns}, 2), x, indices};
    call.result = Tensor::random({experts, columns, depth}, 3);
  } else if (form == Form::rows || form == Form::transposed) {
    std::vector<int> order = {0, 1, 2};
    if (form == Form::transposed)
      std::swap(order[1], order[2]);
    const Tensor weights =
        Tensor::random({experts, columns, depth}, 2, order).asWeight();
    call.operands = {x, weights, indices};
  } else {
    call.spec.call = abi::CallKind::packed_dot;
    call.spec.bits = 4;
    const int64_t blocks = (depth + kBlock - 1) / kBlock;
    Tensor weights;
    weights.shape = {experts, columns, blocks, kBlock / 2};
    weights.strides = denseStrides(weights.shape);
    weights.weight = true;
    weights.type = abi::DType::u8;
    weights.values.resize(static_cast<size_t>(product(weights.shape)) / 4);
    std::mt19937 generator(7);
    std::generate_n(reinterpret_cast<uint8_t *>(weights.values.data()),
                    product(weights.shape),
                    [&] { return uint8_t(generator()); });
    call.operands = {x, weights,
                     Tensor::random({experts, columns, blocks}, 2).asWeight()};
    call.experts = indices;
    if (form == Form::packed_zeros)
      call.zeros = Tensor::random({experts, columns, blocks}, 4).asWeight();
  }
  return call;
}

double weightAt(const CallCase &call, int64_t e, int64_t n, int64_t k) {
  const Tensor &weights = call.operands[1];
  if (call.spec.call != abi::CallKind::packed_dot)
    return weights.get({e, n, k});
  const int64_t block = k / kBlock;
  const auto *bytes = reinterpret_cast<const uint8_t *>(weights.values.data());
  const int number =
      bytes[weights.at({e, n, block, k % kBlock / 2})] >> (k % 2 * 4) & 15;
  const double zero =
      call.zeros.values.empty() ? 8 : call.zeros.get({e, n, block});
  return (number - zero) * call.operands[2].get({e, n, block});
}

/// The element of the result at an index.
double expected(const CallCase &call, const Experts &shape,
                const std::vector<int64_t> &chosen, const Shape &i) {
  double sum = 0;
  if (shape.form == Form::outer) {
    for (int64_t row = 0; row < shape.rows; ++row)
      if (chosen[size_t(row)] == i[0])
        sum += double(call.operands[0].get({row, i[1]})) *
               call.operands[1].get({row, i[2]});
    return sum;
  }
  const int64_t expert = chosen[size_t(i[0])];
  if (expert < 0 || expert >= shape.experts)
    return 0;
  for (int64_t k = 0; k < shape.depth; ++k)
    sum += call.operands[0].get({i[0], k}) * weightAt(call, expert, i[1], k);
  return sum;
}

class ExpertDot : public testing::TestWithParam<Experts> {};

TEST_P(ExpertDot, Products) {
  const CallCase call = expertCase(GetParam());
  const std::vector<int64_t> chosen = chooseExperts(GetParam());
  expectCall(
      call,
      [&](const Shape &i) { return expected(call, GetParam(), chosen, i); },
      1e-4, {.threads = 3});
}

TEST_P(ExpertDot, SameBitsOnAnyNumberOfThreads) {
  const CallCase call = expertCase(GetParam());
  const Values one = runCall(call, {.threads = 1});
  ASSERT_FALSE(one.empty());
  for (int threads : {2, 5}) {
    const Values several = runCall(call, {.threads = threads});
    EXPECT_EQ(std::memcmp(one.data(), several.data(), one.size() * 4), 0);
  }
}

std::vector<Experts> allForms() {
  std::vector<Experts> all;
  for (Form form : {Form::rows, Form::transposed, Form::packed,
                    Form::packed_zeros, Form::outer}) {
    all.push_back({1, 2, 5, 33, form});
    all.push_back({6, 4, 7, 64, form});
    all.push_back({30, 3, 40, 50, form});
    // Groups of more rows than a tile, and several tiles of columns.
    all.push_back({400, 2, 300, 70, form});
    all.push_back({20, 64, 17, 1, form});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(, ExpertDot, testing::ValuesIn(allForms()));

/// NaN stays in its row, whatever group it is in.
TEST(ExpertDotRows, KeepNan) {
  for (Form form : {Form::rows, Form::transposed, Form::packed})
    for (int64_t rows : {4, 40}) {
      const Experts shape{rows, 2, 6, 40, form};
      CallCase call = expertCase(shape);
      call.operands[0].values[5] = std::nanf("");
      const Values result = runCall(call);
      ASSERT_FALSE(result.empty());
      for (int64_t i = 0; i < rows * 6; ++i)
        EXPECT_EQ(std::isnan(result[static_cast<size_t>(i)]), i < 6);
    }
}

/// The code of each level of processors.
TEST(ExpertDotRows, LevelsAgree) {
  using namespace runtime;
  struct Level {
    PackedFunctions (*functions)(int64_t bits);
    void (*columns)(const ColumnProduct &);
    bool runs;
  };
  __builtin_cpu_init();
  const Level levels[] = {
      {packedFunctionsBaseline, multiplyColumnsBaseline, true},
      {packedFunctionsV3, multiplyColumnsV3,
       bool(__builtin_cpu_supports("x86-64-v3"))},
      {packedFunctionsV4, multiplyColumnsV4,
       bool(__builtin_cpu_supports("x86-64-v4"))}};
  for (auto [rows, depth] :
       {std::pair<int64_t, int64_t>(5, 70), {33, 16}, {16, 3}, {1, 129}}) {
    const Values weights = randomValues(rows * depth, 1);
    const int64_t step = (rows + kColumnStep - 1) / kColumnStep * kColumnStep;
    for (int64_t count = 1; count <= kFewVectors; ++count) {
      const Values vectors = randomValues(count * depth, 2);
      Values wanted(size_t(count * rows), 0);
      for (int64_t v = 0; v < count; ++v)
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t k = 0; k < depth; ++k)
            wanted[size_t(v * rows + row)] += weights[size_t(row * depth + k)] *
                                              vectors[size_t(v * depth + k)];
      for (const Level &level : levels) {
        if (!level.runs)
          continue;
        const PackedFunctions functions = level.functions(32);
        PackedRows packed;
        packed.numbers = reinterpret_cast<const uint8_t *>(weights.data());
        packed.blocks = 1;
        packed.bytes = depth * 4;
        Values products(size_t(count * rows), 9),
            columns(size_t(depth * step), 9), fromColumns(products);
        functions.multiply(
            {packed, 0, rows, vectors.data(), count, products.data(), rows});
        functions.unpack(packed, 0, rows, columns.data(), step);
        for (int64_t v = 0; v < count; ++v)
          level.columns({columns.data(), depth, rows, step,
                         vectors.data() + v * depth,
                         fromColumns.data() + v * rows});
        for (size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_NEAR(products[i], wanted[i], 1e-4);
          EXPECT_NEAR(fromColumns[i], wanted[i], 1e-4);
        }
      }
    }
  }
}

TEST(ExpertDotPlan, WrongCallsAreRefused) {
  auto tensor = [](const Shape &shape) { return Tensor::random(shape, 1); };
  for (Form form :
       {Form::rows, Form::transposed, Form::packed_zeros, Form::outer}) {
    const CallCase call = expertCase({6, 4, 7, 64, form});
    EXPECT_EQ(errorOf(call), "");
    auto expectError = [&](const char *part, auto change) {
      CallCase wrong = call;
      change(wrong);
      const std::string error = errorOf(wrong);
      EXPECT_NE(error.find(part), std::string::npos) << error;
    };
    auto expertsOf = [&](CallCase &of) -> Tensor & {
      return form == Form::packed_zeros ? of.experts : of.operands[2];
    };
    expectError("has experts [5] of i64, which do not fit", [&](CallCase &c) {
      expertsOf(c) = indicesOf({1, 2, 3, 0, 1});
    });
    expectError("has experts [6] of f32, which do not fit",
                [&](CallCase &c) { expertsOf(c) = tensor({6}); });
    expectError("not dense", [&](CallCase &c) { expertsOf(c).strides = {0}; });
    expectError("do not fit", [&](CallCase &c) { c.result = tensor({6, 8}); });
    expectError("has post-ops", [](CallCase &c) {
      c.spec.post_ops.push_back({abi::PostOpKind::relu});
    });
    if (form == Form::packed_zeros)
      expectError("do not fit",
                  [&](CallCase &c) { c.zeros = tensor({3, 7, 2}); });
    if (form == Form::rows)
      expectError("operand 1 is not dense",
                  [](CallCase &c) { c.operands[1].strides = {64, 4 * 64, 1}; });
    if (form == Form::outer)
      expectError("operand 1 is not dense",
                  [](CallCase &c) { c.operands[1].strides = {1, 6}; });
  }
}

/// The stride of a dimension of one row says nothing.
TEST(ExpertDotPlan, OneRowIsNotTransposed) {
  const Experts shape{3, 2, 1, 50, Form::packed};
  CallCase call = expertCase(shape);
  const Values wanted = runCall(call);
  call.operands[1].strides[1] = 1;
  EXPECT_EQ(runCall(call), wanted);
  ASSERT_FALSE(wanted.empty());
}

} // namespace
} // namespace partita::test
