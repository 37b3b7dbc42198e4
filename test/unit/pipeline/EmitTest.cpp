//===- EmitTest.cpp - Artifacts, byte for byte ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Emit.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/Actions.h"
#include "runtime/abi/plan_generated.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <xxhash.h>

using namespace mlir;
namespace fs = std::filesystem;

namespace partita {
namespace {

const char *kPlan = R"(
plan.axis "data" size 1
plan.axis "tensor" size 2
nn.weight @unused "unused" : tensor<4xf32> = dense<2.0> : tensor<4xf32>
nn.weight @w "layer.w" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
nn.weight @b "layer.b" : tensor<2xi1> = dense<[true, false]> : tensor<2xi1>
nn.weight @f "layer.f" : tensor<8xi8> in "FILE" at 3 bytes 8
plan.model "net" schedule "fill_drain" micro_batches 1 step_ns 7 bubble 0.5
plan.port input "x" index 2 batch_axis 0 : tensor<4xf32>
plan.port output "y" index 0 batch_axis -1 : tensor<4xf32>
plan.stage "F0" on @p0 blocks ["A"] flops 1 parameters 2 activations 3 sent 4 peak 128 ns 6
plan.device @d0 "cpu:0" executes @p0 at [0, 1]
plan.program @p0 arena 192 constant 0 {
  %x = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  %frame = plan.frame bytes 16 copies [64, 128]
  %y = plan.slot frame %frame at 0 : !plan.slot<tensor<4xf32>>
  %w = plan.slot weight @w : !plan.slot<tensor<4xf32>>
  %b = plan.slot weight @b : !plan.slot<tensor<2xi1>>
  %f = plan.slot weight @f : !plan.slot<tensor<8xi8>>
  plan.unit @F0 stage 0 ns 6 {
    plan.dispatch #plan.kernel<"k0", extent = 8, grain = 2>(%x, %w) -> (%y) label "add" flops 4 bytes 48
      : (!plan.slot<tensor<4xf32>>, !plan.slot<tensor<4xf32>>) -> !plan.slot<tensor<4xf32>>
  }
  plan.load_input 0 micro_batch 0 to %x : !plan.slot<tensor<4xf32>>
  plan.run @F0 micro_batch 0
  plan.store_output 0 micro_batch 0 from %y : !plan.slot<tensor<4xf32>>
}
)";

class Emit : public ::testing::Test {
protected:
  void SetUp() override {
    folder = fs::temp_directory_path() /
             ("partita-emit-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::ofstream(folder / "model.bin") << "abcdefghijklmno";
    DialectRegistry registry;
    registry.insert<nn::NNDialect, plan::PlanDialect>();
    context.appendDialectRegistry(registry);
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    std::string text = kPlan;
    text.replace(text.find("FILE"), 4, (folder / "model.bin").string());
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << message;
  }
  void TearDown() override { fs::remove_all(folder); }

  bool write(const std::string &name,
             emit::WeightPlacement weights = emit::WeightPlacement::inside) {
    std::vector<emit::ObjectFile> objects = {
        {abi::CpuLevel::x86_64_v3, {'o', 'b', 'j'}}};
    return succeeded(emit::emitArtifact({{*module, objects}},
                                        {(folder / name).string(), weights}));
  }

  std::string read(const std::string &name) {
    std::ifstream stream(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  /// The bytes of the section of a kind, hash and place checked.
  static std::string section(const std::string &file, abi::SectionKind kind) {
    abi::FileHeader header;
    std::memcpy(&header, file.data(), sizeof(header));
    EXPECT_EQ(std::memcmp(header.magic, abi::kMagic, 8), 0);
    EXPECT_EQ(header.file_bytes, file.size());
    EXPECT_EQ(header.header_hash, XXH3_64bits(file.data(), 56));
    EXPECT_EQ(header.table_hash,
              XXH3_64bits(file.data() + 64, 64 * header.section_count));
    for (uint32_t i = 0; i < header.section_count; ++i) {
      abi::SectionEntry entry;
      std::memcpy(&entry, file.data() + 64 + 64 * i, sizeof(entry));
      EXPECT_EQ(entry.offset % abi::kSectionAlignment, 0u);
      if (entry.kind != kind)
        continue;
      std::string bytes = file.substr(entry.offset, entry.bytes);
      EXPECT_EQ(entry.hash, kind == abi::SectionKind::weights
                                ? 0
                                : XXH3_64bits(bytes.data(), bytes.size()));
      return bytes;
    }
    return "";
  }

  fs::path folder;
  MLIRContext context;
  std::string message;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Emit, HoldsThePlan) {
  ASSERT_TRUE(write("a.partita")) << message;
  std::string bytes = section(read("a.partita"), abi::SectionKind::plan);
  flatbuffers::Verifier verifier(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  ASSERT_TRUE(abi::VerifyPlanBuffer(verifier));
  const abi::Plan &plan = *abi::GetPlan(bytes.data());
  EXPECT_EQ(plan.model()->str(), "net");
  EXPECT_EQ(plan.step_ns(), 7);
  EXPECT_EQ(plan.inputs()->Get(0)->index(), 2);
  EXPECT_EQ(plan.outputs()->Get(0)->batch_axis(), -1);
  EXPECT_EQ(plan.kernels()->Get(0)->name()->str(), "k0");
  EXPECT_EQ(plan.stages()->Get(0)->sent_bytes(), 4);
  ASSERT_EQ(plan.devices()->size(), 1u);
  EXPECT_EQ(plan.devices()->Get(0)->program(), 0);
  EXPECT_EQ(plan.devices()->Get(0)->coordinate()->Get(1), 1);
  ASSERT_EQ(plan.programs()->size(), 1u);
  const abi::Program &program = *plan.programs()->Get(0);
  EXPECT_EQ(program.arena_bytes(), 192);
  ASSERT_EQ(program.frames()->size(), 1u);
  EXPECT_EQ(program.frames()->Get(0)->bytes(), 16);
  EXPECT_EQ(program.frames()->Get(0)->copies()->Get(1), 128);
  ASSERT_EQ(program.slots()->size(), 5u);
  EXPECT_EQ(program.slots()->Get(1)->space(), abi::Space::frame);
  EXPECT_EQ(program.slots()->Get(1)->frame(), 0);
  const abi::Dispatch &dispatch =
      *program.units()->Get(0)->instructions()->Get(0)->work_as_Dispatch();
  EXPECT_EQ(dispatch.operands()->Get(2), 1);
  EXPECT_EQ(dispatch.results(), 1);
  ASSERT_EQ(program.actions()->size(), 3u);
  const abi::Action &last = *program.actions()->Get(2);
  EXPECT_EQ(static_cast<abi::ActionKind>(last.kind()),
            abi::ActionKind::store_output);
  EXPECT_EQ(last.slot(), 1);
  EXPECT_EQ(sizeof(abi::Action), 16u);
  EXPECT_EQ(section(read("a.partita"), abi::SectionKind::object), "obj");
}

TEST_F(Emit, HoldsOnlyTheWeightsInUse) {
  ASSERT_TRUE(write("a.partita")) << message;
  std::string file = read("a.partita");
  std::string bytes = section(file, abi::SectionKind::plan);
  const abi::Plan &plan = *abi::GetPlan(bytes.data());
  std::string weights = section(file, abi::SectionKind::weights);
  ASSERT_EQ(plan.weights()->size(), 3u);
  std::vector<std::string> expected = {
      std::string("\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f", 16),
      std::string("\1\0", 2), "defghijk"};
  for (int i = 0; i < 3; ++i) {
    const abi::Weight &weight = *plan.weights()->Get(i);
    EXPECT_EQ(weight.offset() % 64, 0);
    EXPECT_EQ(weights.substr(weight.offset(), weight.bytes()), expected[i]);
    EXPECT_EQ(weight.hash(),
              XXH3_64bits(expected[i].data(), expected[i].size()));
  }
  EXPECT_EQ(plan.weights()->Get(0)->name()->str(), "layer.w");
}

TEST_F(Emit, NamesFilesBesideIt) {
  fs::create_directories(folder / "sub");
  ASSERT_TRUE(write("sub/a.partita", emit::WeightPlacement::beside)) << message;
  std::string bytes = section(read("sub/a.partita"), abi::SectionKind::plan);
  const abi::Weight &weight = *abi::GetPlan(bytes.data())->weights()->Get(2);
  EXPECT_EQ(weight.file()->str(), "../model.bin");
  EXPECT_EQ(weight.offset(), 3);
}

TEST_F(Emit, IsTheSameTwice) {
  ASSERT_TRUE(write("a.partita"));
  ASSERT_TRUE(write("b.partita"));
  EXPECT_EQ(read("a.partita"), read("b.partita"));
}

TEST_F(Emit, LeavesNothingWhenItFails) {
  std::ofstream(folder / "model.bin", std::ios::trunc) << "abc";
  EXPECT_FALSE(write("a.partita"));
  EXPECT_NE(message.find("the file has 3 bytes, the weight ends at 11"),
            std::string::npos)
      << message;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  message.clear();
  EXPECT_FALSE(write("no/such/folder/a.partita"));
  EXPECT_NE(message.find("cannot write the artifact"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

} // namespace
} // namespace partita
