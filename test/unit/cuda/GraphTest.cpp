//===- GraphTest.cpp - Units as CUDA graphs -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/UnitCapture.h"
#include "runtime/session/Session.h"
#include "test/unit/cuda/CallPlan.h"
#include "test/unit/cuda/ConvCases.h"
#include "test/unit/cuda/LongUnits.h"
#include "test/unit/cuda/WrappedApi.h"

#include <cstdlib>

namespace partita::test {
namespace {

using namespace runtime;
using cuda::UnitCapture;
using Values = std::vector<float>;

/// A device with all units prepared, and steps of one unit. Its first two slots
/// are what comes in and what goes out.
struct Steps {
  Steps(const PlanSpec &plan, const cuda::Api &api, DeviceOptions options = {},
        const cuda::LibraryApis &libraries = {})
      : loaded(openPlan(plan), api, 0, options, libraries) {
    status = loaded.status;
    if (!loaded.device)
      return;
    auto unit = loaded.device->prepare(0);
    status = unit.status();
    if (!unit)
      return;
    instance = *unit;
    status = loaded.device->finish();
  }

  /// Runs micro-batches one behind another, without waiting between them.
  Values run(int micro_batches, TaskObserver *observer = nullptr) {
    Device &device = *loaded.device;
    Queue &queue = device.queue();
    const auto count = static_cast<size_t>(
        loaded.artifact->plan().inputs()->Get(0)->shape()->Get(0));
    x = countingFrom(x.empty() ? 1 : x.back(),
                     count * static_cast<size_t>(micro_batches));
    Values y(x.size());
    EXPECT_TRUE(device.beginStep().ok());
    for (int m = 0; m < micro_batches; ++m) {
      EXPECT_TRUE(
          queue.copyIn(device.slot(0, m), &x[count * m], count * 4).ok());
      EXPECT_TRUE(queue.run(*instance, m, observer).ok());
      EXPECT_TRUE(
          queue.copyOut(&y[count * m], device.slot(1, m), count * 4).ok());
    }
    status = device.endStep();
    EXPECT_TRUE(status.ok()) << status.message();
    return y;
  }

  std::string remark() const { return loaded.device->remark(); }

  LoadedDevice loaded;
  Instance *instance = nullptr;
  Values x;
  Status status;
};

struct Tasks final : TaskObserver {
  explicit Tasks(bool timed) : TaskObserver(timed) {}
  void finished(size_t task, int64_t begin, int64_t end) override {
    EXPECT_EQ(task, ended++ % 4);
    EXPECT_EQ(end > 0, timed);
    EXPECT_LE(begin, end);
  }
  size_t ended = 0;
};

// Frames have 3 and 2 copies: 6 places.
TEST(CudaGraph, EachPlaceOfFramesGivesTheBitsOfItsPieces) {
  SKIP_WITHOUT_CUBLASLT();
  for (bool graphs : {true, false}) {
    WrappedApi wrapped(**cuda::loadApi());
    {
      DeviceOptions options;
      options.graphs = graphs;
      Steps steps(longUnits(1, 7, 3, 2), wrapped.api, options);
      ASSERT_TRUE(steps.status.ok()) << steps.status.message();
      EXPECT_EQ(steps.remark(), "");
      EXPECT_EQ(wrapped.calls("graphInstantiate"), graphs ? 6 : 0);
      for (int i = 0; i < 3; ++i) {
        const Values y = steps.run(7);
        EXPECT_EQ(y, expectedOf(steps.x, 1));
      }
      EXPECT_EQ(wrapped.calls("graphLaunch"), graphs ? 21 : 0);
      EXPECT_EQ(wrapped.calls("launchKernel"), graphs ? 6 * 2 : 21 * 2);
    }
    EXPECT_EQ(wrapped.live(), 0);
  }
}

// The library keeps something for each place of a convolution's operands.
TEST(CudaGraph, ConvolutionsInFrames) {
  SKIP_WITHOUT_CUDNN();
  PlanSpec plan = doublingPipeline(
      {.devices = 1, .micro_batches = 7, .count = 64, .copies = 2});
  const Shape shape = {1, 4, 4, 4}, weights = {4, 4, 3, 3};
  const int images = plan.addFrameSlot(0, {64}, 3);
  std::vector<InstructionSpec> &unit = plan.programs[0].units[0].instructions;
  unit[0].operands[1] = images;
  InstructionSpec conv;
  conv.call = abi::CallKind::conv;
  conv.label = "conv1";
  conv.views = {{images, shape, channelsLast(shape), 0},
                {plan.addWeight(0, weights, countingFrom(-72, 144)), weights,
                 denseStrides(weights), 0},
                {1, shape, channelsLast(shape), 0}};
  conv.strides = conv.dilations = conv.pads_low = conv.pads_high = {1, 1};
  unit.push_back(conv);
  plan = onGpus(plan);
  std::vector<Values> results[2];
  for (bool graphs : {true, false}) {
    WrappedApi wrapped(**cuda::loadApi());
    DeviceOptions options;
    options.graphs = graphs;
    Steps steps(plan, wrapped.api, options);
    ASSERT_TRUE(steps.status.ok()) << steps.status.message();
    EXPECT_EQ(steps.remark(), "");
    for (int i = 0; i < 2; ++i)
      results[graphs].push_back(steps.run(7));
    EXPECT_EQ(wrapped.calls("graphLaunch"), graphs ? 14 : 0);
  }
  EXPECT_TRUE(results[true] == results[false]);
  EXPECT_NE(results[true][0], results[true][1]);
  EXPECT_NE(
      Values(results[true][0].begin(), results[true][0].begin() + 64),
      Values(results[true][0].begin() + 64, results[true][0].begin() + 128));
}

TEST(CudaGraph, PipelinesOfGraphsHaveMicroBatchesInFlight) {
  SKIP_WITHOUT_CUBLASLT();
  for (bool graphs : {true, false}) {
    SessionOptions options;
    options.graphs = graphs;
    options.places = {0, 0, 0};
    auto session = Session::create(openPlan(longUnits(3, 8, 4, 3)), options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ((*session)->remark().find("graph"), std::string::npos);
    for (float first : {1.0f, 1000.0f, -500.0f}) {
      const Values x = countingFrom(first, 8 * 16);
      Values y(x.size());
      StepBinding binding;
      binding.micro_batches = 8;
      binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
      binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
      const Status status = (*session)->run(binding);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(y, expectedOf(x, 3));
    }
  }
}

// What the host does for a unit: one launch, and the note that it is done.
TEST(CudaGraph, AUnitIsOneLaunch) {
  SKIP_WITHOUT_CUBLASLT();
  WrappedApi wrapped(**cuda::loadApi());
  Steps steps(longUnits(1, 2, 2, 1), wrapped.api);
  ASSERT_TRUE(steps.status.ok()) << steps.status.message();
  Device &device = *steps.loaded.device;
  steps.run(2);
  ASSERT_TRUE(device.beginStep().ok());
  std::map<std::string, int> before = wrapped.allCalls();
  ASSERT_TRUE(device.queue().run(*steps.instance, 1, nullptr).ok());
  std::map<std::string, int> made = wrapped.allCalls();
  for (auto &[name, count] : made)
    count -= before[name];
  std::erase_if(made, [](const auto &call) { return call.second == 0; });
  EXPECT_EQ(made, (std::map<std::string, int>{{"ctxSetCurrent", 1},
                                              {"graphLaunch", 1},
                                              {"streamWriteValue32", 1}}));
  ASSERT_TRUE(device.endStep().ok());
}

TEST(CudaGraph, TimesOfTasksNeedLaunchesOfTheirOwn) {
  SKIP_WITHOUT_CUBLASLT();
  WrappedApi wrapped(**cuda::loadApi());
  Steps steps(longUnits(1, 2, 2, 1), wrapped.api);
  ASSERT_TRUE(steps.status.ok()) << steps.status.message();
  for (bool timed : {false, true}) {
    const int graphs = wrapped.calls("graphLaunch"),
              kernels = wrapped.calls("launchKernel");
    Tasks tasks(timed);
    const Values y = steps.run(2, &tasks);
    EXPECT_EQ(y, expectedOf(steps.x, 1));
    EXPECT_EQ(tasks.ended, 2 * 4);
    EXPECT_EQ(wrapped.calls("graphLaunch") - graphs, timed ? 0 : 2);
    EXPECT_EQ(wrapped.calls("launchKernel") - kernels, timed ? 4 : 0);
  }
}

TEST(CudaGraph, IsNotMadeWhereItGainsNothingOrIsNotWanted) {
  SKIP_WITHOUT_CUBLASLT();
  auto expectNone = [](const PlanSpec &plan, DeviceOptions options = {}) {
    WrappedApi wrapped(**cuda::loadApi());
    Steps steps(plan, wrapped.api, options);
    ASSERT_TRUE(steps.status.ok()) << steps.status.message();
    EXPECT_EQ(steps.remark(), "");
    steps.run(1);
    EXPECT_EQ(wrapped.calls("streamBeginCapture"), 0);
    EXPECT_EQ(wrapped.calls("graphLaunch"), 0);
  };
  expectNone(onGpus(doublingPipeline(1, 1))); // one kernel
  const PlanSpec plan = longUnits(1, 1, 1, 1);
  DeviceOptions options;
  options.graphs = false;
  expectNone(plan, options);
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  expectNone(plan);
  ::setenv("CUDA_LAUNCH_BLOCKING", "0", 1);
  WrappedApi wrapped(**cuda::loadApi());
  Steps steps(plan, wrapped.api);
  EXPECT_EQ(wrapped.calls("graphInstantiate"), 1);
  ::unsetenv("CUDA_LAUNCH_BLOCKING");
}

// What a library calls is loaded before the first step, and nothing runs.
TEST(CudaGraph, ACallAloneIsCapturedToBeLoaded) {
  SKIP_WITHOUT_CUBLASLT();
  PlanSpec plan = longUnits(1, 1, 1, 1);
  std::vector<InstructionSpec> &unit = plan.programs[0].units[0].instructions;
  InstructionSpec dot = unit[2];
  dot.views[1] = plan.view(0, 0);
  dot.views[2] = plan.view(0, 1);
  dot.views[1].shape = dot.views[2].shape = {4, 4};
  dot.views[1].strides = dot.views[2].strides = {4, 1};
  unit = {dot};
  for (bool graphs : {true, false}) {
    WrappedApi wrapped(**cuda::loadApi());
    DeviceOptions options;
    options.graphs = graphs;
    Steps steps(plan, wrapped.api, options);
    ASSERT_TRUE(steps.status.ok()) << steps.status.message();
    EXPECT_EQ(steps.remark(), "");
    EXPECT_EQ(wrapped.calls("streamEndCapture"), graphs);
    const Values y = steps.run(1);
    EXPECT_EQ(wrapped.calls("streamEndCapture"), graphs);
    EXPECT_EQ(wrapped.calls("graphLaunch"), 0);
    Values turned = steps.x;
    for (size_t i = 0; i < turned.size(); ++i)
      turned[i] = steps.x[4 * (3 - i / 4) + i % 4];
    EXPECT_EQ(y, turned);
  }
}

//===----------------------------------------------------------------------===//
// Units without graphs
//===----------------------------------------------------------------------===//

TEST(CudaGraph, PlacesThatNoStepUsesHaveNone) {
  SKIP_WITHOUT_CUBLASLT();
  for (int micro_batches :
       {UnitCapture::kMostPlaces, UnitCapture::kMostPlaces + 1}) {
    WrappedApi wrapped(**cuda::loadApi());
    // 9 * 8 places, of which a step uses those of its micro-batches.
    Steps steps(longUnits(1, micro_batches, 9, 8), wrapped.api);
    ASSERT_TRUE(steps.status.ok()) << steps.status.message();
    const bool few = micro_batches <= int(UnitCapture::kMostPlaces);
    EXPECT_EQ(wrapped.calls("graphInstantiate"), few ? micro_batches : 0);
    EXPECT_EQ(steps.remark(),
              few ? ""
                  : "cuda:0: 1 unit with several kernels or calls is not "
                    "launched as one CUDA graph: 'F0', because its frames have "
                    "65 places, and a unit has 64 graphs at most");
    const Values y = steps.run(micro_batches);
    EXPECT_EQ(y, expectedOf(steps.x, 1));
  }
}

TEST(CudaGraph, ADeviceHasOnlySoManyPieces) {
  SKIP_WITHOUT_CUBLASLT();
  PlanSpec plan = longUnits(1, 64, 8, 8);
  std::vector<UnitSpec> &units = plan.programs[0].units;
  const InstructionSpec copy = units[0].instructions[1];
  units[0].instructions.insert(units[0].instructions.begin() + 2, 1000, copy);
  units.resize(3, units[0]);
  units[1].name = "F1";
  units[2].name = "F2";
  units[2].instructions.resize(2);
  WrappedApi wrapped(**cuda::loadApi());
  LoadedDevice loaded(openPlan(plan), wrapped.api);
  ASSERT_TRUE(loaded.device) << loaded.status.message();
  for (int unit : {0, 1, 2})
    ASSERT_TRUE(loaded.device->prepare(unit).ok());
  const Status status = loaded.device->finish();
  ASSERT_TRUE(status.ok()) << status.message();
  // 8 * 1004 pieces are all but 160 that there may be.
  EXPECT_EQ(loaded.device->remark(),
            "cuda:0: 1 unit with several kernels or calls is not launched as "
            "one CUDA graph: 'F1', because the graphs of a device have 8192 "
            "kernels, copies and calls at most");
  EXPECT_EQ(wrapped.calls("graphInstantiate"), 16);
}

/// Loads with a cuBLASLt whose products go wrong while they are captured.
template <typename Multiply>
void expectPiecesWithout(Multiply multiply, const std::string &why) {
  cuda::cublaslt::Api blas = **installedBlas();
  blas.multiply = multiply;
  WrappedApi wrapped(**cuda::loadApi());
  {
    Steps steps(longUnits(1, 2, 2, 1), wrapped.api, {}, {&blas});
    ASSERT_TRUE(steps.status.ok()) << steps.status.message();
    const std::string begin =
        "cuda:0: 1 unit with several kernels or calls is not launched as one "
        "CUDA graph: 'F0', because ";
    EXPECT_EQ(steps.remark().substr(0, begin.size()), begin);
    EXPECT_NE(steps.remark().find(why), std::string::npos) << steps.remark();
    const Values y = steps.run(2);
    EXPECT_EQ(y, expectedOf(steps.x, 1));
    EXPECT_EQ(wrapped.calls("graphLaunch"), 0);
  }
  EXPECT_EQ(wrapped.live(), 0);
}

decltype(cuda::cublaslt::Api::multiply) real_multiply;
decltype(cuda::Api::streamQuery) real_query;

TEST(CudaGraph, ACallThatCannotBeCapturedIsLaunchedByItself) {
  SKIP_WITHOUT_CUBLASLT();
  real_multiply = (*installedBlas())->multiply;
  real_query = (*cuda::loadApi())->streamQuery;
  // It says so. Streams that are not captured can be asked.
  expectPiecesWithout(
      [](auto... values) {
        auto stream = std::get<sizeof...(values) - 1>(std::tuple(values...));
        return real_query(stream) == Result::stream_capture_unsupported
                   ? cuda::cublaslt::Result::execution_failed
                   : real_multiply(values...);
      },
      "'turn0': the matrix product failed: CUBLAS_STATUS_EXECUTION_FAILED");
  // It does not say so, and spoils the capture.
  expectPiecesWithout(
      [](auto... values) {
        const auto result = real_multiply(values...);
        (void)real_query(
            std::get<sizeof...(values) - 1>(std::tuple(values...)));
        return result;
      },
      "'turn0' cannot be captured: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED "
      "(901)");
}

TEST(CudaGraph, GraphsThatFindNoMemoryAreDoneWithout) {
  SKIP_WITHOUT_CUBLASLT();
  for (const char *call : {"graphInstantiate", "graphUpload"}) {
    SCOPED_TRACE(call);
    WrappedApi wrapped(**cuda::loadApi());
    wrapped.answer = [&](const std::string &name, int number) {
      return name == call && number == 2 ? std::optional(Result::out_of_memory)
                                         : std::nullopt;
    };
    {
      Steps steps(longUnits(1, 2, 2, 1), wrapped.api);
      ASSERT_TRUE(steps.status.ok()) << steps.status.message();
      EXPECT_NE(steps.remark().find("'F0', because GPU 0 ("), std::string::npos)
          << steps.remark();
      EXPECT_NE(steps.remark().find(") has no memory left for its graphs"),
                std::string::npos);
      const Values y = steps.run(2);
      EXPECT_EQ(y, expectedOf(steps.x, 1));
      EXPECT_EQ(wrapped.calls("graphLaunch"), 0);
    }
    EXPECT_EQ(wrapped.live(), 0);
  }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(CudaGraph, ErrorsNameTheUnit) {
  SKIP_WITHOUT_CUBLASLT();
  for (const char *call :
       {"streamBeginCapture", "launchKernel", "streamEndCapture",
        "graphInstantiate", "graphUpload", "graphLaunch"}) {
    SCOPED_TRACE(call);
    WrappedApi wrapped(**cuda::loadApi());
    bool fails = true;
    wrapped.answer = [&](const std::string &name, int) {
      return fails && name == call ? std::optional(Result::launch_failed)
                                   : std::nullopt;
    };
    {
      Steps steps(longUnits(1, 2, 2, 1), wrapped.api);
      std::string said = steps.status.message();
      if (steps.status.ok()) {
        Device &device = *steps.loaded.device;
        ASSERT_TRUE(device.beginStep().ok());
        said = device.queue().run(*steps.instance, 1, nullptr).message();
        EXPECT_FALSE(device.endStep().ok());
        EXPECT_EQ(said.find("cannot launch the graph of unit 'F0', "
                            "micro-batch 1: CUDA_ERROR_LAUNCH_FAILED"),
                  0u)
            << said;
      } else {
        EXPECT_EQ(said.find("cuda:0: unit 'F0' cannot become a CUDA graph "
                            "(--no-graphs does without): "),
                  0u)
            << said;
        EXPECT_NE(said.find("CUDA_ERROR_LAUNCH_FAILED (719)"),
                  std::string::npos)
            << said;
      }
    }
    EXPECT_EQ(wrapped.live(), 0);
  }
}

// A GPU tells what went wrong at a later launch.
TEST(CudaGraph, ErrorsOfLaunchesTellWhatIsAtWork) {
  SKIP_WITHOUT_CUBLASLT();
  if (!std::getenv("CUDA_EMU_DEVICES"))
    GTEST_SKIP() << "needs the emulator, on which a unit stays at work";
  WrappedApi wrapped(**cuda::loadApi());
  wrapped.answer = [](const std::string &name, int number) {
    return name == "graphLaunch" && number == 2
               ? std::optional(Result::launch_failed)
               : std::nullopt;
  };
  Steps steps(longUnits(1, 2, 2, 1), wrapped.api);
  ASSERT_TRUE(steps.status.ok()) << steps.status.message();
  Device &device = *steps.loaded.device;
  const Values x(16, 1);
  ASSERT_TRUE(device.beginStep().ok());
  ASSERT_TRUE(device.queue().copyIn(device.slot(0, 0), x.data(), 64).ok());
  ASSERT_TRUE(device.queue().run(*steps.instance, 0, nullptr).ok());
  const std::string said =
      device.queue().run(*steps.instance, 1, nullptr).message();
  EXPECT_EQ(said.find("cannot launch the graph of unit 'F0', micro-batch 1, "
                      "behind unit 'F0', micro-batch 0, 'double0' to 'double0' "
                      "(CUDA_LAUNCH_BLOCKING=1 tells which of 4): "
                      "CUDA_ERROR_LAUNCH_FAILED"),
            0u)
      << said;
  EXPECT_FALSE(device.endStep().ok());
}

} // namespace
} // namespace partita::test
