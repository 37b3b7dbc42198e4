//===- ScheduleTest.cpp - Programs that finish, in the expected order -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Schedule.h"

#include "compiler/schedule/Registry.h"
#include "compiler/schedule/Timing.h"
#include "compiler/schedule/TrainingChain.h"

#include "runtime/abi/ScheduleCheck.h"
#include "test/unit/schedule/TrainingProblem.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace partita::schedule;
using Kind = ScheduleAction::Kind;

namespace {

Schedule buildSchedule(const ScheduleProblem &problem,
                       const ScheduleKind &kind) {
  return buildSchedule(problem, kind.order(problem));
}

ScheduleProblem chain(int stages, int microBatches, int devices) {
  ScheduleProblem problem;
  problem.devices = devices;
  problem.microBatches = microBatches;
  for (int s = 0; s < stages; ++s) {
    problem.stages.push_back({s % devices, 100, Phase::forward, s});
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

std::string show(const std::vector<ScheduleAction> &program) {
  std::string text;
  for (const ScheduleAction &action : program)
    text += (text.empty() ? "" : " ") + std::string(getInfo(action.kind).name) +
            (action.kind == Kind::run ? std::to_string(action.stage) : "") +
            "." + std::to_string(action.microBatch);
  return text;
}

std::string show(const std::vector<ScheduledUnit> &units) {
  std::string text;
  for (const ScheduledUnit &unit : units)
    text += (text.empty() ? "" : " ") + std::to_string(unit.stage) + "." +
            std::to_string(unit.microBatch);
  return text;
}

/// The proof that compiler and runtime make too, without buffers.
std::string check(const Schedule &schedule, int present) {
  std::vector<partita::abi::CheckedProgram> programs;
  for (const std::vector<ScheduleAction> &program : schedule.programs) {
    partita::abi::CheckedProgram &checked = programs.emplace_back();
    checked.units.resize(1);
    for (const ScheduleAction &action : program)
      if (action.microBatch < present)
        checked.actions.push_back({action.kind, action.microBatch,
                                   action.channel >= 0 ? action.channel : 0,
                                   -1});
  }
  return partita::abi::checkSchedule(programs);
}

TEST(Schedule, TwoStagesFillAndDrain) {
  Schedule schedule = buildSchedule(chain(2, 3, 2), kFillDrain);
  EXPECT_EQ(show(schedule.programs[0]),
            "load_input.0 run0.0 send.0 load_input.1 run0.1 send.1 wait.0 "
            "load_input.2 run0.2 send.2 wait.1 wait.2");
  EXPECT_EQ(show(schedule.programs[1]),
            "recv.0 run1.0 release.0 store_output.0 recv.1 run1.1 release.1 "
            "store_output.1 recv.2 run1.2 release.2 store_output.2");
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
  Schedule schedule = buildSchedule(problem, kFillDrain);
  EXPECT_FALSE(schedule.transfers.borrowed.back());
  EXPECT_TRUE(schedule.transfers.borrowed[1]);
  EXPECT_NEAR(schedule.stepNs, 1800, 1e-6);
  // With a single micro-batch nothing waits.
  problem.microBatches = 1;
  EXPECT_TRUE(buildSchedule(problem, kFillDrain).transfers.borrowed.back());
}

/// What an attention mask is: the first stage makes it, all others read it.
ScheduleProblem chainWithMask(int stages, int microBatches) {
  ScheduleProblem problem = chain(stages, microBatches, stages);
  ScheduleValue mask;
  mask.producer = 0;
  for (int s = 1; s < stages; ++s)
    mask.consumers.push_back(s);
  problem.values.push_back(mask);
  return problem;
}

TEST(Schedule, MoreBuffersForWhatIsReadManyStagesLater) {
  // With two buffers, the first stage would wait for the last one to begin a
  // micro-batch before it began the next but one.
  Schedule schedule = buildSchedule(chainWithMask(8, 64), kFillDrain);
  EXPECT_NEAR(schedule.stepNs, 7100, 1e-6) << "as without the mask";
  EXPECT_EQ(schedule.transfers.buffers.back(), 7) << "one for each stage on";
  EXPECT_EQ(schedule.transfers.buffers[1], kSendBuffers);
  for (int present : {1, 5, 64})
    EXPECT_EQ(check(schedule, present), "");
  // Two micro-batches never need more than two.
  schedule = buildSchedule(chainWithMask(4, 2), kFillDrain);
  EXPECT_EQ(schedule.transfers.buffers.back(), kSendBuffers);
}

TEST(Schedule, ReleasesAfterTheLastReader) {
  ScheduleProblem problem = chain(3, 1, 1);
  problem.devices = 2;
  problem.stages[1].device = problem.stages[2].device = 1;
  problem.values[1].consumers = {1, 2};
  Schedule schedule = buildSchedule(problem, kFillDrain);
  EXPECT_EQ(show(schedule.programs[1]),
            "recv.0 run1.0 run2.0 release.0 store_output.0");
}

TEST(Schedule, BubbleOfTheTable) {
  // p devices, m micro-batches: (p - 1) / (m + p - 1).
  EXPECT_NEAR(buildSchedule(chain(4, 16, 4), kFillDrain).bubble, 3. / 19, 1e-9);
  EXPECT_NEAR(buildSchedule(chain(2, 8, 2), kFillDrain).bubble, 1. / 9, 1e-9);
  EXPECT_NEAR(buildSchedule(chain(8, 32, 8), kFillDrain).bubble, 7. / 39, 1e-9);
  EXPECT_NEAR(buildSchedule(chain(4, 8, 4), kSequential).bubble, .75, 1e-9);
  EXPECT_NEAR(buildSchedule(chain(4, 16, 4), kFillDrain).stepNs, 1900, 1e-6);
}

TEST(Schedule, FewerMicroBatchesThanStages) {
  Schedule schedule = buildSchedule(chain(8, 2, 8), kFillDrain);
  EXPECT_EQ(check(schedule, 2), "");
  EXPECT_NEAR(schedule.stepNs, 900, 1e-6);
}

TEST(Schedule, OneDeviceNeedsNoTransfers) {
  Schedule schedule = buildSchedule(chain(3, 2, 1), kFillDrain);
  EXPECT_EQ(show(schedule.programs[0]),
            "load_input.0 run0.0 run1.0 run2.0 store_output.0 load_input.1 "
            "run0.1 run1.1 run2.1 store_output.1");
  EXPECT_TRUE(schedule.channels.empty());
}

TEST(Schedule, SequentialPassesTokens) {
  Schedule schedule = buildSchedule(chain(2, 2, 2), kSequential);
  EXPECT_EQ(show(schedule.programs[0]),
            "load_input.0 run0.0 send.0 recv.1 load_input.1 run0.1 send.1 "
            "wait.0 wait.1");
  ASSERT_EQ(schedule.channels.size(), 2u);
  EXPECT_EQ(schedule.channels[1].value, -1);
}

TEST(Registry, FindsSchedulesByName) {
  EXPECT_EQ(findSchedule(""), &kFillDrain);
  EXPECT_EQ(findSchedule("looped"), &kLooped);
  EXPECT_EQ(findSchedule("sharded"), nullptr);
  EXPECT_EQ(getScheduleKinds().size(), 8u);
}

TEST(FillDrain, ADeviceTakesTheLowerMicroBatchFirst) {
  // Devices 0 1 0: while device 1 computes, device 0 begins the next one.
  UnitOrders orders = kFillDrain.order(chain(3, 4, 2));
  EXPECT_EQ(show(orders.ofDevice[0]), "0.0 0.1 2.0 0.2 2.1 0.3 2.2 2.3");
  EXPECT_EQ(show(orders.ofDevice[1]), "1.0 1.1 1.2 1.3");
}

TEST(Sequential, AMicroBatchGoesThroughAllStages) {
  UnitOrders orders = kSequential.order(chain(3, 2, 2));
  EXPECT_EQ(show(orders.ofDevice[0]), "0.0 2.0 0.1 2.1");
  EXPECT_EQ(show(orders.token), "0.0 1.0 2.0 0.1 1.1 2.1");
}

TEST(Looped, EveryDeviceMakesTwoLaps) {
  ScheduleProblem problem = chain(8, 4, 4);
  UnitOrders orders = kLooped.order(problem);
  EXPECT_EQ(show(orders.ofDevice[0]), "0.0 0.1 0.2 0.3 4.0 4.1 4.2 4.3");
  EXPECT_EQ(show(orders.ofDevice[3]), "3.0 3.1 3.2 3.3 7.0 7.1 7.2 7.3");
  // The picture of Looped.cpp: 11 slots, of which each device works 8.
  Schedule schedule = buildSchedule(problem, kLooped);
  EXPECT_NEAR(schedule.stepNs, 1100, 1e-6);
  EXPECT_NEAR(schedule.bubble, 3. / 11, 1e-9);
  EXPECT_NEAR(buildSchedule(chain(4, 4, 4), kFillDrain).bubble, 3. / 7, 1e-9);
}

TEST(Looped, GroupsOfPOrMoreMicroBatches) {
  // Nine over four devices: five, then four.
  EXPECT_EQ(show(kLooped.order(chain(8, 9, 4)).ofDevice[0]),
            "0.0 0.1 0.2 0.3 0.4 4.0 4.1 4.2 4.3 4.4 "
            "0.5 0.6 0.7 0.8 4.5 4.6 4.7 4.8");
}

TEST(Looped, LapsOfAnyAssignment) {
  // Stages of a device that follow one another are in one lap.
  ScheduleProblem problem = chain(4, 2, 2);
  for (int s = 0; s < 4; ++s)
    problem.stages[s].device = s / 2;
  UnitOrders orders = kLooped.order(problem);
  EXPECT_EQ(show(orders.ofDevice[0]), "0.0 1.0 0.1 1.1");
  EXPECT_EQ(show(orders.ofDevice[1]), "2.0 3.0 2.1 3.1");
}

TEST(Looped, TimesOfAStep) {
  // In stages of two laps, p devices, m micro-batches. Micro-batches beyond a
  // group of p + 1 may wait for a buffer, by less than half a lap in all.
  for (int p : {2, 3, 4, 8})
    for (int m = 1; m <= 4 * p; ++m) {
      double slots = buildSchedule(chain(2 * p, m, p), kLooped).stepNs / 100;
      double least = m < p ? 2 * p + m - 1 : 2 * m + p - 1;
      bool isExact = m <= p || m % p <= m / p;
      EXPECT_LE(slots, least + (isExact ? 0 : p - 2)) << p << " " << m;
      EXPECT_GE(slots, least - 1e-6) << p << " " << m;
      EXPECT_LE(slots, 2 * (m + p - 1) + 1e-6)
          << "longer than fill_drain: " << p << " " << m;
    }
}

TEST(Looped, AValueOfTheFirstLapThatTheSecondReads) {
  // Borrowed until then, or with two buffers, it would stop its sender for
  // good.
  ScheduleProblem problem = chain(8, 4, 4);
  ScheduleValue skip;
  skip.producer = 0;
  skip.consumers = {7};
  problem.values.push_back(skip);
  Schedule schedule = buildSchedule(problem, kLooped);
  EXPECT_FALSE(schedule.transfers.borrowed.back());
  EXPECT_GT(schedule.transfers.buffers.back(), kSendBuffers);
  EXPECT_LE(schedule.transfers.buffers.back(), 4);
  EXPECT_NEAR(schedule.stepNs, 1100, 101);
  for (int present = 1; present <= 4; ++present)
    EXPECT_EQ(check(schedule, present), "");
}

TEST(Timing, ItsWorkGrowsWithTheUnits) {
  // A chain as that of GPT-2 in 64 stages, with a mask that all of them read:
  // each unit is looked at a few times, however many there are.
  for (const ScheduleKind *kind : getScheduleKinds())
    for (int microBatches : {8, 64, 512})
      for (int devices : {64, 32}) {
        ScheduleProblem problem = chainWithMask(64, microBatches);
        problem.devices = devices;
        for (int s = 0; s < 64; ++s)
          problem.stages[s].device = s % devices;
        Transfers transfers{
            std::vector<bool>(problem.values.size(), false),
            std::vector<int>(problem.values.size(), microBatches)};
        Timing timing = timeOrders(problem, kind->order(problem), transfers);
        EXPECT_GE(timing.looks, 64 * microBatches);
        EXPECT_LE(timing.looks, 3 * 64 * microBatches)
            << kind->name << " " << microBatches << " " << devices;
      }
}

TEST(Schedule, RandomGraphsFinish) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    ScheduleProblem problem;
    problem.devices = 1 + random() % 4;
    problem.microBatches = 1 + random() % 10;
    int stages = 1 + random() % 10;
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
    for (const ScheduleKind *kind : getScheduleKinds()) {
      Schedule schedule = buildSchedule(problem, *kind);
      for (int present = 1; present <= problem.microBatches; ++present)
        EXPECT_EQ(check(schedule, present), "");
      int runs = 0;
      for (const auto &program : schedule.programs)
        for (const ScheduleAction &action : program)
          runs += action.kind == Kind::run;
      EXPECT_EQ(runs, stages * problem.microBatches);
      EXPECT_GE(schedule.bubble, -1e-9);
      EXPECT_LT(schedule.stepNs, 1e6) << kind->name;
    }
  }
}

TEST(Training, OneForwardOneBackward) {
  const ScheduleProblem problem = training({3, 4});
  // Stages 0, 1, 2 forward; 3 and 4 are the backward of 1 and 0; then updates.
  const UnitOrders orders = kOneForwardOneBackward.order(problem);
  EXPECT_EQ(show(orders.ofDevice[0]), "0.0 0.1 0.2 4.0 0.3 4.1 4.2 4.3 7.3");
  EXPECT_EQ(show(orders.ofDevice[1]), "1.0 1.1 3.0 1.2 3.1 1.3 3.2 3.3 6.3");
  EXPECT_EQ(show(orders.ofDevice[2]), "2.0 2.1 2.2 2.3 5.3");
}

TEST(Training, GPipe) {
  const ScheduleProblem problem = training({3, 2});
  const UnitOrders orders = kGPipe.order(problem);
  EXPECT_EQ(show(orders.ofDevice[0]), "0.0 0.1 4.0 4.1 7.1");
  EXPECT_EQ(show(orders.ofDevice[2]), "2.0 2.1 5.1");
}

TEST(Training, AllSchedulesFinishWithTheKnownBubble) {
  for (const ScheduleKind *kind : getScheduleKinds())
    for (int stages : {1, 2, 3, 4, 8})
      for (int microBatches : {1, 2, 3, 8, 16}) {
        const ScheduleProblem problem = training({stages, microBatches});
        const Schedule schedule = buildSchedule(problem, *kind);
        EXPECT_EQ(check(schedule, microBatches), "") << kind->name;
        size_t runs = 0;
        for (const auto &program : schedule.programs)
          for (const ScheduleAction &action : program)
            runs += action.kind == Kind::run;
        EXPECT_EQ(runs, size_t((2 * stages - 1) * microBatches + stages))
            << kind->name;
        // (p - 1) / (m + p - 1) where every stage takes the same time. GPipe
        // sends forwards faster than the last stage takes them, which computes
        // its backward with each: with kSendBuffers its senders wait at times.
        const double bubble = (stages - 1.) / (microBatches + stages - 1.);
        if (kind == &kOneForwardOneBackward || kind == &kGPipe) {
          EXPECT_GE(schedule.bubble, bubble - 1e-9)
              << kind->name << " " << stages << " " << microBatches;
          EXPECT_LE(schedule.bubble, bubble + (kind == &kGPipe ? 0.05 : 1e-9))
              << kind->name << " " << stages << " " << microBatches;
        }
      }
}

/// Micro-batches whose forward is done and whose backward is not, at most.
int countHeld(const std::vector<ScheduledUnit> &units,
              const ScheduleProblem &problem) {
  int held = 0, most = 0;
  for (const ScheduledUnit &unit : units) {
    const Phase phase = problem.stages[unit.stage].phase;
    held += phase == Phase::forward ? 1 : phase == Phase::backward ? -1 : 0;
    most = std::max(most, held);
  }
  return most;
}

TEST(Training, MicroBatchesThatAreHeld) {
  const int stages = 4, microBatches = 16;
  const ScheduleProblem problem = training({stages, microBatches});
  const UnitOrders few = kOneForwardOneBackward.order(problem),
                   all = kGPipe.order(problem);
  for (int s = 0; s + 1 < stages; ++s) {
    EXPECT_EQ(countHeld(few.ofDevice[s], problem), stages - s);
    EXPECT_EQ(countHeld(all.ofDevice[s], problem), microBatches);
  }
}

TEST(Training, Interleaved) {
  const ScheduleProblem problem = training({4, 4, 2});
  const UnitOrders orders = kInterleaved.order(problem);
  EXPECT_EQ(name(orders.ofDevice[0], problem),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  EXPECT_EQ(name(orders.ofDevice[1], problem),
            "1F0 1F1 3F0 3F1 1F2 1B0 1F3 1B1 3F2 3F3 1B2 1B3");
  EXPECT_EQ(orders.remark, "");
}

TEST(Training, LoopedIsBreadthFirst) {
  const ScheduleProblem problem = training({4, 3, 2});
  const UnitOrders orders = kLooped.order(problem);
  EXPECT_EQ(name(orders.ofDevice[0], problem),
            "0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2");
  EXPECT_EQ(name(orders.ofDevice[1], problem),
            "1F0 1F1 1F2 3F0 3F1 3F2 1B0 1B1 1B2");
}

TEST(Training, InterleavedHalvesTheBubble) {
  for (int p : {2, 4, 8})
    for (int laps : {1, 2, 3})
      for (int rounds : {1, 2, 4}) {
        const int m = rounds * p;
        EXPECT_NEAR(
            buildSchedule(training({p * laps, m, laps}), kInterleaved).bubble,
            (p - 1.) / (laps * m + p - 1), 1e-9)
            << p << " " << laps << " " << m;
      }
}

/// Every micro-batch of every stage ascends on its device, in each phase.
void expectAscending(const UnitOrders &orders, const std::string &what) {
  std::map<int, int> last;
  for (const auto &units : orders.ofDevice)
    for (const ScheduledUnit &unit : units) {
      auto [it, isNew] = last.try_emplace(unit.stage, -1);
      EXPECT_LT(it->second, unit.microBatch) << what;
      it->second = unit.microBatch;
    }
}

TEST(Training, AnyPlacementAnyNumberOfMicroBatches) {
  for (const ScheduleKind *kind : getScheduleKinds())
    for (int p : {1, 2, 3, 4, 5, 8})
      for (int laps : {1, 2, 3})
        for (bool isV : {false, true})
          for (bool isSplit : {false, true})
            for (int m : {1, 2, 3, 5, 7, 8, 12, 17}) {
              const ScheduleProblem problem =
                  training({p * laps, m, laps, isV, isSplit});
              const std::string what =
                  std::string(kind->name) + " " + std::to_string(p) + " " +
                  std::to_string(laps) + " " + std::to_string(m);
              const UnitOrders orders = kind->order(problem);
              expectAscending(orders, what);
              size_t units = 0;
              for (const auto &of : orders.ofDevice)
                units += of.size();
              const size_t wanted = isSplit ? (3 * m + 1) * p * laps
                                            : (2 * p * laps - 1) * m + p * laps;
              EXPECT_EQ(units, wanted) << what;
              Transfers transfers{
                  std::vector<bool>(problem.values.size(), false),
                  std::vector<int>(problem.values.size(), m)};
              EXPECT_LT(timeOrders(problem, orders, transfers).stepNs, 1e9)
                  << what << " deadlocks";
            }
}

TEST(Training, WhatAPrologueMakesIsSentOnce) {
  ScheduleProblem problem = training({2, 3});
  problem.stages.insert(problem.stages.begin(), {0, 10, Phase::prologue, 0});
  for (ScheduleValue &value : problem.values) {
    ++value.producer;
    for (int &consumer : value.consumers)
      ++consumer;
  }
  const int table = static_cast<int>(problem.values.size());
  ScheduleValue &made = problem.values.emplace_back();
  made.producer = 0;
  made.consumers = {2}; // the second forward, on the other device
  made.readNs = {0};
  made.transferNs = 5;
  for (const ScheduleKind *kind : getScheduleKinds()) {
    const Schedule schedule = buildSchedule(problem, *kind);
    EXPECT_EQ(check(schedule, problem.microBatches), "") << kind->name;
    std::string actions;
    for (const ScheduleAction &action : schedule.programs[1])
      if (action.value == table)
        actions += show({action});
    // It stays there for all micro-batches, and holds up nobody.
    EXPECT_EQ(actions, "recv.0") << kind->name;
  }
}

TEST(Training, SaysWhatItFallsBackTo) {
  const ScheduleProblem problem = training({8, 4, 2, /*isV=*/true});
  EXPECT_EQ(kOneForwardOneBackward.order(problem).remark,
            "1f1b needs as many stages on each device, placed in turn (0 1 2 0 "
            "1 2): devices take micro-batches as they come, as by fill_drain");
  EXPECT_EQ(kGPipe.order(problem).remark, "");
}

TEST(ZeroBubble, H1) {
  const ScheduleProblem problem = training({3, 4, 1, false, true});
  const UnitOrders orders = kZeroBubbleH1.order(problem);
  EXPECT_EQ(name(orders.ofDevice[0], problem),
            "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3");
  EXPECT_EQ(name(orders.ofDevice[1], problem),
            "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3");
  EXPECT_EQ(name(orders.ofDevice[2], problem),
            "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3");
}

TEST(ZeroBubble, V) {
  const ScheduleProblem problem = training({4, 4, 2, true, true});
  const UnitOrders orders = kZeroBubbleV.order(problem);
  EXPECT_EQ(orders.remark, "");
  EXPECT_EQ(name(orders.ofDevice[0], problem),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 "
            "0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3");
  EXPECT_EQ(name(orders.ofDevice[1], problem),
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 "
            "2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3");
}

TEST(ZeroBubble, BubblesOfThePaper) {
  for (auto [p, m] :
       {std::pair(2, 8), {4, 8}, {4, 16}, {4, 32}, {8, 32}, {8, 64}}) {
    EXPECT_NEAR(
        buildSchedule(training({p, m, 1, false, true}), kZeroBubbleH1).bubble,
        (p - 1.) / (3 * m + p - 1), 1e-9)
        << p << " " << m;
    EXPECT_NEAR(
        buildSchedule(training({2 * p, m, 2, true, true}), kZeroBubbleV).bubble,
        (p - 1.) / (6 * m + p - 1), 1e-9)
        << p << " " << m;
  }
}

/// The most micro-batches of a device's stages whose forward is done and whose
/// last gradients are not.
int countStash(const std::vector<ScheduledUnit> &units,
               const ScheduleProblem &problem) {
  int held = 0, most = 0;
  for (const ScheduledUnit &unit : units) {
    const Phase phase = problem.stages[unit.stage].phase;
    held += phase == Phase::forward            ? 1
            : phase == Phase::weight_gradients ? -1
                                               : 0;
    most = std::max(most, held);
  }
  return most;
}

TEST(ZeroBubble, MicroBatchesThatAreHeld) {
  for (int p : {2, 4, 8})
    for (int m : {1, 2, 8, 32}) {
      const ScheduleProblem h1 = training({p, m, 1, false, true}),
                            v = training({2 * p, m, 2, true, true});
      const UnitOrders straight = kZeroBubbleH1.order(h1),
                       folded = kZeroBubbleV.order(v);
      for (int d = 0; d < p; ++d) {
        EXPECT_EQ(countStash(straight.ofDevice[d], h1), std::min(m, p));
        const int halves = countStash(folded.ofDevice[d], v);
        EXPECT_LE(halves, std::min(2 * m, 2 * p));
        if (m >= 2 * p - 1)
          EXPECT_EQ(halves, 2 * p);
      }
    }
}

TEST(Training, MicroBatchesThatStagesHold) {
  auto held = [](const ScheduleKind &kind, TrainingShape shape) {
    const ScheduleProblem problem = training(shape);
    return countHeld(problem, kind.order(problem));
  };
  for (int p : {2, 4, 8})
    for (int m : {1, 2, 3, 8, 32}) {
      const std::string what = std::to_string(p) + " " + std::to_string(m);
      const HeldMicroBatches gpipe = held(kGPipe, {p, m}),
                             one = held(kOneForwardOneBackward, {p, m}),
                             h1 = held(kZeroBubbleH1, {p, m, 1, false, true}),
                             v = held(kZeroBubbleV, {2 * p, m, 2, true, true});
      for (int s = 0; s < p; ++s) {
        // The last stage computes its gradients at once.
        EXPECT_EQ(gpipe.untilWeights[s], s + 1 < p ? m : 1) << what;
        EXPECT_EQ(one.untilWeights[s], std::min(m, p - s)) << what;
        EXPECT_EQ(h1.untilWeights[s], std::min(m, p)) << what;
        EXPECT_EQ(h1.untilValues[s], std::min(m, p - s)) << what;
        EXPECT_LE(h1.betweenGradients[s], std::min(m, s + 1)) << what;
        // Two halves of a device, which need not be fullest at the same time.
        EXPECT_GE(v.untilWeights[s] + v.untilWeights[2 * p - 1 - s],
                  std::min(m + 1, 2 * p))
            << what;
        EXPECT_LE(v.untilWeights[s], std::min(m, 2 * p)) << what;
      }
    }
}

TEST(Training, BubblesOfTheTable) {
  struct Row {
    int p, m;
    double atomic, h1, v;
  };
  for (const Row &row : {Row{2, 8, .111, .040, .0204},
                         {4, 8, .273, .111, .0588},
                         {4, 16, .158, .059, .0303},
                         {8, 32, .179, .068, .0352}}) {
    const TrainingShape split{row.p, row.m, 1, false, true},
        folded{2 * row.p, row.m, 2, true, true};
    EXPECT_NEAR(
        buildSchedule(training({row.p, row.m}), kOneForwardOneBackward).bubble,
        row.atomic, 5e-4);
    EXPECT_NEAR(buildSchedule(training(split), kZeroBubbleH1).bubble, row.h1,
                5e-4);
    EXPECT_NEAR(buildSchedule(training(folded), kZeroBubbleV).bubble, row.v,
                5e-5);
  }
  // A third of the work of a micro-batch is left when the stage before goes on.
  for (auto [p, m, early] :
       {std::tuple(2, 8, .077), {4, 8, .200}, {4, 16, .111}, {8, 32, .127}}) {
    ScheduleProblem problem = training({p, m});
    for (ScheduleStage &stage : problem.stages)
      if (stage.phase == Phase::backward ||
          (stage.phase == Phase::forward && stage.number == p - 1)) {
        stage.ns += 100;
        stage.lateNs = 100;
      }
    EXPECT_NEAR(buildSchedule(problem, kOneForwardOneBackward).bubble, early,
                5e-4)
        << p << " " << m;
  }
  // ZB-V once more, with twice as many micro-batches.
  EXPECT_NEAR(
      buildSchedule(training({8, 32, 2, true, true}), kZeroBubbleV).bubble,
      .0154, 5e-5);
  EXPECT_NEAR(
      buildSchedule(training({16, 64, 2, true, true}), kZeroBubbleV).bubble,
      .0179, 5e-5);
}

TEST(ZeroBubble, AVThatIsNone) {
  const ScheduleProblem problem = training({4, 4, 1, false, true});
  const UnitOrders orders = kZeroBubbleV.order(problem);
  EXPECT_EQ(orders.remark,
            "zb_v needs two stages on each device, placed there and back (0 1 "
            "2 2 1 0): units are ordered as by zb_h1");
  EXPECT_EQ(orders.ofDevice, kZeroBubbleH1.order(problem).ofDevice);
  // Stages that go there and back are no laps.
  EXPECT_NE(kZeroBubbleH1.order(training({4, 4, 2, true, true})).remark, "");
}

TEST(Registry, PlacesStages) {
  std::string laps, v;
  for (int s = 0; s < 8; ++s) {
    laps += std::to_string(placeStage(Placement::lap, s, 3));
    v += std::to_string(placeStage(Placement::v, s, 3));
  }
  EXPECT_EQ(laps, "01201201");
  EXPECT_EQ(v, "01221001");
}

} // namespace
