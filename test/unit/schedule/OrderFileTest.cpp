//===- OrderFileTest.cpp - Orders of a file -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/OrderFile.h"
#include "test/unit/schedule/TrainingProblem.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <tuple>

using namespace partita::schedule;

namespace {

OrderFile parsed(std::string_view text) {
  OrderFile file;
  std::optional<OrderError> error = parseOrders(text, file);
  EXPECT_FALSE(error) << error->text;
  return file;
}

/// "2:5: what is wrong"; empty: nothing.
std::string errorOf(std::string_view text) {
  OrderFile file;
  std::optional<OrderError> error = parseOrders(text, file);
  return error ? std::to_string(error->line) + ":" +
                     std::to_string(error->column) + ": " + error->text
               : "";
}

std::string show(const std::vector<OrderAction> &actions) {
  std::string text;
  for (const OrderAction &action : actions)
    text += (text.empty() ? "" : " ") + action.getName();
  return text;
}

std::string misfitOf(std::string_view text, const ScheduleProblem &problem,
                     int stages) {
  UnitOrders orders;
  return orderByFile(problem, parsed(text), stages, orders).value_or("");
}

/// A schedule's orders as a file.
std::string write(const UnitOrders &orders, const ScheduleProblem &problem) {
  std::string text;
  for (const std::vector<ScheduledUnit> &units : orders.ofDevice) {
    std::string row = name(units, problem);
    std::replace(row.begin(), row.end(), ' ', ',');
    text += row + "\n";
  }
  return text;
}

// Tables of torch.distributed.pipelining 2.15 for two devices and four
// micro-batches, as it writes them.
constexpr std::string_view kTorchZBV =
    "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,3F3,"
    "3I3,3W3,0I2,0W2,0I3,0W3\r\n"
    ",1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,"
    "1I2,2I3,1I3,1W2,2W3,1W3\r\n";
constexpr std::string_view kTorchInterleaved =
    "0F0,0F1,2F0,2F1,,,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,,2B2,,2B3,,0B2,,0B3\r\n"
    ",1F0,1F1,,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,,1B2,,1B3\r\n";
constexpr std::string_view kTorchInterleavedZeroBubble =
    "0F0,0F1,2F0,,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,"
    "2I3,2W3,0I2,0W2,0I3,0W3\r\n"
    ",1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1I0,3W1,1F3,1I1,1W0,3F2,3I2,1W1,3F3,3I3,"
    "3W2,1I2,3W3,1I3,1W2,1W3\r\n";

TEST(OrderFile, ReadsRows) {
  const OrderFile file = parsed("0F0,0F1,,0B0, 0B1\n1F0,1B0,\"1F1\",1B1\n\n");
  ASSERT_EQ(file.ofRank.size(), 2u);
  EXPECT_EQ(show(file.ofRank[0]), "0F0 0F1 0B0 0B1");
  EXPECT_EQ(file.ofRank[0][2].describe(), "0B0 (rank 0, cell 4)");
  EXPECT_EQ(file.rankOf, (std::vector<int>{0, 1}));
  EXPECT_EQ(file.microBatches, 2);
  EXPECT_TRUE(file.hasBackward);
  EXPECT_FALSE(file.isSplit);
}

TEST(OrderFile, ReadsARankWithoutActions) {
  const OrderFile file = parsed("\n0F0\n");
  ASSERT_EQ(file.ofRank.size(), 1u) << "a blank line before the first row";
  EXPECT_EQ(parsed("0F0\n\n1F0\n").ofRank.size(), 3u);
}

TEST(OrderFile, ReadsWhatTorchPrints) {
  const OrderFile file = parsed("         Rank 0  Rank 1\n"
                                "Step 0   0F0            \n"
                                "Step 1   0F1     1F0    \n"
                                "Step 2           1B0     <-- ERROR HERE\n"
                                "Step 3   0B0     1F1    \n"
                                "Step 4   0B1     1B1    \n");
  ASSERT_EQ(file.ofRank.size(), 2u);
  EXPECT_EQ(show(file.ofRank[0]), "0F0 0F1 0B0 0B1");
  EXPECT_EQ(show(file.ofRank[1]), "1F0 1B0 1F1 1B1");
}

TEST(OrderFile, ReadsOverlapsAndLeavesOutWhatFollows) {
  const OrderFile file = parsed(
      "0UNSHARD,0F0,(0F1;0B0)OVERLAP_F_B,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n");
  EXPECT_EQ(show(file.ofRank[0]), "0F0 0F1 0B0 0B1");
  EXPECT_EQ(file.leftOut, (std::vector<std::string>{"UNSHARD", "REDUCE_GRAD",
                                                    "WAIT_REDUCE_GRAD"}));
}

TEST(OrderFile, SaysWhatIsWrong) {
  EXPECT_EQ(errorOf(""), "1:1: orders nothing: a row for each device, as in "
                         "0F0,0F1,0B0,0B1");
  EXPECT_EQ(errorOf("0F0,0X1\n"),
            "1:5: '0X1' is no action: write a stage, F, B, I or W, and a "
            "micro-batch, as in 2F0");
  EXPECT_EQ(errorOf("0F\n").substr(0, 20), "1:1: '0F' is no acti");
  EXPECT_EQ(errorOf("F0\n").substr(0, 20), "1:1: 'F0' is no acti");
  EXPECT_EQ(errorOf("0F99999999999999999999\n").substr(0, 8), "1:1: '0F");
  EXPECT_EQ(errorOf("0F70000\n"), "1:1: '0F70000': stages are 0 to 4095, and "
                                  "micro-batches 0 to 65535");
  EXPECT_EQ(errorOf("(0F0;0B0)\n"),
            "1:1: '(0F0;0B0)' is no list of actions: write "
            "(0F3;1B2)OVERLAP_F_B");
  EXPECT_EQ(errorOf("0F0,0SEND_F0\n"),
            "1:5: '0SEND_F0' is a transfer, which follows from the order: "
            "leave transfers out (PyTorch writes such a file with "
            "format=\"compute_only\")");
}

TEST(OrderFile, BlankLinesAreNoWork) {
  const std::string many(1 << 20, '\n');
  EXPECT_EQ(parsed(many + "0F0\n" + many).ofRank.size(), 1u);
  EXPECT_EQ(errorOf("0F0\n" + many + "1F0\n"),
            "1:1: orders 1048578 devices; at most 4096 are");
}

TEST(OrderFile, SaysWhichUnitsAreDoubledOrForgotten) {
  EXPECT_EQ(errorOf("0F0,0F1,0B0\n1F0,,1F0\n"),
            "2:6: 1F0 (rank 1, cell 3) is there already: 1F0 (rank 1, cell 1)");
  EXPECT_EQ(errorOf("0F0,0I0,0B0\n"),
            "1:9: 0B0 (rank 0, cell 3) computes what is computed already: 0I0 "
            "(rank 0, cell 2); B is I and W in one");
  EXPECT_EQ(errorOf("0F0,1F0\n0F1,1F1\n"),
            "2:1: 0F1 (rank 1, cell 1): stage 0 is on rank 0 already");
  EXPECT_EQ(
      errorOf("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"),
      "2:1: 1B1 is in no cell of rank 1: every stage has all micro-batches "
      "up to 1");
  EXPECT_EQ(errorOf("0F0,0I0\n"), "1:1: 0W0 is in no cell of rank 0: every "
                                  "stage has all micro-batches up to 0");
  EXPECT_EQ(errorOf("0F0\n2F0\n"),
            "1:1: has no action of stage 1, and some of stage 2");
}

TEST(OrderFile, SaysWhereMicroBatchesDescend) {
  EXPECT_EQ(parsed("0F0,0F1,0B1,0B0\n").descent,
            "0B0 (rank 0, cell 4) comes after 0B1 (rank 0, cell 3)");
  EXPECT_EQ(parsed("0F2,0F0,0F1\n").descent,
            "0F0 (rank 0, cell 2) comes after 0F2 (rank 0, cell 1)");
  // Each kind by itself.
  EXPECT_EQ(parsed("0F0,0F1,0I0,0I1,0W0,0W1\n").descent, "");
}

/// Units, sends and their waits as they stand in a program.
std::string showProgram(const std::vector<ScheduleAction> &program,
                        const ScheduleProblem &problem) {
  std::string text;
  for (const ScheduleAction &action : program) {
    if (action.kind == ScheduleAction::Kind::run)
      text += " " + std::to_string(problem.stages[action.stage].number) +
              getLetter(problem.stages[action.stage].phase);
    else if (action.kind == ScheduleAction::Kind::send)
      text += " send";
    else if (action.kind == ScheduleAction::Kind::wait)
      text += " wait";
    else
      continue;
    text += std::to_string(action.microBatch);
  }
  return text;
}

// A sender waits for the buffer that it sent two units ago, whatever the
// micro-batches are.
TEST(OrderFile, BuffersFollowTheOrder) {
  const ScheduleProblem problem = training({2, 4});
  UnitOrders orders;
  ASSERT_FALSE(orderByFile(problem,
                           parsed("0F3,0F1,0F2,0F0,0B0,0B2,0B1,0B3\n"
                                  "1F3,1F1,1F2,1F0,1B0,1B2,1B1,1B3\n"),
                           2, orders));
  EXPECT_EQ(orders.remark.substr(0, 51),
            "does not take all micro-batches in ascending order:");
  const Schedule schedule = buildSchedule(problem, orders);
  EXPECT_EQ(showProgram(schedule.programs[0], problem).substr(0, 60),
            " 0F3 send3 0F1 send1 wait3 0F2 send2 wait1 0F0 send0 0B0 0B2");
}

TEST(OrderFile, TorchHasTheOrderOfOurs) {
  for (auto [text, kind, shape] :
       {std::tuple(kTorchZBV, &kZeroBubbleV,
                   TrainingShape{4, 4, 2, /*isV=*/true, /*isSplit=*/true}),
        std::tuple(kTorchInterleaved, &kInterleaved, TrainingShape{4, 4, 2})}) {
    const ScheduleProblem problem = training(shape);
    UnitOrders orders;
    EXPECT_EQ(
        orderByFile(problem, parsed(text), shape.stages, orders).value_or(""),
        "");
    EXPECT_EQ(orders.ofDevice, kind->order(problem).ofDevice) << kind->name;
  }
}

TEST(OrderFile, AnotherOrderThanOurs) {
  const ScheduleProblem problem = training({4, 4, 2, false, true});
  UnitOrders orders;
  EXPECT_FALSE(
      orderByFile(problem, parsed(kTorchInterleavedZeroBubble), 4, orders));
  EXPECT_EQ(name(orders.ofDevice[1], problem),
            "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 "
            "3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3");
  EXPECT_GT(buildSchedule(problem, orders).stepNs, 0);
}

TEST(OrderFile, EverySchedulesOrdersComeBack) {
  for (const ScheduleKind *kind : getScheduleKinds())
    for (bool isSplit : {false, true})
      for (int laps : {1, 2})
        for (int p : {1, 2, 4})
          for (int m : {1, 3, 8}) {
            const ScheduleProblem problem =
                training({p * laps, m, laps, laps == 2, isSplit});
            const UnitOrders wanted = kind->order(problem);
            // The last stage has no backward of its own if it is not split.
            std::string text = write(wanted, problem);
            if (!isSplit) {
              const int last = p * laps - 1,
                        device = problem.stages[last].device;
              size_t row = 0;
              for (int d = 0; d < device; ++d)
                row = text.find('\n', row) + 1;
              std::string all;
              for (int i = 0; i < m; ++i)
                all += "," + std::to_string(last) + "B" + std::to_string(i);
              text.insert(text.find('\n', row), all);
            }
            UnitOrders orders;
            EXPECT_EQ(orderByFile(problem, parsed(text), p * laps, orders)
                          .value_or(""),
                      "")
                << text;
            for (int d = 0; d < p; ++d)
              EXPECT_EQ(name(orders.ofDevice[d], problem),
                        name(wanted.ofDevice[d], problem))
                  << kind->name;
          }
}

TEST(OrderFile, SaysWhatDoesNotFit) {
  const ScheduleProblem problem = training({2, 2});
  EXPECT_EQ(misfitOf("0F0,0B0\n1F0,1B0\n", problem, 2),
            "orders 1 micro-batch, and a step has 2 (--micro-batches)");
  EXPECT_EQ(misfitOf("0F0,0F1,0B0,0B1\n", problem, 2),
            "orders 1 stage, and the model has 2");
  EXPECT_EQ(misfitOf("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2F1,2B0,2B1\n",
                     problem, 2),
            "orders 3 stages, and the model has 2");
  EXPECT_EQ(misfitOf("\n0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n", problem, 2), "");
  EXPECT_EQ(misfitOf("1F0,1F1,1B0,1B1\n0F0,0F1,0B0,0B1\n", problem, 2),
            "1F0 (rank 0, cell 1): stage 1 is on device 1");
  EXPECT_EQ(misfitOf("0F0,0F1\n1F0,1F1\n", problem, 2),
            "orders no gradients, and the model is trained: add B, or I and W, "
            "of each micro-batch");
}

TEST(OrderFile, TheShortestDeadlock) {
  const ScheduleProblem problem = training({3, 2, 1, false, /*isSplit=*/true});
  // The second device wants gradients of what it has not handed on.
  EXPECT_EQ(misfitOf("0F0,0F1,0I0,0W0,0I1,0W1\n"
                     "1F0,1I0,1F1,1I1,1W0,1W1\n"
                     "2F0,2F1,2I0,2I1,2W0,2W1\n",
                     problem, 3),
            "deadlocks: these actions wait for one another: "
            "1I0 (rank 1, cell 2) waits for 2I0 (rank 2, cell 3), which "
            "comes after 2F1 (rank 2, cell 2); "
            "2F1 (rank 2, cell 2) waits for 1F1 (rank 1, cell 3), which "
            "comes after 1I0 (rank 1, cell 2)");
  // A device waits for itself.
  EXPECT_EQ(misfitOf("0F0,0F1,0I0,0W0,0I1,0W1\n"
                     "1F0,1F1,1W0,1I0,1I1,1W1\n"
                     "2F0,2F1,2I0,2I1,2W0,2W1\n",
                     problem, 3),
            "deadlocks: these actions wait for one another: "
            "1W0 (rank 1, cell 3) waits for 1I0 (rank 1, cell 4), which "
            "comes after 1W0 (rank 1, cell 3)");
}

} // namespace
