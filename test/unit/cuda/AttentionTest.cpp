//===- AttentionTest.cpp - Attention of GPUs ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/cuda/AttentionCases.h"
#include "test/unit/cuda/DnnCalls.h"

#include <algorithm>
#include <cmath>

namespace partita::test {
namespace {

using namespace runtime;
using abi::DType;

constexpr float kScale = 0.125f;

InstructionSpec attention(CallPlan &plan, DType type,
                          const AttentionCase &each) {
  InstructionSpec spec;
  spec.call = abi::CallKind::attention;
  spec.label = "attention1";
  spec.scale = kScale;
  for (const Shape &shape : {each.q(), each.k(), each.v()}) {
    spec.views.push_back(plan.tensor(type, shape));
    spec.views.back().strides = each.stridesOf(shape);
  }
  if (each.has_mask) {
    spec.mask_add = plan.tensor(type, each.mask);
    spec.mask_add.strides = each.maskStrides();
    spec.mask_add.shape = each.scores();
  }
  return spec;
}

void add(CallPlan &plan, DType type, const AttentionCase &each) {
  // The statistics and what the engine needs.
  plan.spec.programs[0].workspace_bytes = 1 << 20;
  plan.add(attention(plan, type, each), type, each.result(),
           each.stridesOf(each.result()));
}

/// A row of the result, in f64.
std::vector<double> rowOf(const CallPlan &plan, const InstructionSpec &spec,
                          const AttentionCase &each, int64_t b, int64_t h,
                          int64_t m) {
  std::vector<double> scores;
  for (int64_t l = 0; l < each.keys; ++l) {
    double sum = 0;
    for (int64_t d = 0; d < each.depth; ++d)
      sum += plan.at(spec.views[0], {b, h, m, d}) *
             plan.at(spec.views[1], {b, h, l, d});
    scores.push_back(sum * double(kScale));
    if (each.has_mask)
      scores.back() += plan.at(spec.mask_add, {b, h, m, l});
  }
  const double most = *std::ranges::max_element(scores);
  double total = 0;
  for (double &score : scores)
    total += score = std::exp(score - most);
  std::vector<double> row;
  for (int64_t e = 0; e < each.width; ++e) {
    double sum = 0;
    for (int64_t l = 0; l < each.keys; ++l)
      sum += scores[size_t(l)] / total * plan.at(spec.views[2], {b, h, l, e});
    row.push_back(sum);
  }
  return row;
}

class CudaAttentions : public testing::TestWithParam<DType> {};

TEST_P(CudaAttentions, EachForm) {
  SKIP_WITHOUT_CUDNN();
  const DType type = GetParam();
  CallPlan plan;
  for (const AttentionCase &each : attentionCases())
    add(plan, type, each);
  ASSERT_NO_FATAL_FAILURE(plan.run());
  const double tolerance = type == DType::f16 ? 2e-3 : 1.6e-2;
  for (size_t call = 0; call < attentionCases().size(); ++call) {
    const AttentionCase &each = attentionCases()[call];
    const Shape strides = each.stridesOf(each.result());
    for (int64_t b = 0; b < each.batch; ++b)
      for (int64_t h = 0; h < each.heads; ++h)
        for (int64_t m = 0; m < each.rows; ++m) {
          const std::vector<double> row =
              rowOf(plan, plan.calls[call].spec, each, b, h, m);
          for (int64_t e = 0; e < each.width; ++e)
            ASSERT_NEAR(plan.result(call, b * strides[0] + h * strides[1] +
                                              m * strides[2] + e),
                        row[size_t(e)], tolerance)
                << each.name << ", " << b << ", " << h << ", " << m << ", "
                << e;
        }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaAttentions,
                         testing::Values(DType::f16, DType::bf16),
                         [](const auto &info) {
                           return std::string(abi::EnumNameDType(info.param));
                         });

const AttentionCase &masked() { return attentionCases()[5]; }

TEST(CudaAttention, WhatTheLibraryDoesNotComputeIsRefusedAtLoad) {
  SKIP_WITHOUT_CUDNN();
  auto expectRefusal = [](
                           const std::string &why, DType type,
                           const std::function<void(AttentionCase &)> &change,
                           const std::function<void(InstructionSpec &)> &after =
                               [](InstructionSpec &) {}) {
    CallPlan plan;
    AttentionCase each = masked();
    change(each);
    InstructionSpec spec = attention(plan, type, each);
    after(spec);
    plan.add(spec, type, each.result(), each.stridesOf(each.result()));
    EXPECT_EQ(refusal(plan), "cuda:0: 'attention1': cuDNN does not compute "
                             "the attention, because " +
                                 why +
                                 ": compile the model for this kind of "
                                 "device");
  };
  auto nothing = [](AttentionCase &) {};
  expectRefusal("it has no engine for their type", DType::f32, nothing);
  expectRefusal("a head has no multiple of 8 numbers, or more than 512",
                DType::f16, [](AttentionCase &each) { each.depth = 12; });
  expectRefusal("a head has no multiple of 8 numbers, or more than 512",
                DType::f16, [](AttentionCase &each) { each.width = 4; });
  expectRefusal("a head has no multiple of 8 numbers, or more than 512",
                DType::f16, [](AttentionCase &each) { each.depth = 520; });
  expectRefusal("its mask is a factor", DType::f16, nothing,
                [](InstructionSpec &spec) { spec.mask_mul = spec.mask_add; });
  expectRefusal("an operand does not lie in rows that begin at multiples of 16 "
                "bytes",
                DType::f16, nothing, [](InstructionSpec &spec) {
                  ViewSpec &k = spec.views[1]; // with its keys inside
                  k.strides[2] = 1;
                  k.strides[3] = k.shape[2];
                });
  expectRefusal("its statistics need more than 16 MiB", DType::f16,
                [](AttentionCase &each) {
                  each = {"large", 1, 1, (1 << 22) + 1, 1, 8, 8};
                });
}

TEST(CudaAttention, NanMayBeLost) {
  SKIP_WITHOUT_CUDNN();
  CallPlan plan;
  add(plan, DType::f16, masked());
  DeviceOptions options;
  options.keep_nan = true;
  EXPECT_EQ(refusal(plan, options),
            "cuda:0: 'attention1': attention of cuDNN may make a number of "
            "NaN: for --strict-nan compile the model without "
            "--attention-calls");
}

TEST(CudaAttention, WithoutWorkspaceOrACompilerItSaysWhatToDo) {
  SKIP_WITHOUT_CUDNN();
  {
    CallPlan plan;
    add(plan, DType::f16, masked());
    plan.spec.programs[0].workspace_bytes = 64;
    EXPECT_EQ(refusal(plan),
              "cuda:0: 'attention1': attention needs 256 bytes of workspace, "
              "and the plan has 64: compile the model with more (--workspace), "
              "or without --attention-calls");
  }
  if (!std::getenv("CUDA_EMU_DEVICES"))
    GTEST_SKIP() << "needs the emulator, which may have no NVRTC";
  setenv("CUDNN_EMU_NO_NVRTC", "1", 1);
  CallPlan plan;
  add(plan, DType::f16, masked());
  const std::string said = refusal(plan);
  unsetenv("CUDNN_EMU_NO_NVRTC");
  EXPECT_NE(said.find("has no engine for attention that rounds no part of a "
                      "sum, compiled by NVRTC and needs 1048320 bytes of "
                      "workspace at most: install NVRTC (libnvrtc.so of the "
                      "same CUDA as cuDNN) where the dynamic loader finds it, "
                      "or compile the model without --attention-calls"),
            std::string::npos)
      << said;
}

TEST(CudaAttention, EachCallOfTheLibraryThatFailsIsToldAndNothingLeaks) {
  SKIP_WITHOUT_CUDNN();
  const Harmless harmless =
      failEachCall([](CallPlan &plan) { add(plan, DType::f16, masked()); });
  EXPECT_EQ(harmless.plans, 1);
  EXPECT_GT(harmless.choices, 0);
}

} // namespace
} // namespace partita::test
