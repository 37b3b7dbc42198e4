//===- DnnPlansTest.cpp - cuDNN plans the calls of models -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVIDIA's own cuDNN finalises a plan for each convolution and pool of
// compiled models, for GPUs that are not there. PARTITA_TEST_ARTIFACTS is the
// folder with the models: test/cuda/dnn_plans.py makes it and runs this.
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"
#include "runtime/device/cuda/cudnn/CallPlans.h"
#include "test/unit/cuda/DnnGpus.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

namespace partita::test {
namespace {

#if __has_include(<cudnn_graph.h>) && defined(PARTITA_CUDNN_LIBRARY)

namespace ours = runtime::cuda::cudnn;

/// A call of a model, and what is asked of its engine.
struct Asked {
  std::string node;
  bool is_pool = false;
  rules::Conv conv;
  rules::Pool pool;
  ours::EngineWishes wishes;
};

/// Reads the calls of a program as the device does (CudaCalls.cpp).
class Calls {
public:
  /// `known`: by all that cuDNN is told, so that each is planned once.
  Calls(const abi::Program &program, std::map<std::string, Asked> &known)
      : program(program), known(known) {}

  void add(const flatbuffers::Vector<flatbuffers::Offset<abi::Instruction>>
               *instructions) {
    if (instructions)
      for (const abi::Instruction *each : *instructions)
        if (const abi::Call *call = each->work_as_Call())
          add(*call, each->label() ? each->label()->str() : "");
  }

private:
  using Numbers = std::span<const int64_t>;

  static Numbers numbers(const flatbuffers::Vector<int64_t> *values) {
    return {values->data(), values->size()};
  }

  const abi::Slot &slotOf(const abi::View &view) const {
    return *program.slots()->Get(static_cast<unsigned>(view.slot()));
  }

  rules::Tensor tensorOf(const abi::View &view) const {
    return {slotOf(view).dtype(), numbers(view.shape()),
            numbers(view.strides()), view.offset()};
  }

  /// Regions begin at multiples of 256 bytes, and weights lie at such.
  uint32_t alignmentOf(const abi::View &view) const {
    const abi::Slot &slot = slotOf(view);
    uint64_t bits =
        256 | static_cast<uint64_t>(view.offset() *
                                    runtime::elementBytes(slot.dtype()));
    if (slot.space() != abi::Space::weight)
      bits |= static_cast<uint64_t>(slot.offset());
    return uint32_t(1) << std::countr_zero(bits);
  }

  static void tell(std::ostream &to, const rules::Image &image) {
    tell(to, image.shape);
    tell(to, image.strides);
  }
  static void tell(std::ostream &to, const std::vector<int64_t> &values) {
    for (const int64_t value : values)
      to << ' ' << value;
    to << ';';
  }

  void add(const abi::Call &call, std::string node) {
    Asked asked{
        std::move(node), call.kind() != abi::CallKind::conv, {}, {}, {}};
    asked.wishes.workspace = static_cast<size_t>(program.workspace_bytes());
    std::ostringstream key;
    const char *why = nullptr;
    if (call.kind() == abi::CallKind::conv)
      why = addConv(call, asked, key);
    else if (call.kind() == abi::CallKind::pool_max ||
             call.kind() == abi::CallKind::pool_avg)
      why = addPool(call, asked, key);
    else
      return;
    EXPECT_EQ(why, nullptr) << asked.node;
    key << ' ' << asked.wishes.alignment;
    known.emplace(key.str(), std::move(asked));
  }

  const char *addConv(const abi::Call &call, Asked &asked, std::ostream &key) {
    std::vector<rules::PostOp> post_ops;
    if (call.post_ops())
      for (const abi::PostOp *post : *call.post_ops()) {
        post_ops.push_back({post->kind(), post->alpha(), post->beta(), {}});
        if (post->view())
          post_ops.back().operand = tensorOf(*post->view());
      }
    rules::Conv &conv = asked.conv;
    const abi::Conv &given = *call.details_as_Conv();
    const auto &operands = *call.operands();
    const char *why = rules::describeConv(
        {tensorOf(*operands[0]), tensorOf(*operands[1]), tensorOf(*operands[2]),
         numbers(given.strides()), numbers(given.dilations()),
         numbers(given.pads_low()), numbers(given.pads_high()), given.groups(),
         post_ops},
        conv);
    if (why)
      return why;
    for (unsigned i = 0; i < 3; ++i)
      asked.wishes.include(alignmentOf(*operands[i]));
    for (const int post_op : {conv.addend, conv.bias})
      if (post_op >= 0)
        asked.wishes.include(alignmentOf(
            *call.post_ops()->Get(static_cast<unsigned>(post_op))->view()));
    key << "conv " << abi::EnumNameDType(conv.type) << conv.groups << ' '
        << (conv.addend >= 0) << (conv.bias >= 0) << conv.relu;
    for (const rules::Image *image : {&conv.x, &conv.weights, &conv.result})
      tell(key, *image);
    for (const auto *values : {&conv.strides, &conv.dilations, &conv.pads})
      tell(key, *values);
    return nullptr;
  }

  const char *addPool(const abi::Call &call, Asked &asked, std::ostream &key) {
    rules::Pool &pool = asked.pool;
    const abi::Pool &given = *call.details_as_Pool();
    const auto &operands = *call.operands();
    const char *why = rules::describePool(
        {tensorOf(*operands[0]), tensorOf(*operands[1]),
         call.kind() == abi::CallKind::pool_avg, given.include_pad(),
         numbers(given.window()), numbers(given.strides()),
         numbers(given.dilations()), numbers(given.pads_low()),
         numbers(given.pads_high()),
         call.post_ops() && call.post_ops()->size()},
        pool);
    if (why)
      return why;
    for (unsigned i = 0; i < 2; ++i)
      asked.wishes.include(alignmentOf(*operands[i]));
    key << "pool " << abi::EnumNameDType(pool.type)
        << static_cast<int>(pool.mode);
    tell(key, pool.x);
    tell(key, pool.result);
    for (const auto *values : {&pool.window, &pool.strides, &pool.pads})
      tell(key, *values);
    return nullptr;
  }

  const abi::Program &program;
  std::map<std::string, Asked> &known;
};

TEST(CudnnLibrary, PlansTheCallsOfModels) {
  const char *folder = std::getenv("PARTITA_TEST_ARTIFACTS");
  if (!folder)
    GTEST_SKIP() << "PARTITA_TEST_ARTIFACTS names no folder of compiled "
                    "models: run test/cuda/dnn_plans.py";
  std::map<std::string, Asked> calls;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    auto artifact = runtime::Artifact::open(entry.path().string());
    ASSERT_TRUE(artifact.ok()) << artifact.status().message();
    for (const abi::Program *program : *(*artifact)->plan().programs()) {
      Calls found(*program, calls);
      found.add(program->load());
      for (const abi::Unit *unit : *program->units())
        found.add(unit->instructions());
    }
  }
  int convolutions = 0;
  for (const auto &[key, asked] : calls)
    convolutions += !asked.is_pool;
  ASSERT_GT(convolutions, 0);
  std::printf("%d convolutions and %zu pools\n", convolutions,
              calls.size() - static_cast<size_t>(convolutions));
  const std::string why = forEachGpu([&](const ours::Api &api, const char *gpu,
                                         const ForDevice &for_device) {
    for (const auto &[key, asked] : calls) {
      runtime::Status status;
      if (asked.is_pool)
        status = ours::PoolPlan(api).make(asked.pool, asked.wishes, for_device);
      else
        status = ours::ConvPlan(api).make(asked.conv, asked.wishes, for_device);
      EXPECT_TRUE(status.ok()) << gpu << ": " << asked.node << ": " << key
                               << ": " << status.message();
    }
  });
  if (!why.empty())
    GTEST_SKIP() << why;
}

#else

TEST(CudnnLibrary, PlansTheCallsOfModels) {
  GTEST_SKIP() << "NVIDIA's cuDNN is not installed: no cudnn_graph.h, or no "
                  "libcudnn.so.9";
}

#endif

} // namespace
} // namespace partita::test
