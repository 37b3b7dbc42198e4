//===- LibraryCallTest.cpp - Library calls against naive loops ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"
#include "test/unit/runtime/CallCases.h"

#include <algorithm>
#include <cstdlib>

namespace partita::test {
namespace {

TEST(Dot, WeightsBiasRelu) {
  CallCase call;
  call.operands = {Tensor::random({5, 33}, 1),
                   Tensor::random({33, 70}, 2).asWeight()};
  call.result = Tensor::random({5, 70}, 3);
  call.spec.post_ops = {postOp(abi::PostOpKind::add),
                        postOp(abi::PostOpKind::relu)};
  Tensor bias = Tensor::random({70}, 4).asWeight();
  call.post_operands = {{0, bias.seenAs({5, 70}, {0, 1})}};
  expectCall(call, [&](const Shape &i) {
    return std::max(0.0, dotAt(call.operands[0], call.operands[1], i) +
                             bias.values[i[1]]);
  });
}

TEST(Dot, BiasOfBatches) {
  CallCase call;
  call.operands = {
      Tensor::random({2, 3, 8}, 1),
      Tensor::random({8, 16}, 2).asWeight().seenAs({2, 8, 16}, {0, 16, 1})};
  call.result = Tensor::random({2, 3, 16}, 3);
  call.spec.post_ops = {postOp(abi::PostOpKind::add)};
  Tensor bias = Tensor::random({16}, 4).asWeight();
  call.post_operands = {{0, bias.seenAs({2, 3, 16}, {0, 0, 1})}};
  expectCall(call, [&](const Shape &i) {
    return dotAt(call.operands[0], call.operands[1], i) + bias.values[i[2]];
  });
}

TEST(Dot, BatchFoldsIntoRows) {
  CallCase call;
  call.operands = {Tensor::random({2, 3, 7, 20}, 1),
                   Tensor::random({20, 9}, 2)
                       .asWeight()
                       .seenAs({2, 3, 20, 9}, {0, 0, 9, 1})};
  call.result = Tensor::random({2, 3, 7, 9}, 3);
  call.spec.post_ops = {postOp(abi::PostOpKind::add)};
  Tensor residual = Tensor::random({2, 3, 7, 9}, 5);
  call.post_operands = {{0, residual}};
  expectCall(call, [&](const Shape &i) {
    return dotAt(call.operands[0], call.operands[1], i) + residual.get(i);
  });
}

TEST(Dot, TransposedBatches) {
  CallCase call;
  // Heads lie inside rows, as attention's projections leave them.
  call.operands = {Tensor::random({2, 4, 6, 8}, 1, {0, 2, 1, 3}),
                   Tensor::random({2, 4, 8, 5}, 2, {0, 3, 1, 2})};
  call.result = Tensor::random({2, 4, 6, 5}, 3);
  expectCall(call, [&](const Shape &i) {
    return dotAt(call.operands[0], call.operands[1], i);
  });
}

TEST(Dot, BroadcastInOneBatchAxis) {
  CallCase call;
  call.operands = {
      Tensor::random({3, 6, 8}, 1).seenAs({2, 3, 6, 8}, {0, 48, 8, 1}),
      Tensor::random({2, 8, 5}, 2).seenAs({2, 3, 8, 5}, {40, 0, 5, 1})};
  call.result = Tensor::random({2, 3, 6, 5}, 3);
  expectCall(call, [&](const Shape &i) {
    return dotAt(call.operands[0], call.operands[1], i);
  });
}

TEST(Dot, VectorsAndExtentsOfOne) {
  for (Shape mkn : {Shape{1, 8, 5}, Shape{5, 1, 8}, Shape{5, 8, 1},
                    Shape{1, 1, 1}, Shape{1, 64, 1}}) {
    CallCase call;
    call.operands = {Tensor::random({mkn[0], mkn[1]}, 1),
                     Tensor::random({mkn[1], mkn[2]}, 2, {1, 0}).asWeight()};
    call.result = Tensor::random({mkn[0], mkn[2]}, 3);
    expectCall(call, [&](const Shape &i) {
      return dotAt(call.operands[0], call.operands[1], i);
    });
  }
}

TEST(Dot, PostOpsOfOneKind) {
  using Kind = abi::PostOpKind;
  CallCase call;
  call.operands = {Tensor::random({6, 24}, 1),
                   Tensor::random({24, 40}, 2).asWeight()};
  call.result = Tensor::random({6, 40}, 3);
  call.spec.post_ops = {postOp(Kind::linear, 0.5), postOp(Kind::tanh),
                        postOp(Kind::linear, 4, 1), postOp(Kind::clip, 0, 3),
                        postOp(Kind::linear, 2)};
  expectCall(call, [&](const Shape &i) {
    double x = std::tanh(0.5 * dotAt(call.operands[0], call.operands[1], i));
    return 2 * std::min(std::max(4 * x + 1, 0.0), 3.0);
  });
}

// Whatever code of the library computes it: 0 of a negative number, not -0.
TEST(Dot, ReluMakesNoNegativeZero) {
  using Kind = abi::PostOpKind;
  for (auto [rows, columns] : {std::pair(1, 6), std::pair(5, 40)}) {
    CallCase call;
    // A column of a matrix as a row, which the library has no fast code for.
    call.operands = {
        Tensor::random({8 * rows, 7}, 1).seenAs({1, rows, 8}, {0, 56, 7}),
        Tensor::random({1, 8, columns}, 2)};
    call.result = Tensor::random({1, rows, columns}, 3);
    call.spec.post_ops = {postOp(Kind::linear, -1), postOp(Kind::relu)};
    for (bool keeps_nan : {false, true}) {
      const Values result = runCall(call, {.keep_nan = keeps_nan});
      EXPECT_TRUE(std::any_of(result.begin(), result.end(),
                              [](float value) { return value == 0; }));
      EXPECT_TRUE(std::none_of(result.begin(), result.end(), [](float value) {
        return std::signbit(value);
      }));
    }
  }
}

/// A matrix, or a batch of them, of small integers in bf16. `transposed`: the
/// last two dimensions lie the other way round.
Tensor brains(const Shape &shape, unsigned seed, bool transposed = false) {
  const int64_t count = product(shape);
  Tensor made;
  made.type = abi::DType::bf16;
  made.shape = shape;
  made.strides = denseStrides(shape);
  if (transposed) {
    const size_t last = shape.size() - 1;
    made.strides[last - 1] = 1;
    made.strides[last] = shape[last - 1];
  }
  made.values.resize(static_cast<size_t>(count + 1) / 2);
  std::mt19937 generator(seed);
  auto *elements = reinterpret_cast<uint16_t *>(made.values.data());
  for (int64_t i = 0; i < count; ++i) {
    const float number = static_cast<float>(int(generator() % 7) - 3);
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    elements[i] = static_cast<uint16_t>(bits >> 16);
  }
  return made;
}

float brainAt(const Tensor &tensor, const Shape &index) {
  uint16_t element;
  std::memcpy(&element,
              reinterpret_cast<const uint16_t *>(tensor.values.data()) +
                  tensor.at(index),
              sizeof(element));
  const uint32_t bits = uint32_t(element) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Sums of integers are exact, and are rounded to 8 bits, halves to even.
std::vector<double> expectedBrains(const CallCase &call) {
  const Tensor &lhs = call.operands[0], &rhs = call.operands[1];
  std::vector<double> expected;
  forEachIndex(call.result.shape, [&](const Shape &i) {
    Shape left = i, right = i;
    const size_t last = i.size() - 1;
    double sum = 0;
    for (int64_t k = 0; k < lhs.shape[last]; ++k) {
      left[last] = right[last - 1] = k;
      sum += double(brainAt(lhs, left)) * brainAt(rhs, right);
    }
    const double unit =
        std::exp2(std::floor(std::log2(std::abs(sum) + .5)) - 7);
    expected.push_back(unit > 1 ? std::nearbyint(sum / unit) * unit : sum);
  });
  return expected;
}

void expectBrains(const CallCase &call, const std::vector<double> &expected) {
  Tensor got = call.result;
  got.values = runCall(call);
  ASSERT_EQ(got.values.size(), call.result.values.size());
  int wrong = 0;
  size_t next = 0;
  forEachIndex(call.result.shape, [&](const Shape &i) {
    const double wanted = expected[next++];
    if (brainAt(got, i) != wanted && ++wrong <= 3)
      ADD_FAILURE() << "got " << brainAt(got, i) << ", expected " << wanted;
  });
  EXPECT_EQ(wrong, 0);
}

// By instructions for bf16, and as f32 without them.
TEST(Dot, OfBrains) {
  const int64_t sizes[][3] = {
      {6, 8, 10}, {64, 128, 512}, {70, 132, 1100}, {130, 260, 520}, {2, 4, 1}};
  for (auto [m, n, k] : sizes)
    for (bool left : {false, true})
      for (bool right : {false, true}) {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" +
                     std::to_string(k) + (left ? " transposed" : "") +
                     (right ? ", right transposed" : ""));
        CallCase call;
        call.operands = {brains({m, k}, 1, left), brains({k, n}, 2, right)};
        call.result = brains({m, n}, 3);
        const std::vector<double> expected = expectedBrains(call);
        expectBrains(call, expected);
        call.operands[1].weight = true;
        expectBrains(call, expected);
      }
}

TEST(Dot, OfBatchesOfBrains) {
  CallCase call;
  call.operands = {brains({3, 2, 70, 40}, 1),
                   brains({3, 2, 40, 12}, 2, /*transposed=*/true)};
  call.result = brains({3, 2, 70, 12}, 3);
  call.operands[1].strides = {960, 480, 1, 40};
  expectBrains(call, expectedBrains(call));
  // One right side for all, and rows of heads that lie inside rows.
  call.operands[1] = brains({1, 1, 40, 12}, 4);
  call.operands[0] =
      brains({3, 70, 2, 40}, 5).seenAs({3, 2, 70, 40}, {5600, 40, 80, 1});
  expectBrains(call, expectedBrains(call));
}

TEST(Dot, OfBrainsHasTheSameBitsOnAnyNumberOfThreads) {
  CallCase call;
  call.operands = {brains({130, 600}, 1), brains({600, 300}, 2)};
  call.result = brains({130, 300}, 3);
  const Values one = runCall(call, {.threads = 1});
  for (int threads : {2, 3}) {
    const Values several = runCall(call, {.threads = threads});
    EXPECT_EQ(std::memcmp(one.data(), several.data(), one.size() * 4), 0);
  }
}

// Plans may have products of f16. No library for CPUs computes them here.
TEST(Dot, OfHalves) {
  auto load = [](abi::DType left, abi::DType right, bool relu) {
    CallCase call;
    call.spec.label = "fc1";
    call.operands = {brains({4, 4}, 1), brains({4, 4}, 2)};
    call.result = brains({4, 4}, 3);
    call.operands[0].type = call.result.type = left;
    call.operands[1].type = right;
    if (relu)
      call.spec.post_ops.push_back({abi::PostOpKind::relu});
    const std::string path = temporary("halves.partita");
    writeArtifact(path, planOf(call));
    auto artifact = runtime::Artifact::open(path);
    ::unlink(path.c_str());
    if (!artifact)
      return artifact.status().message();
    return runtime::Session::create(*artifact, {}).status().message();
  };
  auto expect = [](const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(load(abi::DType::f16, abi::DType::bf16, false),
         "operand 1 is not f16");
  expect(load(abi::DType::f16, abi::DType::f16, false),
         "'fc1': the library computes with no f16");
  expect(load(abi::DType::bf16, abi::DType::bf16, true),
         "'fc1': the library computes with no bf16");
}

TEST(Conv, AllForms) {
  for (const ConvRow &row : convRows())
    for (bool last : {false, true}) {
      SCOPED_TRACE(row.name + (last ? " channels-last" : " channels-first"));
      CallCase call = convCase(row, last);
      expectCall(call, [&](const Shape &i) { return convAt(call, i); });
    }
}

TEST(Conv, BiasReluResidual) {
  for (bool last : {false, true}) {
    CallCase call = convCase(convRows()[0], last);
    call.bias = Tensor::random({32}, 5).asWeight();
    call.spec.post_ops = {postOp(abi::PostOpKind::add),
                          postOp(abi::PostOpKind::relu)};
    Tensor residual = Tensor::random(
        call.result.shape, 6, last ? channelsLast(4) : std::vector<int>());
    call.post_operands = {{0, residual}};
    expectCall(call, [&](const Shape &i) {
      return std::max(0.0, convAt(call, i) + call.bias.values[i[1]] +
                               residual.get(i));
    });
  }
}

TEST(Conv, ScaleOfEachChannel) {
  CallCase call = convCase(convRows()[3], true);
  call.spec.post_ops = {postOp(abi::PostOpKind::mul),
                        postOp(abi::PostOpKind::clip, 0, 6)};
  Tensor scale = Tensor::random({32}, 5).asWeight();
  call.post_operands = {{0, scale.seenAs(call.result.shape, {0, 1, 0, 0})}};
  expectCall(call, [&](const Shape &i) {
    return std::min(6.0, std::max(0.0, convAt(call, i) * scale.values[i[1]]));
  });
}

/// Large and small tiles, sizes that do not divide, fewer channels than a
/// block.
const std::vector<ConvRow> &winogradRows() {
  static const std::vector<ConvRow> rows = {{"small tiles",
                                             {1, 64, 14, 14},
                                             {32, 64, 3, 3},
                                             1,
                                             {1, 1},
                                             {1, 1},
                                             {1, 1},
                                             {1, 1}},
                                            {"large tiles",
                                             {1, 96, 28, 28},
                                             {96, 96, 3, 3},
                                             1,
                                             {1, 1},
                                             {1, 1},
                                             {1, 1},
                                             {1, 1}},
                                            {"ragged",
                                             {2, 36, 13, 11},
                                             {33, 36, 3, 3},
                                             1,
                                             {1, 1},
                                             {1, 1},
                                             {1, 1},
                                             {1, 1}},
                                            {"unequal pads",
                                             {1, 32, 15, 17},
                                             {48, 32, 3, 3},
                                             1,
                                             {1, 1},
                                             {1, 1},
                                             {0, 1},
                                             {1, 0}}};
  return rows;
}

rules::WindowedImages imagesOf(const CallCase &call) {
  const Shape &result = call.result.shape;
  return {result[0], call.operands[0].shape[1], result[1], result[2],
          result[3]};
}

/// Whether the library uses it (CMakeLists.txt forbids that to one of the
/// tests).
bool hasAvx512() {
  return __builtin_cpu_supports("avx512bw") &&
         !std::getenv("ONEDNN_MAX_CPU_ISA");
}

TEST(Conv, TiledWinogradHasTheSameBitsOnAnyNumberOfThreads) {
  if (hasAvx512())
    GTEST_SKIP() << "the library's own code is used";
  for (const ConvRow &row : winogradRows()) {
    CallCase call = convCase(row, true);
    call.spec.winograd = true;
    call.packed_room = rules::winogradFilterRoom(imagesOf(call));
    call.workspace =
        rules::kLibraryWorkspace + rules::winogradRoom(imagesOf(call));
    const Values one = runCall(call, {.threads = 1});
    for (int threads : {2, 3, 7})
      EXPECT_EQ(runCall(call, {.threads = threads}), one)
          << row.name << ", " << threads;
  }
}

// The library fuses the first kind; others are a step of their own.
class Winograd : public testing::TestWithParam<abi::PostOpKind> {};

TEST_P(Winograd, IsAsTheDirectMethod) {
  for (const ConvRow &row : winogradRows())
    for (int threads : {1, 2}) {
      SCOPED_TRACE(std::string(row.name) + ", " + std::to_string(threads));
      CallCase direct = convCase(row, true);
      direct.bias = Tensor::random({row.weights[0]}, 5).asWeight();
      direct.spec.post_ops = {postOp(GetParam(), 1)};
      CallCase call = direct;
      call.spec.winograd = true;
      // Exactly the room that a plan gives it.
      call.packed_room = rules::winogradFilterRoom(imagesOf(call));
      call.workspace =
          rules::kLibraryWorkspace + rules::winogradRoom(imagesOf(call));
      RunReport with, without;
      Values found = runCall(call, {.threads = threads}, &with),
             expected = runCall(direct, {.threads = threads}, &without);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], 1e-4 * (1 + std::abs(expected[i])));
      EXPECT_LE(with.memory.used(), with.memory.planned);
      // Its images lie in the scratch. With AVX-512 the library has no such
      // code for ragged images or unequal pads; without, there are tiles.
      const bool even = row.low == row.high && row.input[2] == row.input[3];
      if (hasAvx512() ? even : __builtin_cpu_supports("avx2")) {
        EXPECT_GT(with.memory.workspace, without.memory.workspace);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(PostOps, Winograd,
                         testing::Values(abi::PostOpKind::relu,
                                         abi::PostOpKind::swish,
                                         abi::PostOpKind::logistic),
                         [](const auto &info) {
                           return std::string(
                               abi::EnumNamePostOpKind(info.param));
                         });

// Without room for the transformed filter, or for the images, the call is
// computed directly.
TEST(Conv, WinogradWithoutRoom) {
  const CallCase direct = convCase(winogradRows()[0], true);
  Values expected = runCall(direct);
  CallCase poor = direct;
  poor.spec.winograd = true;
  CallCase narrow = poor;
  poor.packed_room = rules::packedFilterRoom(direct.operands[1].shape, 1);
  narrow.workspace = 4096;
  for (const CallCase &call : {poor, narrow}) {
    RunReport report;
    Values found = runCall(call, {}, &report);
    EXPECT_LE(report.memory.used(), report.memory.planned);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 1e-4 * (1 + std::abs(expected[i])));
  }
}

TEST(Conv, WeightsThatAreActivations) {
  CallCase call = convCase(convRows()[0], true);
  call.operands[1].weight = false;
  expectCall(call, [&](const Shape &i) { return convAt(call, i); });
}

TEST(Pool, AllForms) {
  struct Row {
    abi::CallKind kind;
    bool include_pad;
  };
  for (const Row &row : {Row{abi::CallKind::pool_max, false},
                         Row{abi::CallKind::pool_avg, false},
                         Row{abi::CallKind::pool_avg, true}})
    for (bool last : {false, true}) {
      CallCase call;
      InstructionSpec &spec = call.spec;
      spec.call = row.kind;
      spec.include_pad = row.include_pad;
      spec.window = {3, 2};
      spec.strides = {2, 2};
      spec.dilations = {1, 1};
      spec.pads_low = {1, 0};
      spec.pads_high = {1, 0};
      std::vector<int> order = last ? channelsLast(4) : std::vector<int>();
      call.operands = {Tensor::random({2, 20, 11, 8}, 1, order)};
      call.result = Tensor::random({2, 20, 6, 4}, 2, order);
      expectCall(call, [&](const Shape &i) {
        double most = -1e30, sum = 0;
        int count = 0;
        forEachIndex({3, 2}, [&](const Shape &tap) {
          int64_t y = i[2] * 2 + tap[0] - 1, x = i[3] * 2 + tap[1];
          if (y < 0 || y >= 11)
            return;
          double value = call.operands[0].get({i[0], i[1], y, x});
          most = std::max(most, value);
          sum += value;
          ++count;
        });
        return row.kind == abi::CallKind::pool_max
                   ? most
                   : sum / (row.include_pad ? 6 : count);
      });
    }
}

TEST(Pool, LastWindowCutOff) {
  CallCase call;
  InstructionSpec &spec = call.spec;
  spec.call = abi::CallKind::pool_max;
  spec.window = spec.strides = {3, 3};
  spec.dilations = {1, 1};
  spec.pads_low = spec.pads_high = {0, 0};
  call.operands = {Tensor::random({1, 16, 8, 8}, 1)};
  call.result = Tensor::random({1, 16, 3, 3}, 2); // 8 = 3 + 3 + 2
  expectCall(call, [&](const Shape &i) {
    double most = -1e30;
    for (int64_t y = i[2] * 3; y < std::min<int64_t>(8, i[2] * 3 + 3); ++y)
      for (int64_t x = i[3] * 3; x < std::min<int64_t>(8, i[3] * 3 + 3); ++x)
        most = std::max<double>(most, call.operands[0].get({i[0], i[1], y, x}));
    return most;
  });
}

/// Softmax(q k^T scale mul + add) v, row by row.
Values attentionReference(const CallCase &call) {
  const Tensor &q = call.operands[0], &k = call.operands[1],
               &v = call.operands[2];
  Values result(call.result.values.size());
  forEachIndex({q.shape[0], q.shape[1], q.shape[2]}, [&](const Shape &i) {
    std::vector<double> scores;
    for (int64_t l = 0; l < k.shape[2]; ++l) {
      double sum = 0;
      for (int64_t d = 0; d < q.shape[3]; ++d)
        sum += double(q.get({i[0], i[1], i[2], d})) * k.get({i[0], i[1], l, d});
      sum *= call.spec.scale;
      if (!call.mask_mul.values.empty())
        sum *= call.mask_mul.get({i[0], i[1], i[2], l});
      if (!call.mask_add.values.empty())
        sum += call.mask_add.get({i[0], i[1], i[2], l});
      scores.push_back(sum);
    }
    double most = *std::max_element(scores.begin(), scores.end()), total = 0;
    for (double &score : scores)
      total += score = std::exp(score - most);
    for (int64_t e = 0; e < v.shape[3]; ++e) {
      double sum = 0;
      for (int64_t l = 0; l < k.shape[2]; ++l)
        sum += scores[l] / total * v.get({i[0], i[1], l, e});
      result[call.result.at({i[0], i[1], i[2], e})] = float(sum);
    }
  });
  return result;
}

CallCase attentionCase(int64_t rows, int64_t columns, bool inside) {
  CallCase call;
  call.spec.call = abi::CallKind::attention;
  call.spec.scale = 1.5;
  std::vector<int> order =
      inside ? std::vector<int>{0, 2, 1, 3} : std::vector<int>();
  call.operands = {Tensor::random({2, 3, rows, 16}, 1, order),
                   Tensor::random({2, 3, columns, 16}, 2, order),
                   Tensor::random({2, 3, columns, 24}, 3, order)};
  call.result = Tensor::random({2, 3, rows, 24}, 4, order);
  return call;
}

void expectAttention(const CallCase &call) {
  Values reference = attentionReference(call);
  expectCall(
      call, [&](const Shape &i) { return reference[call.result.at(i)]; }, 1e-5);
}

TEST(Attention, Plain) {
  for (bool inside : {false, true})
    for (auto [rows, columns] :
         {std::pair(16, 16), std::pair(7, 37), std::pair(1, 33),
          std::pair(300, 40), std::pair(5, 1),
          // So small that the library is not asked.
          std::pair(1, 1), std::pair(3, 2), std::pair(1, 7)}) {
      SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns));
      expectAttention(attentionCase(rows, columns, inside));
    }
}

TEST(Attention, CausalMask) {
  // Of several blocks of rows, the first ones see few columns.
  for (int64_t size : {20, 300})
    for (float hidden : {-std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::lowest(), -1e4f}) {
      CallCase call = attentionCase(size, size, true);
      Tensor mask = Tensor::random({size, size}, 5).asWeight();
      for (int64_t i = 0; i < size * size; ++i)
        mask.values[i] = i % size > i / size ? hidden : 0.0f;
      call.mask_add = mask.seenAs({2, 3, size, size}, {0, 0, size, 1});
      expectAttention(call);
    }
}

TEST(Attention, SmallWithMasks) {
  CallCase call = attentionCase(2, 3, true);
  call.mask_mul = Tensor::random({2, 3}, 5).seenAs({2, 3, 2, 3}, {0, 0, 3, 1});
  call.mask_add = Tensor::random({2, 3}, 6).seenAs({2, 3, 2, 3}, {3, 0, 0, 1});
  expectAttention(call);
}

TEST(Attention, BothMasksAndPadding) {
  CallCase call = attentionCase(9, 21, false);
  call.mask_mul =
      Tensor::random({9, 21}, 5).seenAs({2, 3, 9, 21}, {0, 0, 21, 1});
  call.mask_add =
      Tensor::random({2, 21}, 6).seenAs({2, 3, 9, 21}, {21, 0, 0, 1});
  expectAttention(call);
  call.mask_mul = Tensor::random({2, 3, 9, 21}, 5, {3, 2, 1, 0});
  expectAttention(call);
  call.mask_mul = Tensor::random({2, 1, 9, 1}, 5);
  expectAttention(call);
}

TEST(Attention, SameBitsOnAnyNumberOfThreads) {
  CallCase many = attentionCase(300, 64, true), single;
  single.spec.call = abi::CallKind::attention;
  for (unsigned i = 0; i < 3; ++i)
    single.operands.push_back(Tensor::random({1, 1, 150, 700}, i));
  single.result = Tensor::random({1, 1, 150, 700}, 4);
  for (const CallCase &call : {many, single}) {
    Values one = runCall(call, {.threads = 1});
    for (int threads : {2, 3, 5}) {
      Values several = runCall(call, {.threads = threads});
      EXPECT_EQ(std::memcmp(one.data(), several.data(), one.size() * 4), 0);
    }
  }
}

} // namespace
} // namespace partita::test
