//===- CallTest.cpp - Library calls on GPUs -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/rules/Matmul.h"
#include "test/unit/cuda/CallPlan.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace partita::test {
namespace {

using namespace runtime;
using abi::DType;
using abi::PostOpKind;
using cuda::cublaslt::Result;

/// [B, M, K] * [B, K, N], each with rows or columns side by side.
struct Layouts {
  bool lhs_columns, rhs_columns, same_rhs;
  int64_t batch;
};

const Layouts kLayouts[] = {
    {false, false, false, 1}, {false, true, false, 1},  {true, false, false, 1},
    {true, true, false, 1},   {false, false, false, 3}, {true, true, false, 3},
    {false, true, true, 3},
};

/// A step of an epilogue, and where its operand is.
enum class Extra { scale, bias, addend, same_addend, relu, gelu };

const std::vector<Extra> kEpilogues[] = {
    {},
    {Extra::scale},
    {Extra::bias},
    {Extra::relu},
    {Extra::gelu},
    {Extra::bias, Extra::relu},
    {Extra::bias, Extra::gelu},
    {Extra::addend},
    {Extra::scale, Extra::addend},
    {Extra::bias, Extra::addend},
    {Extra::addend, Extra::bias, Extra::gelu},
    {Extra::scale, Extra::bias, Extra::addend, Extra::relu},
    {Extra::same_addend, Extra::bias},
};

/// What a product with its epilogue is, in f64.
double expected(const CallPlan &plan, const CallPlan::Call &call,
                const std::vector<Extra> &extras, int64_t b, int64_t m,
                int64_t n, int64_t depth) {
  double value = 0;
  for (int64_t k = 0; k < depth; ++k)
    value += plan.at(call.spec.views[0], {b, m, k}) *
             plan.at(call.spec.views[1], {b, k, n});
  for (size_t i = 0; i < extras.size(); ++i) {
    switch (extras[i]) {
    case Extra::scale:
      value *= call.spec.post_ops[i].alpha;
      break;
    case Extra::bias:
    case Extra::addend:
    case Extra::same_addend:
      value += plan.at(call.spec.post_ops[i].view, {b, m, n});
      break;
    case Extra::relu:
      value = std::max(value, 0.0);
      break;
    case Extra::gelu:
      value *=
          0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) *
                               (value + 0.044715 * value * value * value)));
      break;
    }
  }
  return value;
}

class CudaCalls : public testing::TestWithParam<DType> {};

// Each layout with each epilogue, all in one unit.
TEST_P(CudaCalls, EachLayoutWithEachEpilogue) {
  SKIP_WITHOUT_CUBLASLT();
  const DType type = GetParam();
  const int64_t rows = 5, columns = 9, depth = 7;
  CallPlan plan;
  std::vector<std::vector<Extra>> extras;
  std::vector<int64_t> batches;
  for (const Layouts &layouts : kLayouts)
    for (const std::vector<Extra> &epilogue : kEpilogues) {
      const int64_t batch = layouts.batch;
      InstructionSpec dot;
      dot.views = {plan.tensor(type, {batch, rows, depth}, layouts.lhs_columns),
                   plan.tensor(type,
                               {layouts.same_rhs ? 1 : batch, depth, columns},
                               layouts.rhs_columns)};
      dot.views[1].shape[0] = batch;
      if (layouts.same_rhs)
        dot.views[1].strides[0] = 0;
      for (Extra extra : epilogue) {
        PostOpSpec post;
        post.kind = extra == Extra::scale  ? PostOpKind::linear
                    : extra == Extra::relu ? PostOpKind::relu
                    : extra == Extra::gelu ? PostOpKind::gelu_tanh
                                           : PostOpKind::add;
        post.alpha = 0.375;
        if (extra == Extra::bias) {
          post.view = plan.tensor(type, {1, 1, columns});
          post.view.shape = {batch, rows, columns};
          post.view.strides = {0, 0, 1};
        } else if (extra == Extra::addend || extra == Extra::same_addend) {
          const int64_t own = extra == Extra::addend ? batch : 1;
          post.view = plan.tensor(type, {own, rows, columns});
          post.view.shape[0] = batch;
          if (own != batch)
            post.view.strides[0] = 0;
        }
        dot.post_ops.push_back(post);
      }
      plan.add(dot, type, {batch, rows, columns});
      extras.push_back(epilogue);
      batches.push_back(batch);
    }
  ASSERT_NO_FATAL_FAILURE(plan.run());
  const double tolerance = type == DType::f32   ? 1e-5
                           : type == DType::f16 ? 1e-3
                                                : 8e-3;
  for (size_t i = 0; i < plan.calls.size(); ++i)
    for (int64_t b = 0; b < batches[i]; ++b)
      for (int64_t m = 0; m < rows; ++m)
        for (int64_t n = 0; n < columns; ++n) {
          const double wanted =
              expected(plan, plan.calls[i], extras[i], b, m, n, depth);
          ASSERT_NEAR(plan.result(i, (b * rows + m) * columns + n), wanted,
                      tolerance * (1 + std::abs(wanted)))
              << "call " << i << " at " << b << ", " << m << ", " << n;
        }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaCalls,
                         testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto &info) {
                           return std::string(abi::EnumNameDType(info.param));
                         });

TEST(CudaCall, IntegersOf8Bits) {
  SKIP_WITHOUT_CUBLASLT();
  CallPlan plan;
  InstructionSpec dot;
  dot.views = {plan.tensor(DType::i8, {2, 3, 300}),
               plan.tensor(DType::i8, {2, 300, 8}, /*columns_inside=*/true)};
  plan.add(dot, DType::i32, {2, 3, 8});
  ASSERT_NO_FATAL_FAILURE(plan.run());
  for (int64_t i = 0; i < 2 * 3 * 8; ++i) {
    const int64_t b = i / 24, m = i / 8 % 3, n = i % 8;
    EXPECT_EQ(plan.result(0, i),
              expected(plan, plan.calls[0], {}, b, m, n, 300));
  }
}

// Where the library adds parts of a sum in the workspace, nothing else is
// there; and what is behind an operand's begin decides how it may be read.
TEST(CudaCall, LongSumsAndOperandsThatAreNotAligned) {
  SKIP_WITHOUT_CUBLASLT();
  CallPlan plan;
  for (int64_t offset : {0, 1, 2, 4}) {
    InstructionSpec dot;
    dot.views = {plan.tensor(DType::f16, {4, 1000}),
                 plan.tensor(DType::f16, {1000, 6})};
    dot.views[0].offset = offset;
    dot.views[0].shape = {3, 999 - offset};
    dot.views[1].shape = {999 - offset, 5};
    dot.views[1].offset = 1;
    plan.add(dot, DType::f16, {3, 5});
  }
  ASSERT_NO_FATAL_FAILURE(plan.run());
  for (size_t call = 0; call < plan.calls.size(); ++call)
    for (int64_t i = 0; i < 15; ++i) {
      const InstructionSpec &spec = plan.calls[call].spec;
      double wanted = 0;
      for (int64_t k = 0; k < spec.views[0].shape[1]; ++k)
        wanted += plan.at(spec.views[0], {i / 5, k}) *
                  plan.at(spec.views[1], {k, i % 5});
      EXPECT_NEAR(plan.result(call, i), wanted, 2e-3 * (1 + std::abs(wanted)));
    }
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

std::string refusal(CallPlan &plan, DeviceOptions options = {}) {
  LoadedDevice loaded(plan.open(), **cuda::loadApi(), 0, options);
  return loaded.device ? loaded.device->prepare(0).status().message()
                       : loaded.status.message();
}

/// [4, 8] * [8, 4] with what a test adds.
InstructionSpec smallDot(CallPlan &plan, DType type = DType::f32) {
  InstructionSpec dot;
  dot.label = "fc1";
  dot.views = {plan.tensor(type, {4, 8}), plan.tensor(type, {8, 4})};
  return dot;
}

TEST(CudaCall, WhatTheLibraryDoesNotComputeIsRefusedAtLoad) {
  SKIP_WITHOUT_CUBLASLT();
  auto expectRefusal =
      [](DType result, const std::string &why,
         const std::function<void(CallPlan &, InstructionSpec &)> &change) {
        CallPlan plan;
        InstructionSpec dot =
            smallDot(plan, result == DType::i32 ? DType::i8 : result);
        change(plan, dot);
        plan.add(dot, result, {4, 4});
        EXPECT_EQ(
            refusal(plan),
            "cuda:0: 'fc1': cuBLASLt does not compute the product, because " +
                why + ": compile the model for this kind of device");
      };
  const std::string epilogue =
      "its epilogue has a post-op that cuBLASLt has not, or not in this place";
  auto post = [](PostOpKind kind, float alpha = 0, float beta = 0) {
    PostOpSpec spec;
    spec.kind = kind;
    spec.alpha = alpha;
    spec.beta = beta;
    return spec;
  };
  for (const PostOpSpec &step :
       {post(PostOpKind::gelu_erf), post(PostOpKind::tanh),
        post(PostOpKind::linear, 1, 1)})
    expectRefusal(DType::f32, epilogue, [&](CallPlan &, InstructionSpec &dot) {
      dot.post_ops = {step};
    });
  expectRefusal(DType::f32, epilogue, [&](CallPlan &, InstructionSpec &dot) {
    dot.post_ops = {post(PostOpKind::relu), post(PostOpKind::linear, 2)};
  });
  // One value a row.
  expectRefusal(DType::f32, epilogue,
                [&](CallPlan &plan, InstructionSpec &dot) {
                  dot.post_ops = {post(PostOpKind::add)};
                  dot.post_ops[0].view = plan.tensor(DType::f32, {4, 1});
                });
  // A vector that no access of 16 bytes reads.
  expectRefusal(DType::f32, epilogue,
                [&](CallPlan &plan, InstructionSpec &dot) {
                  dot.post_ops = {post(PostOpKind::add)};
                  dot.post_ops[0].view = plan.tensor(DType::f32, {1, 8});
                  dot.post_ops[0].view.shape = {1, 4};
                  dot.post_ops[0].view.offset = 1;
                });
  expectRefusal(DType::f32, "its left side has gaps in both dimensions",
                [&](CallPlan &plan, InstructionSpec &dot) {
                  dot.views[0] = plan.tensor(DType::f32, {4, 16});
                  dot.views[0].shape = {4, 8};
                  dot.views[0].strides = {16, 2};
                });
  expectRefusal(DType::i32,
                "integers that are multiplied must lie side by side along the "
                "sum, on both sides",
                [&](CallPlan &, InstructionSpec &) {});
  expectRefusal(DType::i32,
                "products of integers need extents, steps and offsets that are "
                "multiples of 4",
                [&](CallPlan &plan, InstructionSpec &dot) {
                  dot.views[0] = plan.tensor(DType::i8, {4, 6});
                  dot.views[1] = plan.tensor(DType::i8, {6, 4}, true);
                });
  // Batches of which the second is somewhere else than the first lets expect.
  CallPlan plan;
  InstructionSpec dot;
  dot.label = "fc1";
  dot.views = {plan.tensor(DType::f32, {2, 3, 4, 8}),
               plan.tensor(DType::f32, {2, 3, 8, 4})};
  dot.views[0].strides = {32, 64, 8, 1};
  plan.add(dot, DType::f32, {2, 3, 4, 4});
  EXPECT_NE(refusal(plan).find("do not lie at equal distances"),
            std::string::npos);
}

TEST(CudaCall, OtherCallsAreRefused) {
  SKIP_WITHOUT_GPU();
  CallPlan plan;
  InstructionSpec scan;
  scan.label = "scan1";
  scan.call = abi::CallKind::scan;
  scan.combine = abi::Combine::sum;
  scan.views = {plan.tensor(DType::f32, {1, 4, 4})};
  plan.add(scan, DType::f32, {1, 4, 4});
  EXPECT_EQ(refusal(plan), "cuda:0: 'scan1': GPUs have no call 'scan': "
                           "compile the model for this kind of device");
}

TEST(CudaCall, AReluThatLosesNanIsNotUsedWhereNanMustStay) {
  SKIP_WITHOUT_CUBLASLT();
  CallPlan plan;
  InstructionSpec dot = smallDot(plan);
  dot.post_ops.emplace_back(); // relu
  plan.add(dot, DType::f32, {4, 4});
  DeviceOptions options;
  options.keep_nan = true;
  EXPECT_NE(refusal(plan, options)
                .find("for --strict-nan compile the model "
                      "with --no-library-calls"),
            std::string::npos);
  EXPECT_EQ(refusal(plan), "");
}

TEST(CudaCall, ALibraryThatIsMissingOrOfAnotherVersion) {
  using namespace cuda::cublaslt;
  EXPECT_EQ(
      libraryNames(13010),
      (std::vector<std::string>{"libcublasLt.so.13", "libcublasLt.so.12"}));
  EXPECT_EQ(libraryNames(12040), std::vector<std::string>{"libcublasLt.so.12"});
  auto missing = openApi({"libcublasLt.so.99", "libcublasLt.so.98"});
  ASSERT_FALSE(missing.ok());
  for (const char *part :
       {"there is no libcublasLt.so.99 or libcublasLt.so.98", "install cuBLAS",
        "compile the model with --no-library-calls"})
    EXPECT_NE(missing.status().message().find(part), std::string::npos)
        << missing.status().message();
  auto other = openApi({"libdl.so.2"});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find(
                "libdl.so.2 has no function cublasLtCreate"),
            std::string::npos)
      << other.status().message();
  if (!installedBlas())
    GTEST_SKIP() << "there is no cuBLASLt";
  if (!std::getenv("CUDA_EMU_DEVICES"))
    GTEST_SKIP()
        << "needs the emulator's cuBLASLt, which may be of any version";
  ::setenv("CUBLASLT_EMU_VERSION", "111103", 1);
  auto old = openApi({"libcublasLt.so.13"});
  ::unsetenv("CUBLASLT_EMU_VERSION");
  ASSERT_FALSE(old.ok());
  EXPECT_NE(
      old.status().message().find("libcublasLt.so.13 is cuBLASLt 11.11.3; "
                                  "this program needs version 12.0.0"),
      std::string::npos)
      << old.status().message();
}

TEST(CudaCall, ThePlansWorkspaceIsPartOfWhatIsNeeded) {
  SKIP_WITHOUT_CUBLASLT();
  CallPlan plan;
  plan.add(smallDot(plan), DType::f32, {4, 4});
  plan.spec.programs[0].workspace_bytes = int64_t(1) << 44;
  const std::string said = refusal(plan);
  EXPECT_NE(said.find("workspace 16.0 TiB"), std::string::npos) << said;
}

//===----------------------------------------------------------------------===//
// Failures, and the cache
//===----------------------------------------------------------------------===//

TEST(CudaCall, EachCallOfTheLibraryThatFailsIsToldAndNothingLeaks) {
  SKIP_WITHOUT_CUBLASLT();
  const CacheFolder none("");
  std::map<std::string, int> calls;
  auto use = [&](WrappedBlas &blas) -> Status {
    CallPlan plan;
    InstructionSpec dot;
    dot.label = "fc1";
    dot.views = {plan.tensor(DType::f32, {2, 4, 8}),
                 plan.tensor(DType::f32, {2, 8, 4})};
    dot.post_ops.resize(2);
    dot.post_ops[0].kind = dot.post_ops[1].kind = PostOpKind::add;
    dot.post_ops[0].view = plan.tensor(DType::f32, {1, 1, 4});
    dot.post_ops[1].view = plan.tensor(DType::f32, {2, 4, 4});
    plan.add(dot, DType::f32, {2, 4, 4});
    LoadedDevice loaded(plan.open(), **cuda::loadApi(), 0, {}, {&blas.api});
    if (!loaded.device)
      return loaded.status;
    auto unit = loaded.device->prepare(0);
    if (!unit)
      return unit.status();
    if (Status status = loaded.device->beginStep(); !status.ok())
      return status;
    (void)loaded.device->queue().run(**unit, 0, nullptr);
    return loaded.device->endStep();
  };
  {
    WrappedBlas blas;
    const Status status = use(blas);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(blas.live(), 0);
    calls = blas.called;
  }
  EXPECT_EQ(calls.size(), 13u); // all but `check`
  for (const auto &[name, count] : calls)
    for (int at = 1; at <= count; ++at) {
      SCOPED_TRACE(name + ", call " + std::to_string(at));
      WrappedBlas blas;
      blas.fail_name = name;
      blas.fail_at = at;
      const Status status = use(blas);
      if (name.find("estroy") != std::string::npos) {
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(blas.live(), 1);
        continue;
      }
      EXPECT_EQ(blas.live(), 0);
      EXPECT_NE(status.message().find(
                    "CUBLAS_STATUS_EXECUTION_FAILED (13) of cuBLASLt "),
                std::string::npos)
          << status.message();
      if (name != "create") {
        EXPECT_NE(status.message().find("'fc1': "), std::string::npos)
            << status.message();
      }
    }
}

TEST(CudaCall, AnAlgorithmThatDoesNotWorkOrWantsTooMuchIsPassedOver) {
  SKIP_WITHOUT_CUBLASLT();
  const CacheFolder none("");
  static decltype(cuda::cublaslt::Api::choose) real;
  static size_t workspace;
  static int working;
  cuda::cublaslt::Api api = **installedBlas();
  real = api.choose;
  // The third of what is asked for works, or none.
  api.choose = [](auto handle, auto product, auto a, auto b, auto c, auto d,
                  auto preference, int wanted, cuda::cublaslt::Choice *choices,
                  int *count) {
    EXPECT_GE(wanted, 3);
    const Result result =
        real(handle, product, a, b, c, d, preference, 1, choices, count);
    choices[2] = choices[1] = choices[0];
    choices[0].state = Result::not_supported;
    choices[1].workspace = workspace + 1;
    *count = working;
    return result;
  };
  auto load = [&] {
    CallPlan plan;
    plan.add(smallDot(plan), DType::f32, {4, 4});
    workspace = static_cast<size_t>(plan.spec.programs[0].workspace_bytes);
    LoadedDevice loaded(plan.open(), **cuda::loadApi(), 0, {}, {&api});
    return loaded.device->prepare(0).status().message();
  };
  working = 3;
  EXPECT_EQ(load(), "");
  working = 2;
  const std::string said = load();
  for (const char *part :
       {"'fc1': the library has no algorithm for the product f32 f32 a 4x8 ",
        " on GPU 0 (", "compile the model with --no-library-calls",
        "CUBLAS_STATUS_NOT_SUPPORTED (15) of cuBLASLt "})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(CudaCall, AlgorithmsAreChosenOnceForAllProcesses) {
  SKIP_WITHOUT_CUBLASLT();
  const std::string folder = temporary("cache");
  CacheFolder cache(folder);
  auto choices = [&] {
    WrappedBlas blas;
    CallPlan plan;
    plan.add(smallDot(plan), DType::f32, {4, 4});
    LoadedDevice loaded(plan.open(), **cuda::loadApi(), 0, {}, {&blas.api});
    EXPECT_TRUE(loaded.device && loaded.device->prepare(0).ok());
    return std::pair(blas.called["choose"], blas.called["check"]);
  };
  using Counts = std::pair<int, int>;
  EXPECT_EQ(choices(), Counts(1, 0));
  EXPECT_EQ(choices(), Counts(0, 1));
  // What is in the file is not trusted.
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  const std::filesystem::path file =
      std::filesystem::directory_iterator(folder)->path();
  EXPECT_EQ(file.filename().string().rfind("cuBLASLt-", 0), 0u) << file;
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  std::ofstream(file) << line.substr(0, line.find(": "))
                      << ": 1 2 3 4 5 6 7 8\nnonsense\n: \n";
  EXPECT_EQ(choices(), Counts(1, 1));
  EXPECT_EQ(choices(), Counts(0, 1));
  std::filesystem::remove_all(folder);
  // A folder that cannot be made is no error.
  cache.use("/proc/nowhere");
  EXPECT_EQ(choices(), Counts(1, 0));
}

} // namespace
} // namespace partita::test
