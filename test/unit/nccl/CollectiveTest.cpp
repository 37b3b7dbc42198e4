//===- CollectiveTest.cpp - What NCCL carries, and what comes of it -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four devices, in one process or four (main.cpp).
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/ElementTypes.h"
#include "runtime/comm/reduce/Group.h"
#include "runtime/io/DType.h"
#include "test/unit/comm/CollectiveCases.h"
#include "test/unit/nccl/Fleet.h"

#include <algorithm>
#include <cstring>

namespace partita::test {
namespace {

using namespace runtime;
using abi::DType;
using Groups = std::vector<std::vector<int>>;

constexpr DType kTypes[] = {
    DType::f32,        DType::f64,      DType::f16,        DType::bf16,
    DType::i8,         DType::i16,      DType::i32,        DType::i64,
    DType::u8,         DType::u16,      DType::u32,        DType::u64,
    DType::boolean,    DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
    DType::f8e5m2fnuz, DType::f8e8m0,   DType::f4e2m1,     DType::i4,
    DType::u4,         DType::i2,       DType::u2};
constexpr Reduction kReductions[] = {Reduction::sum, Reduction::prod,
                                     Reduction::max, Reduction::min};

/// The groups of a mesh of 2 x 2, along each subset of its axes; the last ones
/// are in another order.
const std::vector<Groups> kGroups = {{{0}, {1}, {2}, {3}}, {{0, 1}, {2, 3}},
                                     {{0, 2}, {1, 3}},     {{0, 1, 2, 3}},
                                     {{3, 1}, {0, 2}},     {{2, 3, 0, 1}}};

/// Sums and products of these are exact, in whatever order.
void makeExact(const CollectiveInfo &info, Bytes &bytes, int device) {
  if (!isFloat(info.dtype) || !combines(info.kind))
    return;
  const auto size = size_t(elementBytes(info.dtype));
  for (size_t i = 0; i * size < bytes.size(); ++i) {
    const double values[] = {-2, 0.5, 1, -1, 2, 1};
    const double value = values[(i * 7 + size_t(device) * 5 + i / 6) % 6];
    uint8_t *at = bytes.data() + i * size;
    const float single = float(value);
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    const _Float16 half = _Float16(single);
    const auto brain = uint16_t(bits >> 16);
    switch (info.dtype) {
    case DType::f64:
      std::memcpy(at, &value, 8);
      break;
    case DType::f32:
      std::memcpy(at, &single, 4);
      break;
    case DType::f16:
      std::memcpy(at, &half, 2);
      break;
    default:
      std::memcpy(at, &brain, 2);
    }
  }
}

nccl::Traffic trafficOf(const std::vector<CollectiveCase> &cases) {
  nccl::Traffic traffic;
  traffic.collectives = infosOf(cases);
  traffic.messages.resize(kDevices);
  return traffic;
}

TEST(NcclTypes, EachTypeAndReductionIsExactOrNamed) {
  // s, p, x, n: sum, prod, max, min; what is not there, NCCL does not have, or
  // not as we do.
  const std::map<DType, std::pair<nccl::DataType, std::string>> expected = {
      {DType::f32, {nccl::DataType::float32, "sp"}},
      {DType::f64, {nccl::DataType::float64, "sp"}},
      {DType::f16, {nccl::DataType::float16, "sp"}},
      {DType::bf16, {nccl::DataType::bfloat16, "sp"}},
      {DType::i8, {nccl::DataType::int8, "spxn"}},
      {DType::i32, {nccl::DataType::int32, "spxn"}},
      {DType::i64, {nccl::DataType::int64, "spxn"}},
      {DType::u8, {nccl::DataType::uint8, "spxn"}},
      {DType::u32, {nccl::DataType::uint32, "spxn"}},
      {DType::u64, {nccl::DataType::uint64, "spxn"}},
      {DType::boolean, {nccl::DataType::uint8, "xn"}},
      {DType::i4, {nccl::DataType::int8, "xn"}},
      {DType::u4, {nccl::DataType::uint8, "xn"}},
      {DType::i2, {nccl::DataType::int8, "xn"}},
      {DType::u2, {nccl::DataType::uint8, "xn"}}};
  EXPECT_EQ(std::size(kTypes), size_t(DType::MAX) + 1);
  for (DType dtype : kTypes)
    for (size_t i = 0; i < std::size(kReductions); ++i) {
      const auto found = expected.find(dtype);
      const auto made = nccl::combinationOf(dtype, kReductions[i]);
      const bool has =
          found != expected.end() &&
          found->second.second.find("spxn"[i]) != std::string::npos;
      EXPECT_EQ(made.ok(), has) << abi::EnumNameDType(dtype) << " " << i;
      if (!made) {
        EXPECT_EQ(made.status().message(),
                  std::string("NCCL has no ") +
                      abi::EnumNameReduction(kReductions[i]) + " of " +
                      abi::EnumNameDType(dtype));
        continue;
      }
      EXPECT_EQ(made->type, found->second.first);
      EXPECT_EQ(int(made->op), int(i));
    }
}

bool isOfNccl(const Participant &part) {
  return dynamic_cast<const GroupParticipant<nccl::Endpoint> *>(&part);
}

/// Runs all cases, one behind another, and compares with what the CPU's
/// communicators give, bit by bit.
void runAll(const std::vector<CollectiveCase> &cases, bool expects_nccl) {
  Fleet fleet(trafficOf(cases));
  ASSERT_TRUE(fleet.status.ok()) << fleet.status.message();
  const Status connected = fleet.comm->connect();
  ASSERT_TRUE(connected.ok()) << connected.message();
  struct Run {
    size_t number;
    int device;
    Bytes source, target;
    uint8_t *from, *to;
    Bytes expected;
  };
  std::vector<Run> runs;
  for (size_t i = 0; i < cases.size(); ++i)
    for (size_t g = 0; g < cases[i].info.groups.size(); ++g) {
      std::vector<Bytes> sources = sourcesOf(cases[i], int(g), 0);
      const std::vector<int> &group = cases[i].info.groups[g];
      for (size_t rank = 0; rank < group.size(); ++rank)
        makeExact(cases[i].info, sources[rank], group[rank]);
      for (size_t rank = 0; rank < group.size(); ++rank) {
        const int device = group[rank];
        if (std::find(fleet.here.begin(), fleet.here.end(), device) ==
            fleet.here.end())
          continue;
        EXPECT_EQ(isOfNccl(fleet.ends->participant(int(i), device)),
                  expects_nccl)
            << nameOf(cases[i]);
        Run run{i,
                device,
                sources[rank],
                {},
                nullptr,
                nullptr,
                expectedOf(cases[i], sources, int(rank))};
        run.from = fleet.allocate(device, run.source.size());
        run.to = cases[i].in_place
                     ? run.from
                     : fleet.allocate(device, run.expected.size());
        run.target.assign(run.expected.size(), 0xa5);
        runs.push_back(std::move(run));
      }
    }
  if (!expects_nccl)
    return;
  auto ok = [](const Status &status) {
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok();
  };
  for (Run &run : runs) {
    Queue &queue = fleet.queue(run.device);
    ASSERT_TRUE(
        ok(queue.copyIn(run.from, run.source.data(), run.source.size())) &&
        ok(fleet.ends->start(int(run.number), run.device, 0, run.from,
                             run.to)) &&
        ok(fleet.ends->finish(int(run.number), run.device, 0)) &&
        ok(queue.copyOut(run.target.data(), run.to, run.target.size())));
  }
  for (int device : fleet.here)
    ASSERT_TRUE(ok(fleet.await(device)));
  for (const Run &run : runs)
    EXPECT_TRUE(agree(cases[run.number].info.dtype, run.expected, run.target))
        << nameOf(cases[run.number]) << ", device " << run.device;
}

TEST(NcclCollectives, OfAllKindsOverAllSubsetsOfAxes) {
  SKIP_WITHOUT_GPU();
  for (const Groups &groups : kGroups) {
    std::vector<CollectiveCase> cases;
    for (CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather,
          CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
          CollectiveKind::broadcast})
      for (auto [rows, part] : {std::pair<int64_t, int64_t>{1, 0},
                                {1, 1},
                                {1, 131},
                                {3, 1},
                                {5, 33}})
        for (bool in_place : {false, true})
          if (!in_place || kind == CollectiveKind::all_reduce ||
              kind == CollectiveKind::broadcast)
            cases.push_back(
                {{kind, Reduction::sum, DType::f32, rows, part, groups},
                 in_place});
    runAll(cases, groups.front().size() > 1);
    world().barrier();
  }
}

TEST(NcclCollectives, OfAllTypes) {
  SKIP_WITHOUT_GPU();
  const Groups all = {{0, 1, 2, 3}};
  std::vector<CollectiveCase> served, others;
  for (DType dtype : kTypes) {
    for (Reduction reduction : kReductions) {
      const CollectiveCase of = {
          {CollectiveKind::all_reduce, reduction, dtype, 2, 19, all}, false};
      if (nccl::combinationOf(dtype, reduction))
        served.push_back(of);
      else if (checkCollective(of.info).ok())
        others.push_back(of);
    }
    served.push_back(
        {{CollectiveKind::all_gather, {}, dtype, 2, 19, all}, false});
  }
  EXPECT_EQ(served.size(), 4u * 2 + 6 * 4 + 5 * 2 + 23);
  runAll(served, true);
  world().barrier();
  // The host does these: 16 bits, sums of few bits, and what keeps NaN.
  EXPECT_EQ(others.size(), 4u * 2 + 2 * 4 + 4 * 2);
  runAll(others, false);
}

// More than one message of a micro-batch goes over an edge, all send before
// they receive, and frames have few copies.
TEST(NcclMessages, InARing) {
  SKIP_WITHOUT_GPU();
  constexpr int kBatches = 5;
  constexpr int64_t kBytes[] = {4096, 0, 100};
  nccl::Traffic traffic;
  traffic.micro_batches = kBatches;
  traffic.messages.resize(kDevices);
  auto channelOf = [](int from, int which) { return from * 3 + which; };
  for (int from = 0; from < kDevices; ++from)
    for (int64_t bytes : kBytes)
      traffic.channels.push_back({from, (from + 1) % kDevices, bytes});
  for (int device = 0; device < kDevices; ++device) {
    const int before = (device + kDevices - 1) % kDevices;
    size_t step = 0;
    for (int m = 0; m < kBatches; ++m)
      for (bool is_send : {true, false}) {
        for (int which = 0; which < 3; ++which)
          traffic.messages[size_t(device)].push_back(
              {channelOf(is_send ? device : before, which), m, is_send,
               step++});
        ++step;
      }
  }
  Fleet fleet(traffic, 30);
  ASSERT_TRUE(fleet.status.ok()) << fleet.status.message();
  const bool apart = world().processes.gather_all != nullptr;
  if (!apart)
    return; // in one process GPUs copy from each other
  EXPECT_TRUE(dynamic_cast<const ChannelSender<nccl::Endpoint> *>(
      &fleet.ends->sender(0)));
  auto ok = [](const Status &status) {
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok();
  };
  ASSERT_TRUE(ok(fleet.comm->connect()));
  for (int round = 0; round < 2; ++round)
    for (int device : fleet.here) {
      const int before = (device + kDevices - 1) % kDevices;
      auto valueOf = [&](int from, int m, int which) {
        return uint8_t(1 + from * 50 + m * 7 + which + round);
      };
      std::vector<uint8_t *> to(3), from(3);
      std::vector<Bytes> sources, targets;
      for (int which = 0; which < 3; ++which) {
        from[size_t(which)] = fleet.allocate(device, size_t(kBytes[which]) + 1);
        to[size_t(which)] = fleet.allocate(device, size_t(kBytes[which]) + 1);
      }
      for (int m = 0; m < kBatches; ++m)
        for (int which = 0; which < 3; ++which) {
          sources.emplace_back(size_t(kBytes[which]),
                               valueOf(device, m, which));
          targets.emplace_back(size_t(kBytes[which]), 0);
        }
      Queue &queue = fleet.queue(device);
      for (int m = 0; m < kBatches; ++m) {
        for (int which = 0; which < 3; ++which) {
          const auto w = size_t(which);
          if (m > 0)
            ASSERT_TRUE(
                ok(fleet.ends->waitSent(channelOf(device, which), m - 1)));
          ASSERT_TRUE(
              ok(queue.copyIn(from[w], sources[size_t(m) * 3 + w].data(),
                              size_t(kBytes[which]))));
        }
        for (int which = 0; which < 3; ++which)
          ASSERT_TRUE(ok(fleet.ends->send(
              channelOf(device, which), m,
              kBytes[which] ? from[size_t(which)] : nullptr, kBytes[which])));
        for (int which = 0; which < 3; ++which)
          ASSERT_TRUE(ok(fleet.ends->recv(
              channelOf(before, which), m,
              kBytes[which] ? to[size_t(which)] : nullptr, kBytes[which])));
        for (int which = 0; which < 3; ++which)
          ASSERT_TRUE(
              ok(queue.copyOut(targets[size_t(m) * 3 + size_t(which)].data(),
                               to[size_t(which)], size_t(kBytes[which]))));
      }
      ASSERT_TRUE(ok(fleet.await(device)));
      for (int m = 0; m < kBatches; ++m)
        for (int which = 0; which < 3; ++which)
          EXPECT_EQ(targets[size_t(m * 3 + which)],
                    Bytes(size_t(kBytes[which]), valueOf(before, m, which)));
      for (int which = 0; which < 3; ++which)
        ASSERT_TRUE(
            ok(fleet.ends->waitSent(channelOf(device, which), kBatches - 1)));
      ASSERT_TRUE(ok(fleet.await(device)));
    }
}

} // namespace
} // namespace partita::test
