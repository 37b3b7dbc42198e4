//===- PlacementTest.cpp - Which process runs which device ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Placement.h"

#include <gtest/gtest.h>

namespace partita::test {
namespace {

using runtime::mpi::Placement;

std::string even(int devices, int processes) {
  auto made = Placement::even(devices, processes);
  return made.ok() ? made->text() : made.status().message();
}

std::string parsed(const std::string &text, int devices, int processes) {
  auto made = Placement::parse(text, devices, processes);
  return made.ok() ? made->text() : made.status().message();
}

TEST(Placement, DealsOutEvenly) {
  EXPECT_EQ(even(4, 1), "0,1,2,3");
  EXPECT_EQ(even(4, 2), "0,1/2,3");
  EXPECT_EQ(even(4, 4), "0/1/2/3");
  EXPECT_EQ(even(3, 2), "0,1/2");
  EXPECT_EQ(even(8, 3), "0,1,2/3,4,5/6,7");
  EXPECT_EQ(even(2, 3), "3 processes for 2 devices: a process has at least "
                        "one");
}

TEST(Placement, ReadsLists) {
  EXPECT_EQ(parsed("0,2/1,3", 4, 2), "0,2/1,3");
  EXPECT_EQ(parsed("0-2/3", 4, 2), "0,1,2/3");
  EXPECT_EQ(parsed("3,0/2/1", 4, 3), "0,3/2/1");
  auto made = *Placement::parse("5,1-2/0,3-4", 6, 2);
  EXPECT_EQ(made.processes(), 2);
  EXPECT_EQ(made.devices(), 6);
  EXPECT_EQ(made.mostDevices(), 3);
  EXPECT_EQ(made.processOf(5), 0);
  EXPECT_EQ(made.placeOf(5), 2);
  EXPECT_EQ(made.placeOf(3), 1);
  EXPECT_EQ(made.text({0, 5}), "device 0 of process 1, device 5 of process 0");
}

TEST(Placement, RefusesWhatDoesNotFit) {
  const std::string form = ": write the numbers of devices, with a slash "
                           "between processes: 0,1/2,3 or 0-1/2-3";
  for (const char *text : {"", "a", "0,1//2,3", "0,1/2,3/", "1-0/2,3",
                           "0--1/2,3", "0-1-2/3", "0, 1/2,3", "99999999999/0"})
    EXPECT_EQ(parsed(text, 4, 2), "'" + std::string(text) + "'" + form);
  EXPECT_EQ(parsed("0,1/2,4", 4, 2),
            "'0,1/2,4': there is no device 4 among 4 devices");
  EXPECT_EQ(parsed("0,1/1-3", 4, 2), "'0,1/1-3': device 1 is named twice");
  EXPECT_EQ(parsed("0/3,2", 4, 2), "'0/3,2': device 1 is in no process");
  EXPECT_EQ(parsed("0,1/2/3", 4, 2),
            "'0,1/2/3': these are the devices of 3 processes, but 2 processes "
            "were started");
  EXPECT_EQ(parsed("0-3", 4, 2), "'0-3': these are the devices of 1 process, "
                                 "but 2 processes were started");
}

} // namespace
} // namespace partita::test
