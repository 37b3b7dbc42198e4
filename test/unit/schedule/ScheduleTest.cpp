//===- ScheduleTest.cpp - Programs that finish, in the expected order -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Schedule.h"

#include "runtime/abi/ScheduleCheck.h"

#include <gtest/gtest.h>
#include <random>

using namespace partita::pipeline;
using Kind = ScheduleStep::Kind;

namespace {

ScheduleProblem chain(int stages, int microBatches, int devices) {
  ScheduleProblem problem;
  problem.devices = devices;
  problem.microBatches = microBatches;
  for (int s = 0; s < stages; ++s) {
    problem.stages.push_back({s % devices, 100});
    ScheduleValue value;
    value.producer = s - 1;
    value.input = s == 0 ? 0 : -1;
    value.consumers = {s};
    problem.values.push_back(value);
  }
  ScheduleValue output;
  output.producer = stages - 1;
  output.outputs = {0};
  problem.values.push_back(output);
  return problem;
}

std::string show(const ScheduleStep &step) {
  static const char *names[] = {"run", "send", "recv",   "wait",
                                "in",  "out",  "release"};
  std::string text = names[int(step.kind)];
  if (step.kind == Kind::run)
    text += std::to_string(step.stage);
  return text + "." + std::to_string(step.microBatch);
}

std::string show(const std::vector<ScheduleStep> &program) {
  std::string text;
  for (const ScheduleStep &step : program)
    text += (text.empty() ? "" : " ") + show(step);
  return text;
}

/// The proof that compiler and runtime make too, without buffers.
std::string check(const Schedule &schedule, int present) {
  std::vector<partita::abi::CheckedDevice> devices;
  for (const std::vector<ScheduleStep> &program : schedule.programs) {
    partita::abi::CheckedDevice &device = devices.emplace_back();
    for (const ScheduleStep &step : program) {
      if (step.microBatch >= present)
        continue;
      partita::abi::CheckedStep entry;
      using CheckedKind = partita::abi::CheckedStep::Kind;
      entry.kind = step.kind == Kind::send      ? CheckedKind::send
                   : step.kind == Kind::recv    ? CheckedKind::recv
                   : step.kind == Kind::wait    ? CheckedKind::wait
                   : step.kind == Kind::release ? CheckedKind::release
                                                : CheckedKind::local;
      entry.channel = step.channel;
      entry.micro_batch = step.microBatch;
      device.steps.push_back(entry);
    }
  }
  return partita::abi::checkSchedule(devices);
}

TEST(Schedule, TwoStagesFillAndDrain) {
  Schedule schedule = buildSchedule(chain(2, 3, 2), FillDrain());
  EXPECT_EQ(show(schedule.programs[0]),
            "in.0 run0.0 send.0 in.1 run0.1 send.1 wait.0 in.2 run0.2 send.2 "
            "wait.1 wait.2");
  EXPECT_EQ(show(schedule.programs[1]),
            "recv.0 run1.0 release.0 out.0 recv.1 run1.1 release.1 out.1 "
            "recv.2 run1.2 release.2 out.2");
}

TEST(Schedule, CopiesWhatWouldHoldUpItsSender) {
  // The last stage reads what the first one makes, two stages later: borrowed
  // until then, it would keep both buffers of the first.
  ScheduleProblem problem = chain(3, 16, 3);
  ScheduleValue skip;
  skip.producer = 0;
  skip.consumers = {2};
  skip.readNs = {100};
  problem.values.push_back(skip);
  Schedule schedule = buildSchedule(problem, FillDrain());
  EXPECT_FALSE(schedule.borrowed.back());
  EXPECT_TRUE(schedule.borrowed[1]);
  EXPECT_NEAR(schedule.stepNs, 1800, 1e-6);
  // With a single micro-batch nothing waits.
  problem.microBatches = 1;
  EXPECT_TRUE(buildSchedule(problem, FillDrain()).borrowed.back());
}

TEST(Schedule, ReleasesAfterTheLastReader) {
  ScheduleProblem problem = chain(3, 1, 1);
  problem.devices = 2;
  problem.stages[1].device = problem.stages[2].device = 1;
  problem.values[1].consumers = {1, 2};
  Schedule schedule = buildSchedule(problem, FillDrain());
  EXPECT_EQ(show(schedule.programs[1]), "recv.0 run1.0 run2.0 release.0 out.0");
}

TEST(Schedule, BubbleOfTheTable) {
  // p devices, m micro-batches: (p - 1) / (m + p - 1).
  EXPECT_NEAR(buildSchedule(chain(4, 16, 4), FillDrain()).bubble, 3. / 19,
              1e-9);
  EXPECT_NEAR(buildSchedule(chain(2, 8, 2), FillDrain()).bubble, 1. / 9, 1e-9);
  EXPECT_NEAR(buildSchedule(chain(8, 32, 8), FillDrain()).bubble, 7. / 39,
              1e-9);
  EXPECT_NEAR(buildSchedule(chain(4, 8, 4), Sharded()).bubble, .75, 1e-9);
  EXPECT_NEAR(buildSchedule(chain(4, 16, 4), FillDrain()).stepNs, 1900, 1e-6);
}

TEST(Schedule, FewerMicroBatchesThanStages) {
  Schedule schedule = buildSchedule(chain(8, 2, 8), FillDrain());
  EXPECT_EQ(check(schedule, 2), "");
  EXPECT_NEAR(schedule.stepNs, 900, 1e-6);
}

TEST(Schedule, OneDeviceNeedsNoTransfers) {
  Schedule schedule = buildSchedule(chain(3, 2, 1), FillDrain());
  EXPECT_EQ(show(schedule.programs[0]),
            "in.0 run0.0 run1.0 run2.0 out.0 in.1 run0.1 run1.1 run2.1 out.1");
  EXPECT_TRUE(schedule.channels.empty());
}

TEST(Schedule, ShardedPassesTokens) {
  Schedule schedule = buildSchedule(chain(2, 2, 2), Sharded());
  EXPECT_EQ(show(schedule.programs[0]),
            "in.0 run0.0 send.0 recv.1 in.1 run0.1 send.1 wait.0 wait.1");
  ASSERT_EQ(schedule.channels.size(), 2u);
  EXPECT_EQ(schedule.channels[1].value, -1);
}

TEST(Schedule, RandomGraphsFinish) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    ScheduleProblem problem;
    problem.devices = 1 + random() % 4;
    problem.microBatches = 1 + random() % 6;
    int stages = 1 + random() % 7;
    for (int s = 0; s < stages; ++s) {
      problem.stages.push_back(
          {int(random() % problem.devices), 1. + random() % 50});
      ScheduleValue value;
      value.producer = s;
      value.transferNs = random() % 20;
      value.borrowNs = random() % 10;
      for (int consumer = s + 1; consumer < stages; ++consumer)
        if (random() % 2)
          value.consumers.push_back(consumer);
      for (size_t i = 0; i < value.consumers.size(); ++i)
        value.readNs.push_back(random() % 50);
      if (value.consumers.empty())
        value.outputs = {0};
      problem.values.push_back(value);
    }
    FillDrain fillDrain;
    Sharded sharded;
    for (const UnitOrder *order : {static_cast<const UnitOrder *>(&fillDrain),
                                   static_cast<const UnitOrder *>(&sharded)}) {
      Schedule schedule = buildSchedule(problem, *order);
      for (int present = 1; present <= problem.microBatches; ++present)
        EXPECT_EQ(check(schedule, present), "");
      int runs = 0;
      for (const auto &program : schedule.programs)
        for (const ScheduleStep &step : program)
          runs += step.kind == Kind::run;
      EXPECT_EQ(runs, stages * problem.microBatches);
      EXPECT_GE(schedule.bubble, -1e-9);
    }
  }
}

} // namespace
