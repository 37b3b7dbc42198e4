//===- StatePartsTest.cpp - What each device has of a state ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/StateParts.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace partita::test {
namespace {

using namespace runtime;

struct CutSpec {
  int dim;
  int64_t blocks, part;
  std::vector<int> axes;
};

/// A plan of one program on a mesh, with a state of i32.
class MeshPlan {
public:
  MeshPlan(const std::vector<int> &sizes, const std::vector<int64_t> &shape,
           const std::vector<CutSpec> &cuts) {
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<abi::Axis>> axes;
    for (int size : sizes)
      axes.push_back(abi::CreateAxis(b, b.CreateString("axis"), size));
    std::vector<flatbuffers::Offset<abi::Device>> devices;
    count = std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
    for (int device = 0; device < count; ++device) {
      std::vector<int> coordinate(sizes.size());
      for (size_t axis = sizes.size(), rest = static_cast<size_t>(device);
           axis-- > 0; rest /= static_cast<size_t>(sizes[axis]))
        coordinate[axis] = static_cast<int>(rest) % sizes[axis];
      devices.push_back(abi::CreateDevice(b, b.CreateString("cpu"),
                                          abi::DeviceKind::cpu, 0,
                                          b.CreateVector(coordinate)));
    }
    std::vector<flatbuffers::Offset<abi::Cut>> tables;
    for (const CutSpec &cut : cuts)
      tables.push_back(abi::CreateCut(b, cut.dim, cut.blocks, cut.part,
                                      b.CreateVector(cut.axes)));
    auto all = b.CreateVector(tables);
    auto dims = b.CreateVector(shape);
    auto name = b.CreateString("w");
    abi::StateBuilder state(b);
    state.add_name(name);
    state.add_dtype(abi::DType::i32);
    state.add_shape(dims);
    state.add_cuts(all);
    auto states = b.CreateVector(std::vector{state.Finish()});
    auto devicesAt = b.CreateVector(devices);
    auto axesAt = b.CreateVector(axes);
    abi::PlanBuilder builder(b);
    builder.add_devices(devicesAt);
    builder.add_axes(axesAt);
    builder.add_states(states);
    b.Finish(builder.Finish());
    bytes = b.Release();
  }

  const abi::Plan &plan() const {
    return *flatbuffers::GetRoot<abi::Plan>(bytes.data());
  }
  const abi::State &state() const { return *plan().states()->Get(0); }

  int count = 1;

private:
  flatbuffers::DetachedBuffer bytes;
};

std::string errorOf(const std::vector<int> &mesh,
                    const std::vector<int64_t> &shape,
                    const std::vector<CutSpec> &cuts) {
  const MeshPlan plan(mesh, shape, cuts);
  return cutsError(plan.plan(), plan.state());
}

/// All that the devices have, put together.
std::vector<int32_t> putTogether(const MeshPlan &plan,
                                 const std::vector<int32_t> &whole) {
  std::vector<int32_t> made(whole.size(), -1);
  for (int device = 0; device < plan.count; ++device) {
    const StatePart part(plan.plan(), plan.state(), device);
    std::vector<int32_t> own(part.bytes() / sizeof(int32_t), -1);
    part.take(reinterpret_cast<const uint8_t *>(whole.data()),
              reinterpret_cast<uint8_t *>(own.data()));
    EXPECT_EQ(std::count(own.begin(), own.end(), -1), 0);
    part.put(reinterpret_cast<const uint8_t *>(own.data()),
             reinterpret_cast<uint8_t *>(made.data()));
  }
  return made;
}

std::vector<int32_t> numbers(size_t count) {
  std::vector<int32_t> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

TEST(StateParts, AreWhatTheDevicesHave) {
  // Of [5, 4] over three devices: rows 0 and 1, 2 and 3, 4 and nothing.
  const MeshPlan plan({3}, {5, 4}, {{0, 1, 2, {0}}});
  ASSERT_EQ(cutsError(plan.plan(), plan.state()), "");
  EXPECT_EQ(partBytes(plan.state()), 32);
  const std::vector<int32_t> whole = numbers(20);
  std::vector<int32_t> own(8);
  StatePart(plan.plan(), plan.state(), 2)
      .take(reinterpret_cast<const uint8_t *>(whole.data()),
            reinterpret_cast<uint8_t *>(own.data()));
  EXPECT_EQ(own, (std::vector<int32_t>{17, 18, 19, 20, 0, 0, 0, 0}));
  EXPECT_EQ(putTogether(plan, whole), whole);
  // Of [2, 6] in two blocks of columns: device 1 has the second half of each.
  const MeshPlan blocks({2}, {1, 8}, {{1, 2, 4, {0}}});
  own.resize(4);
  StatePart(blocks.plan(), blocks.state(), 1)
      .take(reinterpret_cast<const uint8_t *>(whole.data()),
            reinterpret_cast<uint8_t *>(own.data()));
  EXPECT_EQ(own, (std::vector<int32_t>{3, 4, 7, 8}));
}

TEST(StateParts, AreTogetherTheWhole) {
  std::mt19937 noise(4);
  auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(noise);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<int> mesh, free;
    for (int axis = draw(1, 3); axis > 0; --axis) {
      free.push_back(static_cast<int>(mesh.size()));
      mesh.push_back(draw(1, 4));
    }
    std::vector<int64_t> shape;
    std::vector<CutSpec> cuts;
    size_t elements = 1;
    for (int dim = draw(0, 3); dim > 0; --dim) {
      const int blocks = draw(1, 3), block = draw(1, 7);
      shape.push_back(int64_t(blocks) * block);
      elements *= static_cast<size_t>(shape.back());
      if (free.empty() || draw(0, 1))
        continue;
      CutSpec cut{static_cast<int>(shape.size()) - 1, blocks, 0, {}};
      int devices = 1;
      for (int axes = draw(1, static_cast<int>(free.size())); axes > 0;
           --axes) {
        cut.axes.push_back(free.back());
        devices *= mesh[static_cast<size_t>(free.back())];
        free.pop_back();
      }
      cut.part = int64_t(blocks) * ((block + devices - 1) / devices);
      cuts.push_back(cut);
    }
    const MeshPlan plan(mesh, shape, cuts);
    ASSERT_EQ(cutsError(plan.plan(), plan.state()), "") << round;
    const std::vector<int32_t> whole = numbers(elements);
    EXPECT_EQ(putTogether(plan, whole), whole) << round;
  }
}

TEST(StateParts, BringRingsIntoTheirOrder) {
  // [2, 3, 2] of i32 of each of two micro-batches, a ring along dimension 1.
  // Its place is a number, or the first one of a row.
  for (const std::vector<int64_t> &row :
       {std::vector<int64_t>{}, std::vector<int64_t>{1, 8}}) {
    flatbuffers::FlatBufferBuilder b;
    const std::vector<int64_t> shape = {2, 3, 2};
    const int64_t each = row.empty() ? 1 : 8;
    auto state = [&](const char *text, const std::vector<int64_t> &sizes,
                     abi::DType dtype, int64_t bytes, int place) {
      auto name = b.CreateString(text);
      auto dims = b.CreateVector(sizes);
      abi::StateBuilder builder(b);
      builder.add_name(name);
      builder.add_role(abi::StateRole::carried);
      builder.add_dtype(dtype);
      builder.add_shape(dims);
      builder.add_bytes(bytes);
      if (place >= 0) {
        builder.add_ring_dim(1);
        builder.add_ring_place(place);
      }
      return builder.Finish();
    };
    const auto ring = state("ring", shape, abi::DType::i32, 48, 1),
               place = state("place", row, abi::DType::i64, 8 * each, -1);
    auto states = b.CreateVector(std::vector{ring, place});
    abi::PlanBuilder builder(b);
    builder.add_micro_batches(2);
    builder.add_states(states);
    b.Finish(builder.Finish());
    const auto &plan = *flatbuffers::GetRoot<abi::Plan>(b.GetBufferPointer());
    std::vector<int32_t> whole(24);
    std::iota(whole.begin(), whole.end(), 0);
    std::vector<int64_t> places(size_t(2 * each), 77);
    places[0] = 1;
    places[size_t(each)] = -1; // what is out of range counts around
    orderRing(plan, *plan.states()->Get(0), places.data(),
              reinterpret_cast<uint8_t *>(whole.data()));
    EXPECT_EQ(whole, (std::vector<int32_t>{2,  3,  4,  5,  0,  1,  8,  9,
                                           10, 11, 6,  7,  16, 17, 12, 13,
                                           14, 15, 22, 23, 18, 19, 20, 21}));
  }
}

TEST(StateParts, HaveCopiesForEachSequence) {
  // A frame with two copies, three micro-batches, and two sequences.
  flatbuffers::FlatBufferBuilder b;
  auto frames = b.CreateVector(std::vector{
      abi::CreateFrame(b, 64, b.CreateVector(std::vector<int64_t>{0, 64}))});
  abi::ProgramBuilder program(b);
  program.add_frames(frames);
  auto programs = b.CreateVector(std::vector{program.Finish()});
  auto name = b.CreateString("s");
  std::vector<flatbuffers::Offset<abi::State>> tables;
  for (auto role : {abi::StateRole::carried, abi::StateRole::parameter}) {
    abi::StateBuilder state(b);
    state.add_name(name);
    state.add_role(role);
    tables.push_back(state.Finish());
  }
  auto states = b.CreateVector(tables);
  abi::PlanBuilder builder(b);
  builder.add_micro_batches(3);
  builder.add_sequences(2);
  builder.add_programs(programs);
  builder.add_states(states);
  b.Finish(builder.Finish());
  const auto &plan = *flatbuffers::GetRoot<abi::Plan>(b.GetBufferPointer());
  const abi::Program &first = *plan.programs()->Get(0);
  EXPECT_EQ(sequenceStride(plan, first), 4); // so that 4 % 2 is 0
  EXPECT_EQ(countStateCopies(plan, *plan.states()->Get(0)), 6u);
  EXPECT_EQ(stateCopies(plan, first, *plan.states()->Get(0)),
            (std::vector<size_t>{0, 1, 2, 0, 3, 4, 5, 3}));
  // What all micro-batches share, all sequences share.
  EXPECT_EQ(stateCopies(plan, first, *plan.states()->Get(1)),
            std::vector<size_t>{0});
}

TEST(StateParts, AreRefusedIfTheyFitNoMesh) {
  EXPECT_EQ(errorOf({2}, {4}, {{1, 1, 2, {0}}}),
            "is cut in dimension 1, which it does not have, or twice");
  EXPECT_EQ(errorOf({2}, {4}, {{-1, 1, 2, {0}}}),
            "is cut in dimension -1, which it does not have, or twice");
  EXPECT_EQ(errorOf({2, 2}, {4}, {{0, 1, 2, {0}}, {0, 1, 2, {1}}}),
            "is cut in dimension 0, which it does not have, or twice");
  EXPECT_EQ(errorOf({2}, {4}, {{0, 1, 2, {}}}), "is cut along no axis");
  EXPECT_EQ(errorOf({2}, {4}, {{0, 1, 2, {1}}}),
            "is cut along axes that the mesh does not have");
  EXPECT_EQ(errorOf({2}, {4}, {{0, 1, 2, {-1}}}),
            "is cut along axes that the mesh does not have");
  EXPECT_EQ(errorOf({2}, {4, 4}, {{0, 1, 2, {0}}, {1, 1, 2, {0}}}),
            "is cut along an axis twice");
  const std::string misfit =
      "has 4 elements in dimension 0, of which 2 devices have ";
  EXPECT_EQ(errorOf({2}, {4}, {{0, 1, 1, {0}}}), misfit + "1 each");
  EXPECT_EQ(errorOf({2}, {4}, {{0, 1, 5, {0}}}), misfit + "5 each");
  EXPECT_EQ(errorOf({2}, {4}, {{0, 3, 3, {0}}}), misfit + "3 each");
  EXPECT_EQ(errorOf({2}, {4}, {{0, 0, 2, {0}}}), misfit + "2 each");
  EXPECT_EQ(errorOf({2}, {4}, {{0, 2, 3, {0}}}), misfit + "3 each");
}

} // namespace
} // namespace partita::test
