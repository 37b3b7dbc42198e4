//===- PoolTest.cpp - Pools of GPUs ---------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/cuda/DnnCalls.h"
#include "test/unit/cuda/PoolCases.h"

#include <limits>

namespace partita::test {
namespace {

using namespace runtime;
using abi::DType;

enum class Kind { max, average_with_pads, average };
constexpr Kind kKinds[] = {Kind::max, Kind::average_with_pads, Kind::average};

InstructionSpec pool(CallPlan &plan, DType type, const PoolCase &each,
                     Kind kind) {
  InstructionSpec spec;
  spec.call =
      kind == Kind::max ? abi::CallKind::pool_max : abi::CallKind::pool_avg;
  spec.include_pad = kind == Kind::average_with_pads;
  spec.label = "pool1";
  spec.views = {plan.tensor(type, each.x)};
  spec.views[0].strides = each.stridesOf(each.x);
  spec.window = each.window;
  spec.strides = each.strides;
  spec.dilations.assign(each.window.size(), 1);
  spec.pads_low = spec.pads_high = each.pads;
  return spec;
}

/// The window at an index of the result, in f64.
double pooled(const CallPlan &plan, const ViewSpec &x, const PoolCase &each,
              Kind kind, const Shape &index) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  int64_t inside = 0;
  Shape window(each.window.size(), 0);
  const int64_t elements = product(each.window);
  for (int64_t n = elements; n > 0; --n) {
    Shape place = {index[0], index[1]};
    bool is_inside = true;
    for (size_t i = 0; i < window.size(); ++i) {
      place.push_back(index[i + 2] * each.strides[i] + window[i] -
                      each.pads[i]);
      is_inside &= place.back() >= 0 && place.back() < each.x[i + 2];
    }
    if (is_inside) {
      largest = std::max(largest, plan.at(x, place));
      sum += plan.at(x, place);
      ++inside;
    }
    for (size_t i = window.size(); i-- > 0 && ++window[i] == each.window[i];)
      window[i] = 0;
  }
  return kind == Kind::max
             ? largest
             : sum / static_cast<double>(kind == Kind::average ? inside
                                                               : elements);
}

class CudaPools : public testing::TestWithParam<DType> {};

TEST_P(CudaPools, EachFormOfEachKind) {
  SKIP_WITHOUT_CUDNN();
  const DType type = GetParam();
  CallPlan plan;
  std::vector<std::pair<const PoolCase *, Kind>> made;
  for (const PoolCase &each : poolCases())
    for (const Kind kind : kKinds) {
      plan.add(pool(plan, type, each, kind), type, each.result(),
               each.stridesOf(each.result()));
      made.emplace_back(&each, kind);
    }
  ASSERT_NO_FATAL_FAILURE(plan.run());
  const double tolerance = type == DType::f32   ? 1e-6
                           : type == DType::f16 ? 1e-3
                                                : 1e-2;
  for (size_t call = 0; call < made.size(); ++call) {
    const auto &[each, kind] = made[call];
    const ViewSpec &x = plan.calls[call].spec.views[0];
    const Shape shape = each->result(), strides = each->stridesOf(shape);
    Shape index(shape.size(), 0);
    for (int64_t n = product(shape); n > 0; --n) {
      const double wanted = pooled(plan, x, *each, kind, index);
      int64_t place = 0;
      for (size_t i = 0; i < index.size(); ++i)
        place += index[i] * strides[i];
      ASSERT_NEAR(plan.result(call, place), wanted,
                  kind == Kind::max ? 0 : tolerance * (1 + std::abs(wanted)))
          << each->name << ", kind " << static_cast<int>(kind);
      for (size_t i = index.size(); i-- > 0 && ++index[i] == shape[i];)
        index[i] = 0;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaPools,
                         testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto &info) {
                           return std::string(abi::EnumNameDType(info.param));
                         });

const PoolCase &bordered() { return poolCases()[1]; }

TEST(CudaPool, WhatTheLibraryDoesNotComputeIsRefusedAtLoad) {
  SKIP_WITHOUT_CUDNN();
  auto expectRefusal =
      [](const std::string &why, const PoolCase &each,
         const std::function<void(InstructionSpec &, Shape & result)> &change) {
        CallPlan plan;
        InstructionSpec spec = pool(plan, DType::f32, each, Kind::max);
        Shape result = each.result();
        change(spec, result);
        plan.add(spec, DType::f32, result, each.stridesOf(result));
        EXPECT_EQ(refusal(plan),
                  "cuda:0: 'pool1': cuDNN does not compute the pool, because " +
                      why + ": compile the model for this kind of device");
      };
  expectRefusal("its windows have gaps", bordered(),
                [](InstructionSpec &spec, Shape &result) {
                  spec.dilations[0] = 2;
                  result[2] = 4;
                });
  expectRefusal("its pads differ at both ends", bordered(),
                [](InstructionSpec &spec, Shape &) { spec.pads_high[0] = 0; });
  expectRefusal("a window lies in the border alone", bordered(),
                [](InstructionSpec &spec, Shape &result) {
                  spec.pads_low[0] = spec.pads_high[0] = 3;
                  result[2] = 7;
                });
  expectRefusal("it has an epilogue", bordered(),
                [](InstructionSpec &spec, Shape &) {
                  spec.post_ops.push_back({abi::PostOpKind::relu});
                });
  expectRefusal("its images do not lie densely, with their channels outermost "
                "or innermost",
                bordered(), [](InstructionSpec &spec, Shape &) {
                  spec.views[0].strides = denseStrides(spec.views[0].shape);
                });
  PoolCase volume = poolCases().back();
  volume.channels_last = true;
  expectRefusal(
      "its images have three dimensions, and their channels innermost", volume,
      [](InstructionSpec &, Shape &) {});
}

TEST(CudaPool, NanInAWindowIsNanInItsResult) {
  SKIP_WITHOUT_CUDNN();
  for (const bool keep_nan : {false, true})
    for (const Kind kind : kKinds) {
      CallPlan plan;
      InstructionSpec spec = pool(plan, DType::f32, bordered(), kind);
      plan.put(spec.views[0], {0, 1, 4, 3},
               std::numeric_limits<float>::quiet_NaN());
      const Shape shape = bordered().result();
      plan.add(spec, DType::f32, shape, channelsLast(shape));
      DeviceOptions options;
      options.keep_nan = keep_nan;
      ASSERT_NO_FATAL_FAILURE(plan.run(options));
      // Windows of 3x3 begin at 2 * index - 1.
      for (int64_t place = 0; place < product(shape); ++place) {
        const int64_t channel = place % 3, column = place / 3 % shape[3],
                      row = place / 3 / shape[3];
        EXPECT_EQ(std::isnan(plan.result(0, place)),
                  channel == 1 && row == 2 && (column == 1 || column == 2))
            << row << ", " << column << ", " << channel;
      }
    }
}

TEST(CudaPool, EachCallOfTheLibraryThatFailsIsToldAndNothingLeaks) {
  SKIP_WITHOUT_CUDNN();
  EXPECT_EQ(failEachCall([](CallPlan &plan) {
              plan.add(pool(plan, DType::f32, bordered(), Kind::max),
                       DType::f32, bordered().result(),
                       channelsLast(bordered().result()));
            }),
            (Harmless{1, 8}));
}

} // namespace
} // namespace partita::test
