//===- ConvTest.cpp - Convolutions of GPUs --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/cuda/ConvCases.h"
#include "test/unit/cuda/DnnCalls.h"

#include <filesystem>
#include <fstream>
#include <limits>

namespace partita::test {
namespace {

using namespace runtime;
using abi::DType;
using abi::PostOpKind;
using cuda::cudnn::Result;

enum class Extra { bias, addend, relu };
const std::vector<Extra> kEpilogues[] = {
    {},
    {Extra::bias},
    {Extra::bias, Extra::relu},
    {Extra::bias, Extra::addend},
    {Extra::addend, Extra::bias, Extra::relu},
};

ViewSpec lastChannels(CallPlan &plan, DType type, const Shape &shape) {
  ViewSpec view = plan.tensor(type, shape);
  view.strides = channelsLast(shape);
  return view;
}

InstructionSpec convolution(CallPlan &plan, DType type, const ConvCase &each,
                            const std::vector<Extra> &epilogue,
                            bool filters_last = false) {
  InstructionSpec conv;
  conv.call = abi::CallKind::conv;
  conv.label = "conv1";
  conv.views = {lastChannels(plan, type, each.x),
                filters_last ? lastChannels(plan, type, each.weights())
                             : plan.tensor(type, each.weights())};
  conv.strides = each.strides;
  conv.dilations = each.dilations;
  conv.pads_low = conv.pads_high = each.pads;
  conv.groups = each.groups;
  for (Extra extra : epilogue) {
    PostOpSpec post;
    post.kind = extra == Extra::relu ? PostOpKind::relu : PostOpKind::add;
    if (extra == Extra::addend) {
      post.view = lastChannels(plan, type, each.result());
    } else if (extra == Extra::bias) {
      post.view = plan.tensor(type, {each.outputs});
      post.view.shape = each.result();
      post.view.strides.assign(each.result().size(), 0);
      post.view.strides[1] = 1;
    }
    conv.post_ops.push_back(post);
  }
  return conv;
}

/// The convolution at an index of the result, in f64.
double convolved(const CallPlan &plan, const InstructionSpec &spec,
                 const ConvCase &each, const Shape &index) {
  const int64_t channels = each.x[1] / each.groups,
                first = index[1] / (each.outputs / each.groups) * channels;
  double sum = 0;
  Shape window(each.window.size(), 0);
  for (int64_t n = product(each.window); n > 0; --n) {
    Shape x = {index[0], 0}, w = {index[1], 0};
    bool inside = true;
    for (size_t i = 0; i < window.size(); ++i) {
      x.push_back(index[i + 2] * each.strides[i] +
                  window[i] * each.dilations[i] - each.pads[i]);
      w.push_back(window[i]);
      inside &= x.back() >= 0 && x.back() < each.x[i + 2];
    }
    for (int64_t c = 0; c < channels && inside; ++c) {
      x[1] = first + c;
      w[1] = c;
      sum += plan.at(spec.views[0], x) * plan.at(spec.views[1], w);
    }
    for (size_t i = window.size(); i-- > 0 && ++window[i] == each.window[i];)
      window[i] = 0;
  }
  return sum;
}

class CudaConvolutions : public testing::TestWithParam<DType> {};

TEST_P(CudaConvolutions, EachFormWithEachEpilogue) {
  SKIP_WITHOUT_CUDNN();
  const DType type = GetParam();
  CallPlan plan;
  std::vector<std::pair<const ConvCase *, const std::vector<Extra> *>> made;
  for (const ConvCase &each : convCases())
    for (const std::vector<Extra> &epilogue : kEpilogues) {
      plan.add(convolution(plan, type, each, epilogue, made.size() % 2), type,
               each.result(), channelsLast(each.result()));
      made.emplace_back(&each, &epilogue);
    }
  ASSERT_NO_FATAL_FAILURE(plan.run());
  const double tolerance = type == DType::f32   ? 1e-5
                           : type == DType::f16 ? 2e-3
                                                : 2e-2;
  for (size_t call = 0; call < made.size(); ++call) {
    const auto &[each, epilogue] = made[call];
    const InstructionSpec &spec = plan.calls[call].spec;
    const Shape shape = each->result(), strides = channelsLast(shape);
    Shape index(shape.size(), 0);
    for (int64_t n = product(shape); n > 0; --n) {
      double wanted = convolved(plan, spec, *each, index);
      int64_t place = 0;
      for (size_t i = 0; i < index.size(); ++i)
        place += index[i] * strides[i];
      for (size_t i = 0; i < epilogue->size(); ++i)
        wanted = (*epilogue)[i] == Extra::relu
                     ? std::max(wanted, 0.0)
                     : wanted + plan.at(spec.post_ops[i].view, index);
      ASSERT_NEAR(plan.result(call, place), wanted,
                  tolerance * (1 + std::abs(wanted)))
          << each->name << ", epilogue of " << epilogue->size();
      for (size_t i = index.size(); i-- > 0 && ++index[i] == shape[i];)
        index[i] = 0;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaConvolutions,
                         testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto &info) {
                           return std::string(abi::EnumNameDType(info.param));
                         });

const ConvCase &simple() { return convCases().front(); }

TEST(CudaConvolution, WhatTheLibraryDoesNotComputeIsRefusedAtLoad) {
  SKIP_WITHOUT_CUDNN();
  auto expectRefusal =
      [](const std::string &why, const std::vector<Extra> &epilogue,
         const std::function<void(InstructionSpec &)> &change = {}) {
        CallPlan plan;
        InstructionSpec conv =
            convolution(plan, DType::f32, simple(), epilogue);
        if (change)
          change(conv);
        Shape result = simple().result();
        result[2] += conv.pads_high[0] - 1;
        plan.add(conv, DType::f32, result, channelsLast(result));
        EXPECT_EQ(refusal(plan),
                  "cuda:0: 'conv1': cuDNN does not compute the convolution, "
                  "because " +
                      why + ": compile the model for this kind of device");
      };
  expectRefusal("it adds and has ReLU only with a bias", {Extra::relu});
  expectRefusal("it adds and has ReLU only with a bias", {Extra::addend});
  expectRefusal(
      "its epilogue has a post-op that cuDNN has not, or not in this place",
      {Extra::bias, Extra::relu, Extra::addend});
  expectRefusal(
      "its epilogue has a post-op that cuDNN has not, or not in this place",
      {Extra::bias}, [](InstructionSpec &conv) {
        conv.post_ops.push_back({PostOpKind::tanh});
      });
  expectRefusal("its pads differ at both ends", {},
                [](InstructionSpec &conv) { conv.pads_high[0] = 2; });
  expectRefusal("its images do not lie densely with their channels innermost",
                {}, [](InstructionSpec &conv) {
                  conv.views[0].strides = denseStrides(conv.views[0].shape);
                });
}

TEST(CudaConvolution, AReluKeepsNanWhereItMust) {
  SKIP_WITHOUT_CUDNN();
  // An engine that keeps NaN is asked for; there is one.
  CallPlan plan;
  plan.add(convolution(plan, DType::f32, simple(), {Extra::bias, Extra::relu}),
           DType::f32, simple().result(), channelsLast(simple().result()));
  DeviceOptions options;
  options.keep_nan = true;
  EXPECT_EQ(refusal(plan, options), "");
  // None of a library whose engines say nothing of it.
  static decltype(cuda::cudnn::Api::getAttribute) real;
  cuda::cudnn::Api silent = **cuda::cudnn::loadApi();
  real = silent.getAttribute;
  silent.getAttribute = [](auto descriptor, auto name, auto type,
                           int64_t wanted, int64_t *count, void *to) {
    const Result result = real(descriptor, name, type, wanted, count, to);
    if (name == cuda::cudnn::Attribute::engine_numerical_notes)
      *count = 0;
    return result;
  };
  EXPECT_NE(refusal(plan, options, &silent)
                .find("has no engine for a convolution that computes in f32 "
                      "alone, keeps NaN and needs 1048576 bytes of workspace "
                      "at most: compile the model with --no-library-calls"),
            std::string::npos);
}

TEST(CudaConvolution, ALibraryThatIsMissingOrOfAnotherVersion) {
  using namespace cuda::cudnn;
  auto missing = openApi("libcudnn.so.99");
  ASSERT_FALSE(missing.ok());
  for (const char *part :
       {"this plan has calls that cuDNN computes, and there is no "
        "libcudnn.so.99 (",
        "install cuDNN 9", "--no-library-calls"})
    EXPECT_NE(missing.status().message().find(part), std::string::npos)
        << missing.status().message();
  auto other = openApi("libdl.so.2");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(
      other.status().message().find("libdl.so.2 has no function cudnnCreate"),
      std::string::npos)
      << other.status().message();
  if (!std::getenv("CUDA_EMU_DEVICES"))
    GTEST_SKIP() << "needs the emulator's cuDNN, which may be of any version";
  ::setenv("CUDNN_EMU_VERSION", "8905", 1);
  auto old = openApi("libcudnn.so.9");
  ::unsetenv("CUDNN_EMU_VERSION");
  ASSERT_FALSE(old.ok());
  EXPECT_NE(old.status().message().find("needs version 9.0.0 or later"),
            std::string::npos)
      << old.status().message();
}

TEST(CudaConvolution, EachCallOfTheLibraryThatFailsIsToldAndNothingLeaks) {
  SKIP_WITHOUT_CUDNN();
  const Harmless harmless = failEachCall([](CallPlan &plan) {
    plan.add(convolution(plan, DType::f32, simple(),
                         {Extra::addend, Extra::bias, Extra::relu}),
             DType::f32, simple().result(), channelsLast(simple().result()));
  });
  if (std::getenv("CUDA_EMU_DEVICES")) {
    EXPECT_EQ(harmless, (Harmless{1, 8}));
  } else {
    EXPECT_GT(harmless.choices, 0);
  }
}

TEST(CudaConvolution, EnginesAreChosenOnceForAllProcesses) {
  SKIP_WITHOUT_CUDNN();
  const std::string folder = temporary("cache");
  const CacheFolder cache(folder);
  static int asked; // for proposals
  static decltype(cuda::cudnn::Api::getAttribute) real;
  cuda::cudnn::Api api = **cuda::cudnn::loadApi();
  real = api.getAttribute;
  api.getAttribute = [](auto descriptor, auto name, auto type, int64_t wanted,
                        int64_t *count, void *to) {
    asked += name == cuda::cudnn::Attribute::heuristics_results && wanted == 0;
    return real(descriptor, name, type, wanted, count, to);
  };
  auto asks = [&] {
    asked = 0;
    CallPlan plan;
    plan.add(
        convolution(plan, DType::f32, simple(), {Extra::bias, Extra::relu}),
        DType::f32, simple().result(), channelsLast(simple().result()));
    EXPECT_EQ(refusal(plan, {}, &api), "");
    return asked;
  };
  EXPECT_EQ(asks(), 1);
  EXPECT_EQ(asks(), 0);
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  const std::filesystem::path file =
      std::filesystem::directory_iterator(folder)->path();
  EXPECT_EQ(file.filename().string().rfind("cuDNN-", 0), 0u) << file;
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  const std::string problem = line.substr(0, line.find(": "));
  EXPECT_LT(problem.size() + 2, line.size());
  if (!std::getenv("CUDA_EMU_DEVICES")) {
    std::filesystem::remove_all(folder);
    GTEST_SKIP() << "the rest needs the emulator's engines, which are known";
  }
  EXPECT_EQ(line.substr(problem.size()), ": 1 2 1");
  // What is in the file is not trusted: an engine that rounds, one that does
  // not exist, a knob that does not exist, half a knob.
  for (const char *words : {"0 2 0", "7", "1 3 1", "1 2", "1 2 1 2 1 2 9"}) {
    SCOPED_TRACE(words);
    std::ofstream(file) << problem << ": " << words << "\n";
    EXPECT_EQ(asks(), 1);
    EXPECT_EQ(asks(), 0);
  }
  std::filesystem::remove_all(folder);
}

} // namespace
} // namespace partita::test
