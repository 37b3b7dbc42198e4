//===- ScheduleCheckTest.cpp - Deadlocks and misused buffers --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/ScheduleCheck.h"

#include <gtest/gtest.h>

using namespace partita::abi;
using Kind = CheckedStep::Kind;

namespace {

CheckedStep local(int microBatch, std::vector<CheckedRange> reads,
                  std::vector<CheckedRange> writes, std::string name) {
  return {Kind::local, -1, microBatch, reads, writes, name};
}
CheckedStep send(int channel, int microBatch,
                 std::vector<CheckedRange> reads = {}) {
  return {Kind::send, channel, microBatch, reads, {}, "x"};
}
CheckedStep recv(int channel, int microBatch,
                 std::vector<CheckedRange> writes = {}) {
  return {Kind::recv, channel, microBatch, {}, writes, "x"};
}
CheckedStep wait(int channel, int microBatch) {
  return {Kind::wait, channel, microBatch, {}, {}, "x"};
}
CheckedStep release(int channel, int microBatch) {
  return {Kind::release, channel, microBatch, {}, {}, "x"};
}
CheckedDevice device(int index, std::vector<CheckedStep> steps) {
  return {"cpu:" + std::to_string(index), 256, steps};
}

/// A cycle of receives through the devices `first`, ..., `first + size - 1`.
void addCycle(std::vector<CheckedDevice> &devices, int size) {
  int first = static_cast<int>(devices.size());
  for (int i = 0; i < size; ++i) {
    int channel = first + i, before = first + (i + size - 1) % size;
    devices.push_back(device(
        first + i, {recv(before, 0), send(channel, 0), wait(channel, 0)}));
  }
}

size_t lines(const std::string &text) {
  return std::count(text.begin(), text.end(), '\n') + 1;
}

TEST(ScheduleCheck, AcceptsPipeline) {
  std::vector<CheckedStep> first, second;
  for (int m = 0; m < 3; ++m) {
    int64_t slot = (m % 2) * 64;
    if (m >= 2)
      first.push_back(wait(0, m - 2));
    first.push_back(local(m, {}, {{slot, slot + 64, m}}, "F0"));
    first.push_back(send(0, m, {{slot, slot + 64, m}}));
    second.push_back(recv(0, m, {{0, 64, m}}));
    second.push_back(local(m, {{0, 64, m}}, {{64, 128, m}}, "F1"));
  }
  first.push_back(wait(0, 1));
  first.push_back(wait(0, 2));
  EXPECT_EQ(checkSchedule({device(0, first), device(1, second)}), "");
}

TEST(ScheduleCheck, PrintsCycleOfTwo) {
  std::vector<CheckedDevice> devices;
  addCycle(devices, 2);
  std::string message = checkSchedule(devices);
  EXPECT_NE(message.find("deadlocks"), std::string::npos) << message;
  EXPECT_NE(message.find("\ncpu:0: recv of channel 1, micro-batch 0 (x) waits "
                         "for cpu:1: send of channel 1, micro-batch 0 (x)"),
            std::string::npos)
      << message;
  EXPECT_EQ(lines(message), 3u) << message;
}

TEST(ScheduleCheck, PrintsSmallestCycle) {
  std::vector<CheckedDevice> devices;
  addCycle(devices, 4);
  addCycle(devices, 3);
  addCycle(devices, 5);
  std::string message = checkSchedule(devices);
  EXPECT_EQ(lines(message), 4u) << message;
  EXPECT_NE(message.find("cpu:4"), std::string::npos) << message;
  EXPECT_EQ(message.find("cpu:0"), std::string::npos) << message;
}

TEST(ScheduleCheck, WaitTakesPartInCycle) {
  // The first waits for its send to be taken before it sends what the second
  // receives first.
  CheckedDevice first =
      device(0, {send(0, 0), wait(0, 0), send(1, 0), wait(1, 0)});
  CheckedDevice second = device(1, {recv(1, 0), recv(0, 0)});
  std::string message = checkSchedule({first, second});
  EXPECT_NE(message.find("wait of channel 0"), std::string::npos) << message;
  EXPECT_EQ(lines(message), 3u) << message;
}

TEST(ScheduleCheck, ChainBehindCycleIsNotPrinted) {
  std::vector<CheckedDevice> devices;
  addCycle(devices, 2);
  devices[0].steps.push_back(send(9, 0));
  devices[0].steps.push_back(wait(9, 0));
  devices.push_back(device(2, {recv(9, 0)}));
  std::string message = checkSchedule(devices);
  EXPECT_EQ(message.find("cpu:2"), std::string::npos) << message;
}

TEST(ScheduleCheck, RefusesUnmatchedSteps) {
  CheckedDevice none = device(1, {});
  EXPECT_NE(checkSchedule({device(0, {send(0, 0), wait(0, 0)}), none})
                .find("nobody receives"),
            std::string::npos);
  EXPECT_NE(checkSchedule({device(0, {recv(0, 0)}), none}).find("nobody sends"),
            std::string::npos);
  EXPECT_NE(checkSchedule({device(0, {send(0, 0)}), device(1, {recv(0, 0)})})
                .find("has no wait"),
            std::string::npos);
  EXPECT_NE(checkSchedule(
                {device(0, {wait(0, 0), send(0, 0)}), device(1, {recv(0, 0)})})
                .find("before its send"),
            std::string::npos);
  EXPECT_NE(checkSchedule({device(0, {send(0, 0), send(0, 0), wait(0, 0)}),
                           device(1, {recv(0, 0)})})
                .find("two steps"),
            std::string::npos);
}

TEST(ScheduleCheck, RefusesReadBeforeWrite) {
  std::string message =
      checkSchedule({device(0, {local(0, {{0, 64, 1}}, {}, "F0")})});
  EXPECT_NE(message.find("reads bytes 0 to 64 before"), std::string::npos)
      << message;
}

TEST(ScheduleCheck, RefusesPartlyWrittenRead) {
  std::string message = checkSchedule({device(
      0, {local(0, {}, {{0, 32, 1}}, "F0"), local(0, {}, {{48, 64, 1}}, "F1"),
          local(0, {{0, 64, 1}}, {}, "F2")})});
  EXPECT_NE(message.find("'F2', micro-batch 0 reads bytes 32 to 48 before"),
            std::string::npos)
      << message;
}

TEST(ScheduleCheck, RefusesPartlyOverwrittenRead) {
  std::string message = checkSchedule({device(
      0, {local(0, {}, {{0, 64, 1}}, "F0"), local(0, {}, {{16, 32, 2}}, "F1"),
          local(0, {{0, 16, 1}, {32, 64, 1}}, {}, "ok"),
          local(0, {{0, 64, 1}}, {}, "F2")})});
  EXPECT_NE(message.find("'F2', micro-batch 0 reads bytes 16 to 32, which step "
                         "'F1', micro-batch 0 has overwritten"),
            std::string::npos)
      << message;
}

TEST(ScheduleCheck, AcceptsReadOverSeveralWrites) {
  EXPECT_EQ(checkSchedule({device(0, {local(0, {}, {{0, 32, 1}}, "F0"),
                                      local(0, {}, {{32, 64, 1}}, "F1"),
                                      local(0, {{8, 60, 1}}, {}, "F2")})}),
            "");
}

TEST(ScheduleCheck, RefusesOverwriteOfOutstandingSend) {
  CheckedDevice first =
      device(0, {local(0, {}, {{0, 64, 1}}, "F0"), send(0, 0, {{0, 64, 1}}),
                 local(1, {}, {{32, 96, 2}}, "F0"), wait(0, 0)});
  CheckedDevice second = device(1, {recv(0, 0, {{0, 64, 1}})});
  std::string message = checkSchedule({first, second});
  EXPECT_NE(message.find("writes bytes 32 to 64 while send of channel 0"),
            std::string::npos)
      << message;
}

TEST(ScheduleCheck, WaitIsForTheRelease) {
  // Received at once, but released after what is sent only then.
  CheckedDevice first =
      device(0, {send(0, 0), wait(0, 0), send(1, 0), wait(1, 0)});
  CheckedDevice second = device(1, {recv(0, 0), release(0, 0), recv(1, 0)});
  EXPECT_EQ(checkSchedule({first, second}), "");
  second.steps = {recv(0, 0), recv(1, 0), release(0, 0)};
  std::string message = checkSchedule({first, second});
  EXPECT_NE(message.find("\ncpu:0: wait of channel 0, micro-batch 0 (x) waits "
                         "for cpu:1: release of channel 0"),
            std::string::npos)
      << message;
}

TEST(ScheduleCheck, RefusesUnmatchedReleases) {
  CheckedDevice first = device(0, {send(0, 0), wait(0, 0)});
  auto message = [&](std::vector<CheckedStep> steps) {
    return checkSchedule({first, device(1, steps)});
  };
  EXPECT_EQ(message({recv(0, 0), release(0, 0)}), "");
  EXPECT_NE(message({release(0, 0), recv(0, 0)}).find("before its recv"),
            std::string::npos);
  EXPECT_NE(message({recv(0, 0), release(1, 0)}).find("nobody receives it"),
            std::string::npos);
  EXPECT_NE(
      message({recv(0, 0), release(0, 0), release(0, 0)}).find("two steps"),
      std::string::npos);
  first.steps.push_back(release(0, 0));
  EXPECT_NE(message({recv(0, 0)}).find("cpu:1 that receives it"),
            std::string::npos);
}

TEST(ScheduleCheck, RefusesReadAfterRelease) {
  CheckedDevice first = device(0, {local(0, {}, {{0, 64, 1}}, "F0"),
                                   send(0, 0, {{0, 64, 1}}), wait(0, 0)});
  auto message = [&](std::vector<CheckedStep> steps) {
    return checkSchedule({first, device(1, steps)});
  };
  CheckedStep receive = recv(0, 0, {{0, 64, 1}});
  // Bytes written in between are the device's own.
  EXPECT_EQ(message({receive, local(0, {{0, 64, 1}}, {{0, 32, 2}}, "F1"),
                     release(0, 0), local(0, {{0, 32, 2}}, {}, "F2")}),
            "");
  std::string error =
      message({receive, local(0, {{0, 64, 1}}, {{0, 32, 2}}, "F1"),
               release(0, 0), local(0, {{32, 64, 1}}, {}, "F2")});
  EXPECT_NE(error.find("'F2', micro-batch 0 reads bytes 32 to 64 before"),
            std::string::npos)
      << error;
}

TEST(ScheduleCheck, RefusesWhatOnlyASecondStepWouldShow) {
  // Reads in the first half what the second half of the same program writes:
  // the first round stops it already; a value kept over rounds is stale.
  CheckedDevice stale = device(0, {local(0, {}, {{0, 64, 1}}, "F0"),
                                   local(0, {{0, 64, 1}}, {{0, 64, 2}}, "F1"),
                                   local(0, {{0, 64, 2}}, {}, "F2")});
  EXPECT_EQ(checkSchedule({stale}), "");
  stale.steps.erase(stale.steps.begin());
  EXPECT_NE(checkSchedule({stale}), "");
}

TEST(ScheduleCheck, RefusesRangeOutsideArena) {
  EXPECT_NE(checkSchedule({device(0, {local(0, {}, {{192, 320, 1}}, "F0")})})
                .find("outside the arena"),
            std::string::npos);
  EXPECT_NE(checkSchedule({device(0, {local(0, {}, {{-64, 0, 1}}, "F0")})})
                .find("outside the arena"),
            std::string::npos);
}

} // namespace
