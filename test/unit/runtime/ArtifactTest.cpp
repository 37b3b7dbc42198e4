//===- ArtifactTest.cpp - Wrong artifacts are refused in words ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/PlanVerifier.h"
#include "runtime/base/Elements.h"
#include "runtime/base/MappedFile.h"
#include "test/unit/runtime/Pipelines.h"

#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>

namespace partita::test {
namespace {

using namespace runtime;
namespace fs = std::filesystem;

/// A directory of its own, and in it "a.partita".
class ArtifactTest : public testing::Test {
protected:
  void SetUp() override {
    directory = temporary("artifact");
    fs::remove_all(directory);
    fs::create_directories(directory);
    path = directory + "/a.partita";
  }
  void TearDown() override { fs::remove_all(directory); }

  /// The message of opening these bytes; empty if they are right.
  std::string open(const std::vector<uint8_t> &bytes) {
    writeFile(path, bytes);
    auto artifact = Artifact::open(path);
    if (!artifact) {
      EXPECT_NE(artifact.status().message().find(path), std::string::npos)
          << artifact.status().message();
    }
    return artifact ? "" : artifact.status().message();
  }
  std::string open(const PlanSpec &plan) {
    return open(artifactBytes(encode(plan), plan.weight_bytes, {}));
  }
  void expectError(const PlanSpec &plan, const std::string &part) {
    std::string message = open(plan);
    EXPECT_NE(message.find(part), std::string::npos) << "got: " << message;
  }

  std::string directory, path;
};

std::vector<uint8_t> goodBytes() {
  PlanSpec plan = doublingPipeline(2, 2);
  plan.addWeight(0, {4}, {1, 2, 3, 4});
  return artifactBytes(encode(plan), plan.weight_bytes, testObjects());
}

TEST_F(ArtifactTest, OpensGood) {
  EXPECT_EQ(open(goodBytes()), "");
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact.ok());
  EXPECT_EQ((*artifact)->objects().size(), 2u);
  EXPECT_EQ(reinterpret_cast<const float *>((*artifact)->weight(0))[2], 3);
  EXPECT_TRUE((*artifact)->verifyWeights({0}, 1).ok());
}

TEST_F(ArtifactTest, PaddingBetweenWeightsIsZero) {
  PlanSpec plan = doublingPipeline(2, 2);
  plan.addWeight(0, {4}, {1, 2, 3, 4});
  plan.addWeight(0, {4}, {5, 6, 7, 8});
  const auto with = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> weights = plan.weight_bytes;
    weights.resize(100);
    weights[at] = value;
    return open(artifactBytes(encode(plan), weights, testObjects()));
  };
  EXPECT_EQ(with(16, 0), "");
  for (size_t at : {16, 63, 80, 99})
    EXPECT_NE(with(at, 1).find("byte " + std::to_string(at) +
                               " of its weights section belongs to no weight"),
              std::string::npos)
        << at;
}

TEST_F(ArtifactTest, OpensPtx) {
  using enum abi::GpuArchitecture;
  const PlanSpec plan = doublingPipeline(1, 1);
  auto file = [&](const std::vector<ObjectSpec> &sections) {
    return artifactBytes(encode(plan), {}, sections);
  };
  EXPECT_EQ(open(file({ptxSection("// kernels", sm_90)})), "");
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact.ok());
  EXPECT_TRUE((*artifact)->objects().empty());
  EXPECT_EQ((*artifact)->ptx().architecture, sm_90);
  EXPECT_TRUE(
      std::string_view((*artifact)->ptx().text).starts_with("// kernels\n"));

  auto expect = [&](const std::vector<ObjectSpec> &sections,
                    const std::string &part) {
    const std::string message = open(file(sections));
    EXPECT_NE(message.find(part), std::string::npos) << "got: " << message;
  };
  expect({ptxSection("", sm_80), ptxSection("", sm_90)},
         "section 2 is the second with PTX for its plan");
  expect({ptxSection("", abi::GpuArchitecture(81))},
         "section 1 is for the unknown GPU architecture 81");
  expect({ptxSection(std::string("a\0b", 3), sm_80)},
         "section 1 is no text that ends with NUL");
  ObjectSpec section = ptxSection("a", sm_80);
  section.level = abi::CpuLevel::x86_64_v3;
  expect({section}, "section 1 has a CPU level but is no object");
  section = ptxSection("a", sm_80);
  section.bytes.pop_back();
  expect({section}, "section 1 is no text that ends with NUL");
  section.bytes.clear();
  expect({section}, "section 1 is no text that ends with NUL");
}

TEST_F(ArtifactTest, OpensEachOfSeveralPlans) {
  PlanSpec plan = doublingPipeline(2, 2), larger = doublingPipeline(2, 3);
  plan.addWeight(0, {4}, {1, 2, 3, 4});
  larger.addWeight(0, {4}, {1, 2, 3, 4});
  const std::vector<uint8_t> first = encode(plan), second = encode(larger);
  const auto file = artifactOfPlans({first, second}, plan.weight_bytes, {});
  EXPECT_EQ(open(file), "");
  auto all = Artifact::openAll(path);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0]->plan().micro_batches(), 2);
  EXPECT_EQ((*all)[1]->plan().micro_batches(), 3);
  EXPECT_EQ((*all)[0]->weight(0), (*all)[1]->weight(0));
  // One plan of a file is that of the largest sizes, the last.
  EXPECT_EQ((*Artifact::open(path))->plan().micro_batches(), 3);

  const std::vector<uint8_t> other = encode(doublingPipeline(1, 2));
  EXPECT_NE(open(artifactOfPlans({first, other}, plan.weight_bytes, {}))
                .find("plan 1 is for another number of devices than plan 0"),
            std::string::npos);
}

TEST_F(ArtifactTest, EveryByteOfHeaderAndTableCounts) {
  const std::vector<uint8_t> good = goodBytes();
  for (size_t i = 0; i < 64 + 5 * 64; ++i)
    for (uint8_t change : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = good;
      bytes[i] ^= change;
      EXPECT_NE(open(bytes), "") << "byte " << i;
    }
}

TEST_F(ArtifactTest, EveryByteOfTheTableCountsEvenWithItsHash) {
  const std::vector<uint8_t> good = goodBytes();
  for (size_t i = 64; i < 64 + 5 * 64; ++i) {
    std::vector<uint8_t> bytes = good;
    bytes[i] ^= 1;
    rehash(bytes);
    EXPECT_NE(open(bytes), "") << "byte " << i;
  }
}

TEST_F(ArtifactTest, EveryTruncationIsRefused) {
  const std::vector<uint8_t> good = goodBytes();
  for (size_t size = 0; size < good.size();
       size += size < 4500 || size + 200 > good.size() ? 1 : 97) {
    EXPECT_NE(open({good.begin(), good.begin() + size}), "") << size;
    // With a header that says so, the sections are still wrong.
    if (size > sizeof(abi::FileHeader) + 5 * sizeof(abi::SectionEntry)) {
      std::vector<uint8_t> bytes(good.begin(), good.begin() + size);
      uint64_t shorter = size;
      std::memcpy(bytes.data() + offsetof(abi::FileHeader, file_bytes),
                  &shorter, 8);
      rehash(bytes);
      EXPECT_NE(open(bytes), "") << size;
    }
  }
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  EXPECT_NE(open(longer).find("should have"), std::string::npos);
}

TEST_F(ArtifactTest, BytesBetweenSectionsAreZero) {
  std::vector<uint8_t> bytes = goodBytes();
  bytes[4000] = 1;
  EXPECT_NE(open(bytes).find("not zero"), std::string::npos);
}

TEST_F(ArtifactTest, SaysWhatKindOfFileItIs) {
  EXPECT_NE(open(std::vector<uint8_t>{}).find("is empty"), std::string::npos);
  EXPECT_NE(open(std::vector<uint8_t>(100, 'x')).find("not a .partita"),
            std::string::npos);
  std::vector<uint8_t> other = goodBytes();
  other[8] = abi::kVersion + 1;
  EXPECT_NE(open(other).find(
                "is of version " + std::to_string(abi::kVersion + 1) +
                "; this partita-run reads version " +
                std::to_string(abi::kVersion) + ": compile the model again"),
            std::string::npos);
  EXPECT_NE(Artifact::open(directory + "/none")
                .status()
                .message()
                .find("No such file"),
            std::string::npos);
  EXPECT_NE(
      Artifact::open(directory).status().message().find("not a regular file"),
      std::string::npos);
}

TEST_F(ArtifactTest, NoChangeOfThePlanCrashes) {
  PlanSpec plan = doublingPipeline(2, 2);
  InstructionSpec dot;
  int weight = plan.addWeight(0, {4, 4}, std::vector<float>(16));
  dot.views = {{0, {4, 4}, {4, 1}}, plan.view(0, weight), {1, {4, 4}, {4, 1}}};
  dot.post_ops.push_back({abi::PostOpKind::add, 0, 0, {0, {4, 4}, {0, 1}}});
  plan.programs[0].units[0].instructions.push_back(dot);
  const std::vector<uint8_t> good = encode(plan);
  std::mt19937 random(1);
  int opened = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint8_t> bytes = good;
    for (unsigned n = 0; n <= random() % 3; ++n)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    opened += open(artifactBytes(bytes, plan.weight_bytes, {})).empty();
  }
  EXPECT_LT(opened, 2000);
}

// External weights.

PlanSpec planWithExternal(const std::string &file, int64_t offset,
                          int64_t elements) {
  PlanSpec plan = doublingPipeline(1, 1);
  WeightSpec weight;
  weight.name = "w";
  weight.shape = {elements};
  weight.bytes = elements * 4;
  weight.file = file;
  weight.offset = offset;
  plan.weights.push_back(weight);
  return plan;
}

TEST_F(ArtifactTest, ReadsExternalWeights) {
  std::vector<uint8_t> bytes(4096);
  float value = 7;
  std::memcpy(bytes.data() + 12, &value, 4);
  std::memcpy(bytes.data() + 33, &value, 4);
  fs::create_directories(directory + "/sub");
  writeFile(directory + "/sub/w.bin", bytes);
  for (int64_t offset : {12, 33}) {
    ASSERT_EQ(open(planWithExternal("sub/w.bin", offset, 4)), "");
    auto artifact = Artifact::open(path);
    const uint8_t *data = (*artifact)->weight(0);
    EXPECT_EQ(std::memcmp(data, &value, 4), 0);
    EXPECT_NE((*artifact)->verifyWeights({0}, 1).message().find("weight 'w'"),
              std::string::npos);
  }
}

// More threads than weights, windows that end anywhere, several that changed.
TEST_F(ArtifactTest, FindsTheFirstChangedWeight) {
  const size_t sizes[] = {0,       1,       (1 << 20) - 1,
                          1 << 20, 9 << 20, (20 << 20) + 5};
  std::vector<uint8_t> bytes;
  std::vector<WeightBytes> weights;
  for (size_t size : sizes) {
    bytes.resize(bytes.size() + size, uint8_t(size % 251));
    const uint8_t *begin = bytes.data() + bytes.size() - size;
    weights.push_back({nullptr, size, XXH3_64bits(begin, size)});
  }
  auto find = [&](int threads) {
    writeFile(path, bytes);
    auto file = MappedFile::open(path);
    size_t at = 0;
    for (WeightBytes &weight : weights) {
      weight.data = (*file)->data() + at;
      at += weight.bytes;
    }
    return findChanged(weights, threads);
  };
  for (int threads : {1, 2, 16}) {
    EXPECT_FALSE(find(threads));
    size_t end = 0;
    for (size_t i = 1; i < weights.size(); ++i) {
      end += weights[i].bytes;
      bytes[end - 1] ^= 0x40;
      EXPECT_EQ(find(threads), i);
      bytes.back() ^= 1;
      EXPECT_EQ(find(threads), i);
      bytes.back() ^= 1;
      bytes[end - 1] ^= 0x40;
    }
  }
}

TEST_F(ArtifactTest, ContainsExternalWeights) {
  writeFile(directory + "/w.bin", std::vector<uint8_t>(64));
  auto expect = [&](const std::string &file, const std::string &part) {
    expectError(planWithExternal(file, 0, 16), part);
  };
  EXPECT_EQ(open(planWithExternal("w.bin", 0, 16)), "");
  EXPECT_EQ(open(planWithExternal("./w.bin", 0, 16)), "");
  expectError(planWithExternal("w.bin", 4, 16), "only 64");
  expect("none.bin", "cannot open the weight file 'none.bin' in the folder '" +
                         directory + "': No such file");
  expect(directory + "/w.bin", "absolute");
  expect("../" + fs::path(directory).filename().string() + "/w.bin", "leaves");
  expect("sub/../w.bin", "");
  expect("", "weights section");
  fs::create_symlink("w.bin", directory + "/link.bin");
  expect("link.bin", "symbolic link");
  fs::create_directory(directory + "/real");
  writeFile(directory + "/real/w.bin", std::vector<uint8_t>(64));
  fs::create_directory_symlink("real", directory + "/linked");
  EXPECT_NE(open(planWithExternal("linked/w.bin", 0, 16)), "");
  ASSERT_EQ(::mkfifo((directory + "/fifo").c_str(), 0600), 0);
  expect("fifo", "not a regular file");
  expect("real", "not a regular file");
  fs::create_hard_link(directory + "/w.bin", directory + "/second.bin");
  expect("second.bin", "several names");
}

// The plan.

TEST_F(ArtifactTest, RefusesWrongPlans) {
  struct Row {
    const char *part;
    std::function<void(PlanSpec &)> change;
  };
  auto actions = [](PlanSpec &plan, int program) -> std::vector<ActionSpec> & {
    return plan.programs[program].actions;
  };
  auto frame = [](PlanSpec &plan) -> FrameSpec & {
    return plan.programs[0].frames[0];
  };
  auto slot = [](PlanSpec &plan) -> SlotSpec & {
    return plan.programs[0].slots[0];
  };
  auto instruction = [](PlanSpec &plan) -> InstructionSpec & {
    return plan.programs[0].units[0].instructions[0];
  };
  const std::vector<Row> rows = {
      {"micro-batches", [](PlanSpec &p) { p.micro_batches = 0; }},
      {"says it has 0 sequences", [](PlanSpec &p) { p.sequences = 0; }},
      {"says it has 2 sequences", [](PlanSpec &p) { p.sequences = 2; }},
      {"no axis 3", [](PlanSpec &p) { p.inputs[0].batch_axis = 3; }},
      {"which cannot be split",
       [](PlanSpec &p) {
         p.mixes = "it combines samples";
         p.micro_batches = 1;
       }},
      {"micro-batches or a mask, and samples that cannot be split",
       [](PlanSpec &p) {
         p.mixes = "it combines samples";
         p.micro_batches = 2;
       }},
      {"characters why samples cannot be split",
       [](PlanSpec &p) { p.mixes.assign(70000, 'x'); }},
      {"impossible shape", [](PlanSpec &p) { p.inputs[0].shape = {-1}; }},
      {"impossible shape",
       [](PlanSpec &p) { p.outputs[0].shape = {1l << 40, 1l << 40}; }},
      {"no usable name", [](PlanSpec &p) { p.kernels = {"a b"}; }},
      {"kernel 0 has a grid of 4 dimensions",
       [](PlanSpec &p) { p.kernels[0].blocks = {1, 1, 1, 1}; }},
      {"kernel 0 has a grid of 0 blocks in dimension 0",
       [](PlanSpec &p) { p.kernels[0].blocks = {0}; }},
      {"kernel 0 has a grid of 65536 blocks in dimension 1",
       [](PlanSpec &p) { p.kernels[0].blocks = {1, 65536}; }},
      {"kernel 0 has 0 threads in a block",
       [](PlanSpec &p) { p.kernels[0].blocks = {1}; }},
      {"kernel 0 has 1025 threads in a block",
       [](PlanSpec &p) {
         p.kernels[0].blocks = {1};
         p.kernels[0].threads = 1025;
       }},
      {"kernel 0 has 232449 bytes of shared memory in a block",
       [](PlanSpec &p) {
         p.kernels[0].blocks = {1};
         p.kernels[0].threads = 1;
         p.kernels[0].shared_bytes = (227 << 10) + 1;
       }},
      {"starts kernel 'twice', which has no launch, on device 'cpu:0'",
       [](PlanSpec &p) { p.devices[0].kind = abi::DeviceKind::cuda; }},
      {"starts kernel 'twice', which has a launch, on device 'cpu:1'",
       [](PlanSpec &p) {
         p.devices[0].kind = abi::DeviceKind::cuda;
         p.kernels[0].blocks = {1};
         p.kernels[0].threads = 1;
       }},
      {"does not join", [](PlanSpec &p) { p.channels[0].target = 2; }},
      {"does not join two programs",
       [](PlanSpec &p) { p.channels[0].source = 1; }},
      // Who executes a program.
      {"has no device", [](PlanSpec &p) { p.devices.clear(); }},
      {"program 1 is executed by 0 devices of a mesh of 1",
       [](PlanSpec &p) { p.devices.pop_back(); }},
      {"device 'cpu:1' has the program and the coordinate of another device",
       [](PlanSpec &p) { p.devices.push_back(p.devices[1]); }},
      {"device 'cpu:1' names program 2 of 2",
       [](PlanSpec &p) { p.devices[1].program = 2; }},
      {"names program -1", [](PlanSpec &p) { p.devices[0].program = -1; }},
      {"device 'cpu:0' has 2 coordinates in a mesh of 0 axes",
       [](PlanSpec &p) { p.devices[0].coordinate = {0, 1}; }},
      // Axes.
      {"program 1 is executed by 1 devices of a mesh of 2",
       [](PlanSpec &p) {
         p.addAxes({{"data", 2}});
         p.devices.pop_back();
       }},
      {"device 'cpu:1' has the coordinate 2 on axis 'data'",
       [](PlanSpec &p) {
         p.addAxes({{"data", 2}});
         p.devices[1].coordinate = {2};
       }},
      {"axis 0 of the mesh has no name of its own",
       [](PlanSpec &p) { p.addAxes({{"", 2}}); }},
      {"axis 1 of the mesh has no name of its own",
       [](PlanSpec &p) { p.addAxes({{"data", 2}, {"data", 1}}); }},
      {"axis 'data' of the mesh has the size 0",
       [](PlanSpec &p) { p.axes = {{"data", 0}}; }},
      {"axis 'data' of the mesh has the size 2000000000",
       [](PlanSpec &p) { p.axes = {{"data", 2000000000}}; }},
      // Collectives.
      {"collective 0 names program 2 of 2",
       [](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives = {{2}};
       }},
      {"collective 0 is along axes that the mesh does not have",
       [](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back().axes = {1};
       }},
      {"collective 0 is along axes that the mesh does not have",
       [](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back().axes = {0, 0};
       }},
      {"collective 0 is along the axis 'data'",
       [](PlanSpec &p) {
         p.addAxes({{"data", 2}});
         p.collectives.emplace_back();
       }},
      {"collective 0 has an impossible size",
       [](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back().rows = int64_t(1) << 62;
       }},
      {"collective 0 is of an unknown kind",
       [](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back().kind = abi::CollectiveKind(9);
       }},
      {"collective 0 is from device 2 of 2",
       [](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back().root = 2;
       }},
      {"collective 0 combines elements of a type that nothing computes with",
       [](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back().dtype = abi::DType::f8e5m2;
       }},
      {"names collective 1 of 1",
       [&](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back();
         actions(p, 0).push_back({abi::ActionKind::start, 0, 1, 0});
       }},
      {"names collective 0, which is another program's",
       [&](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back();
         actions(p, 1).push_back({abi::ActionKind::start, 0, 0, 0});
       }},
      {"is along axes that the mesh does not have",
       [&](PlanSpec &p) {
         instruction(p).type = abi::Work::Slice;
         instruction(p).operands = {0, 1};
       }},
      {"takes a part of",
       [&](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         instruction(p).type = abi::Work::Slice;
         instruction(p).operands = {0, 1};
         instruction(p).axes = {0};
         instruction(p).rows = 1 << 20;
       }},
      {"moves 'v0' through a slot of another type or size",
       [&](PlanSpec &p) {
         p.addAxes({{"tensor", 2}});
         p.collectives.emplace_back().part = 3;
         actions(p, 0).push_back({abi::ActionKind::start, 0, 0, 0});
       }},
      // Frames.
      {"frame 0 has 0 copies for 2",
       [&](PlanSpec &p) { frame(p).copies = {}; }},
      {"frame 0 has 3 copies for 2",
       [&](PlanSpec &p) { frame(p).copies.push_back(0); }},
      {"copy 1 that is not aligned",
       [&](PlanSpec &p) { frame(p).copies[1] = 32; }},
      {"copy 1 that reaches past the end of the arena",
       [&](PlanSpec &p) { frame(p).copies[1] = 256; }},
      {"copy 0 that reaches past the end of the arena",
       [&](PlanSpec &p) { frame(p).copies[0] = -64; }},
      {"copy 0 that reaches past the end of the arena",
       [&](PlanSpec &p) { frame(p).copies[0] = INT64_MIN; }},
      {"copy 1 that reaches past the end of the arena",
       [&](PlanSpec &p) { frame(p).bytes = 256; }},
      {"frame 0 has 320 bytes", [&](PlanSpec &p) { frame(p).bytes = 320; }},
      {"frame 0 has -64 bytes", [&](PlanSpec &p) { frame(p).bytes = -64; }},
      // Slots.
      {"slot 0 says it has 65 bytes", [&](PlanSpec &p) { slot(p).bytes = 65; }},
      {"negative extent", [&](PlanSpec &p) { slot(p).shape = {-16}; }},
      {"more elements than",
       [&](PlanSpec &p) { slot(p).shape = {1l << 40, 1l << 40}; }},
      {"names frame 2 of 2", [&](PlanSpec &p) { slot(p).frame = 2; }},
      {"names frame -1 of 2", [&](PlanSpec &p) { slot(p).frame = -1; }},
      {"past the end of the frame", [&](PlanSpec &p) { slot(p).offset = 64; }},
      {"past the end of the frame", [&](PlanSpec &p) { slot(p).offset = -64; }},
      {"past the end of the frame", [&](PlanSpec &p) { frame(p).bytes = 0; }},
      {"slot 0 is not aligned",
       [&](PlanSpec &p) {
         frame(p).bytes = 128;
         slot(p).offset = 32;
       }},
      {"but lies in none",
       [&](PlanSpec &p) { slot(p).space = abi::Space::arena; }},
      {"slot 2 is not aligned",
       [](PlanSpec &p) {
         p.addSlot(0, {16});
         p.programs[0].slots[2].offset = 32;
       }},
      {"past the end of the arena",
       [](PlanSpec &p) {
         p.addSlot(0, {16});
         p.programs[0].arena_bytes -= 64;
       }},
      {"past the end of the arena",
       [](PlanSpec &p) {
         p.addSlot(0, {16});
         p.programs[0].slots[2].offset = -64;
       }},
      {"names weight 5",
       [](PlanSpec &p) {
         p.addSlot(0, {16}, abi::Space::weight);
         p.programs[0].slots[2].offset = 5;
       }},
      {"lies in an unknown space",
       [](PlanSpec &p) { p.addSlot(0, {16}, static_cast<abi::Space>(9)); }},
      // Instructions.
      {"names kernel 1", [&](PlanSpec &p) { instruction(p).kernel = 1; }},
      {"names slot 77", [&](PlanSpec &p) { instruction(p).operands[0] = 77; }},
      {"names slot -1", [&](PlanSpec &p) { instruction(p).operands[1] = -1; }},
      {"results among", [&](PlanSpec &p) { instruction(p).results = 3; }},
      {"impossible extent", [&](PlanSpec &p) { instruction(p).extent = -1; }},
      {"which is read only",
       [&](PlanSpec &p) {
         int w = p.addWeight(0, {16}, std::vector<float>(16));
         instruction(p).operands[1] = w;
       }},
      {"which is read only",
       [&](PlanSpec &p) {
         int c = p.addSlot(0, {16}, abi::Space::constant);
         instruction(p).operands[1] = c;
       }},
      {"which a micro-batch has",
       [](PlanSpec &p) {
         p.programs[0].load = p.programs[0].units[0].instructions;
       }},
      {"names stage 9", [](PlanSpec &p) { p.programs[0].units[0].stage = 9; }},
      // Steps.
      {"action 1 is of an unknown kind",
       [&](PlanSpec &p) {
         actions(p, 0)[1].kind =
             static_cast<abi::ActionKind>(abi::kActionKinds);
       }},
      {"action 1 is of an unknown kind",
       [&](PlanSpec &p) {
         actions(p, 0)[1].kind = static_cast<abi::ActionKind>(255);
       }},
      {"is of micro-batch 2",
       [&](PlanSpec &p) { actions(p, 0)[1].micro_batch = 2; }},
      {"is of micro-batch -1",
       [&](PlanSpec &p) { actions(p, 0)[1].micro_batch = -1; }},
      {"runs unit 3 of 1", [&](PlanSpec &p) { actions(p, 0)[1].subject = 3; }},
      {"runs unit -1 of 1",
       [&](PlanSpec &p) { actions(p, 0)[1].subject = -1; }},
      {"uses channel 4 of 1",
       [&](PlanSpec &p) { actions(p, 0)[2].subject = 4; }},
      {"uses channel -1", [&](PlanSpec &p) { actions(p, 0)[6].subject = -1; }},
      {"names input 2 of 1",
       [&](PlanSpec &p) { actions(p, 0)[0].subject = 2; }},
      {"names output 1 of 1",
       [&](PlanSpec &p) { actions(p, 1)[2].subject = 1; }},
      {"names slot 90 of 2", [&](PlanSpec &p) { actions(p, 0)[0].slot = 90; }},
      {"names slot -2 of 2", [&](PlanSpec &p) { actions(p, 0)[2].slot = -2; }},
      {"names slot -1 of 2", [&](PlanSpec &p) { actions(p, 1)[2].slot = -1; }},
      {"an action 'run' has none",
       [&](PlanSpec &p) { actions(p, 0)[1].slot = 0; }},
      {"an action 'wait' has none",
       [&](PlanSpec &p) { actions(p, 0)[6].slot = 0; }},
      {"an action 'release' has none",
       [&](PlanSpec &p) {
         actions(p, 1).push_back({abi::ActionKind::release, 0, 0, 1});
       }},
      {"writes slot 2, which is read only",
       [&](PlanSpec &p) {
         actions(p, 1)[0].slot = p.addWeight(1, {16}, std::vector<float>(16));
       }},
      {"moves 0 bytes", [&](PlanSpec &p) { actions(p, 0)[2].slot = -1; }},
      {"moves 64 bytes", [](PlanSpec &p) { p.channels[0].bytes = 65; }},
      {"another type or size",
       [](PlanSpec &p) { p.inputs[0].dtype = abi::DType::i32; }},
      {"sends on channel 0, which is another program's",
       [&](PlanSpec &p) { actions(p, 1)[0].kind = abi::ActionKind::send; }},
      {"receives on channel 0, which is another program's",
       [&](PlanSpec &p) { actions(p, 0)[2].kind = abi::ActionKind::recv; }},
      // The schedule.
      {"cpu:0: action 'F0: double0', micro-batch 0 reads bytes 0 to 64 before "
       "anything is written",
       [&](PlanSpec &p) { actions(p, 0).erase(actions(p, 0).begin()); }},
      {"(x1): nobody receives",
       [&](PlanSpec &p) { actions(p, 1).erase(actions(p, 1).begin()); }},
      {"never stored", [&](PlanSpec &p) { actions(p, 1).pop_back(); }},
      {"stored twice",
       [&](PlanSpec &p) { actions(p, 1).push_back(actions(p, 1).back()); }},
      {"has overwritten with another value", // of the same micro-batch
       [&](PlanSpec &p) {
         ActionSpec load = actions(p, 0).front();
         load.slot = p.addSlot(0, {16});
         p.programs[0].slots[2].offset = frame(p).copies[0];
         actions(p, 0).insert(actions(p, 0).begin() + 1, load);
       }},
      {"has overwritten with another value", // of another one
       [&](PlanSpec &p) {
         frame(p).copies.pop_back();
         std::swap(actions(p, 0)[1], actions(p, 0)[3]);
         std::swap(actions(p, 0)[2], actions(p, 0)[3]);
       }},
      {"of them is outstanding",
       [](PlanSpec &p) { p.programs[0].frames[1].copies.pop_back(); }},
  };
  EXPECT_EQ(open(doublingPipeline(2, 2)), "");
  for (const Row &row : rows) {
    PlanSpec plan = doublingPipeline(2, 2);
    row.change(plan);
    expectError(plan, row.part);
  }
}

// Programs are named by their own index, whatever the order of devices.
TEST_F(ArtifactTest, DevicesMayComeInAnyOrder) {
  PlanSpec plan = doublingPipeline(2, 2);
  std::swap(plan.devices[0], plan.devices[1]);
  EXPECT_EQ(open(plan), "");
  plan.programs[0].actions.erase(plan.programs[0].actions.begin());
  expectError(plan, "cpu:0: action 'F0: double0', micro-batch 0 reads");
}

/// A pipeline whose first unit begins with a call.
PlanSpec plan(const InstructionSpec &call) {
  PlanSpec plan = doublingPipeline(1, 1, 64);
  plan.programs[0].units[0].instructions.insert(
      plan.programs[0].units[0].instructions.begin(), call);
  return plan;
}

TEST_F(ArtifactTest, RefusesWrongCalls) {
  InstructionSpec dot;
  dot.views = {{0, {4, 8}, {8, 1}}, {0, {8, 2}, {2, 1}}, {1, {4, 2}, {2, 1}}};
  EXPECT_EQ(open(plan(dot)), "");
  InstructionSpec wrong = dot;
  wrong.views[0] = {0, {4, 9}, {9, 1}};
  expectError(plan(wrong), "[4, 9] and [8, 2]");
  wrong = dot;
  wrong.views[1].offset = 49;
  expectError(plan(wrong), "past the end of its slot");
  wrong = dot;
  wrong.views[1].strides = {1l << 62, 1l << 62};
  expectError(plan(wrong), "past the end of its slot");
  wrong = dot;
  wrong.views[2].strides = {0, 1};
  expectError(plan(wrong), "more than once");
  wrong = dot;
  wrong.views[0].strides = {4, 1};
  expectError(plan(wrong), "strides that interleave");
  wrong = dot;
  wrong.details = abi::CallDetails::Attention;
  expectError(plan(wrong),
              "is of the kind dot and has the details 'Attention'");
  wrong = dot;
  wrong.views.pop_back();
  expectError(plan(wrong), "has 2 operands");
  wrong = dot;
  wrong.post_ops.push_back({abi::PostOpKind::add});
  expectError(plan(wrong), "post-op 0 has no view");
  wrong.post_ops[0].view = {0, {3, 2}, {2, 1}};
  expectError(plan(wrong), "post-op 0 of shape [3, 2]");
  wrong.post_ops[0] = {abi::PostOpKind::sum, 0, 0, {}, 0};
  expectError(plan(wrong), "other bytes than the result");
  wrong.post_ops[0].before = 9;
  expectError(plan(wrong), "adds upon slot 9");

  InstructionSpec conv;
  conv.call = abi::CallKind::conv;
  conv.views = {{0, {1, 2, 4, 4}, {32, 1, 8, 2}},
                {0, {2, 2, 3, 3}, {18, 9, 3, 1}},
                {1, {1, 2, 2, 2}, {8, 1, 4, 2}}};
  conv.strides = conv.dilations = {1, 1};
  conv.pads_low = conv.pads_high = {0, 0};
  EXPECT_EQ(open(plan(conv)), "");
  wrong = conv;
  wrong.strides = {0, 1};
  expectError(plan(wrong), "strides has the entry 0");
  wrong = conv;
  wrong.pads_low = {0};
  expectError(plan(wrong), "pads_low has 1 entries");
  wrong = conv;
  wrong.groups = 2;
  expectError(plan(wrong), "do not fit");
  wrong = conv;
  wrong.pads_high = {1, 1};
  expectError(plan(wrong), "do not fit");
  wrong = conv;
  wrong.bias = {0, {3}, {1}};
  expectError(plan(wrong), "bias of shape [3]");

  // Its derivatives have the same windows, and other roles of the tensors.
  InstructionSpec toImage = conv, toWeights = conv;
  toImage.call = abi::CallKind::conv_dx;
  toImage.views = {{0, {1, 2, 2, 2}, {8, 1, 4, 2}},
                   {0, {2, 2, 3, 3}, {18, 9, 3, 1}},
                   {1, {1, 2, 4, 4}, {32, 1, 8, 2}}};
  EXPECT_EQ(open(plan(toImage)), "");
  wrong = toImage;
  wrong.pads_high = {1, 1};
  expectError(plan(wrong), "do not fit");
  wrong = toImage;
  wrong.bias = {0, {2}, {1}};
  expectError(plan(wrong), "has a bias, which a derivative");
  toWeights.call = abi::CallKind::conv_dw;
  toWeights.views = {{0, {1, 2, 4, 4}, {32, 1, 8, 2}},
                     {0, {1, 2, 2, 2}, {8, 1, 4, 2}},
                     {1, {2, 2, 3, 3}, {18, 9, 3, 1}}};
  EXPECT_EQ(open(plan(toWeights)), "");
  wrong = toWeights;
  wrong.groups = 2;
  expectError(plan(wrong), "do not fit");
  wrong = toWeights;
  wrong.views[1] = {0, {1, 2, 3, 3}, {18, 1, 6, 2}};
  expectError(plan(wrong), "do not fit");
}

TEST_F(ArtifactTest, RefusesWrongCallsOfTheRuntimesOwn) {
  InstructionSpec scan;
  scan.call = abi::CallKind::scan;
  scan.combine = abi::Combine::sum;
  scan.views = {{0, {2, 8, 4}, {32, 4, 1}}, {1, {2, 8, 4}, {32, 4, 1}}};
  EXPECT_EQ(open(plan(scan)), "");
  InstructionSpec wrong = scan;
  wrong.combine = abi::Combine::replace;
  expectError(plan(wrong), "does not say how elements are combined");
  wrong.combine = static_cast<abi::Combine>(77);
  expectError(plan(wrong), "does not say how elements are combined");
  wrong = scan;
  wrong.views[0].strides = {4, 8, 1};
  expectError(plan(wrong), "operand 0 is not dense");
  wrong = scan;
  wrong.views[1].shape = {2, 4, 4};
  wrong.views[1].strides = {16, 4, 1};
  expectError(plan(wrong), "[2, 8, 4] and [2, 4, 4], which do not fit");
  wrong = scan;
  wrong.views[0] = {0, {1, 8, 4}, {32, 4, 1}, 32};
  expectError(plan(wrong), "does not begin with its slot");
  wrong = scan;
  wrong.post_ops.push_back({abi::PostOpKind::relu});
  expectError(plan(wrong), "has post-ops");
  wrong = scan;
  wrong.details = abi::CallDetails::NONE;
  expectError(plan(wrong), "is of the kind scan and has the details 'NONE'");

  InstructionSpec choice;
  choice.call = abi::CallKind::top_k;
  choice.views = {{0, {8, 8}, {8, 1}}, {1, {8, 3}, {3, 1}}};
  expectError(plan(choice), "a result of another type");
  choice.views[1] = {1, {1, 0}, {0, 1}};
  expectError(plan(choice), "operand 1 has the extent 0");

  InstructionSpec scatter;
  scatter.call = abi::CallKind::scatter;
  scatter.views = {{0, {8, 8}, {8, 1}},
                   {0, {3}, {1}},
                   {0, {3, 8}, {8, 1}},
                   {1, {8, 8}, {8, 1}}};
  expectError(plan(scatter), "places or updates of another type");
  wrong = scatter;
  wrong.views.pop_back();
  expectError(plan(wrong), "has 3 operands and should have 4");

  InstructionSpec update;
  update.call = abi::CallKind::update_slice;
  update.views = {{0, {2, 4, 8}, {32, 8, 1}},
                  {0, {2, 2, 8}, {16, 8, 1}},
                  {0, {2}, {1}},
                  {1, {2, 4, 8}, {32, 8, 1}}};
  expectError(plan(update), "has an update, places or a result of another");
}

/// FlatBuffers neither aligns a vector without numbers, as a scalar's shape is,
/// nor checks that others are aligned.
TEST(NumbersTest, OnlyNumbersNeedAlignment) {
  // A vector is its length, then its numbers.
  alignas(8) uint32_t words[] = {0, 1, 0, 0};
  auto aligned = [&](int first) {
    return runtime::isAligned(
        reinterpret_cast<const flatbuffers::Vector<int64_t> *>(words + first));
  };
  EXPECT_TRUE(runtime::isAligned(nullptr));
  EXPECT_TRUE(aligned(0)) << "none, at 4 bytes";
  EXPECT_TRUE(aligned(1)) << "one, at 8 bytes";
  words[0] = 1;
  EXPECT_FALSE(aligned(0)) << "one, at 4 bytes";
}

TEST_F(ArtifactTest, NumbersThatAreNotAlignedAreRefused) {
  PlanSpec spec = doublingPipeline(2, 2);
  spec.programs[0].slots[0].shape = {1, 16};
  std::vector<uint8_t> plan = encode(spec);
  auto *slot = reinterpret_cast<const flatbuffers::Table *>(
      flatbuffers::GetRoot<abi::Plan>(plan.data())
          ->programs()
          ->Get(0)
          ->slots()
          ->Get(0));
  // The shape now begins 4 bytes later: its length is the 1, and what follows
  // lies across two numbers.
  auto *reference =
      const_cast<uint8_t *>(slot->GetAddressOf(abi::Slot::VT_SHAPE));
  flatbuffers::WriteScalar(reference,
                           flatbuffers::ReadScalar<uint32_t>(reference) + 4);
  std::string message = open(artifactBytes(plan, {}, {}));
  EXPECT_NE(message.find("slot 0 has a shape that is not aligned"),
            std::string::npos)
      << "got: " << message;
}

} // namespace
} // namespace partita::test
