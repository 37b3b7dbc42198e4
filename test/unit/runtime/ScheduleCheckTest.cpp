//===- ScheduleCheckTest.cpp - Deadlocks and misused buffers --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/ScheduleCheck.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace partita::abi;

namespace {

/// Bytes [begin, end) that hold a value.
struct Range {
  int64_t begin, end;
  int value;
};

/// A program, step by step. Each value is a slot that covers the arena, of
/// which steps use a part.
struct Program : CheckedProgram {
  explicit Program(int index) {
    device = "cpu:" + std::to_string(index);
    arena_bytes = 256;
  }

  Program &local(int microBatch, const std::vector<Range> &reads,
                 const std::vector<Range> &writes, const std::string &name) {
    CheckedInstruction instruction{name, {}, {}};
    for (Range range : reads)
      instruction.reads.push_back(
          {valueSlot(range.value), range.begin, range.end});
    for (Range range : writes)
      instruction.writes.push_back(
          {valueSlot(range.value), range.begin, range.end});
    units.push_back({instruction});
    return run(static_cast<int>(units.size()) - 1, microBatch);
  }
  Program &run(int unit, int microBatch) {
    steps.push_back({StepKind::run, microBatch, unit, -1});
    return *this;
  }
  Program &send(int channel, int microBatch, int slot = -1) {
    steps.push_back({StepKind::send, microBatch, channel, slot});
    return *this;
  }
  Program &recv(int channel, int microBatch, int slot = -1) {
    steps.push_back({StepKind::recv, microBatch, channel, slot});
    return *this;
  }
  Program &wait(int channel, int microBatch) {
    steps.push_back({StepKind::wait, microBatch, channel, -1});
    return *this;
  }
  Program &release(int channel, int microBatch) {
    steps.push_back({StepKind::release, microBatch, channel, -1});
    return *this;
  }
  Program &start(int collective, int microBatch, int slot) {
    steps.push_back({StepKind::start, microBatch, collective, slot});
    return *this;
  }
  Program &finish(int collective, int microBatch, int slot) {
    steps.push_back({StepKind::finish, microBatch, collective, slot});
    return *this;
  }

  /// The slot of a value, at the arena's begin.
  int valueSlot(int value, int64_t bytes = 64) {
    while (static_cast<int>(slots.size()) <= value)
      slots.push_back({CheckedSlot::Space::arena, -1, 0, bytes});
    return value;
  }
  int slot(int64_t offset, int64_t bytes) {
    slots.push_back({CheckedSlot::Space::arena, -1, offset, bytes});
    return static_cast<int>(slots.size()) - 1;
  }
  /// A slot of 64 bytes in a frame of its own.
  int frameSlot(const std::vector<int64_t> &copies) {
    frames.push_back({64, copies});
    slots.push_back({CheckedSlot::Space::frame,
                     static_cast<int>(frames.size()) - 1, 0, 64});
    return static_cast<int>(slots.size()) - 1;
  }
  /// A unit of instructions that each read some slots, and write some.
  int unit(const std::vector<std::pair<std::vector<int>, std::vector<int>>>
               &instructions) {
    CheckedUnit made;
    for (const auto &[reads, writes] : instructions) {
      CheckedInstruction each{"U" + std::to_string(units.size()) + "." +
                                  std::to_string(made.size()),
                              {},
                              {}};
      for (int slot : reads)
        each.reads.push_back({slot, 0, slots[slot].bytes});
      for (int slot : writes)
        each.writes.push_back({slot, 0, slots[slot].bytes});
      made.push_back(each);
    }
    units.push_back(made);
    return static_cast<int>(units.size()) - 1;
  }
};

std::string check(const std::vector<Program> &programs) {
  return checkSchedule({programs.begin(), programs.end()},
                       {std::vector<std::string>(10, "x"), {"in"}, {"out"}});
}

void expectError(const std::vector<Program> &programs,
                 const std::string &expected) {
  std::string message = check(programs);
  EXPECT_NE(message.find(expected), std::string::npos) << message;
}

/// A cycle of receives through the devices `first`, ..., `first + size - 1`.
void addCycle(std::vector<Program> &programs, int size) {
  int first = static_cast<int>(programs.size());
  for (int i = 0; i < size; ++i) {
    int channel = first + i, before = first + (i + size - 1) % size;
    programs.push_back(
        Program(first + i).recv(before, 0).send(channel, 0).wait(channel, 0));
  }
}

size_t lines(const std::string &text) {
  return std::count(text.begin(), text.end(), '\n') + 1;
}

/// Two devices; the first has two copies of what it sends.
std::vector<Program> pipeline(int microBatches, int inFlight = 2) {
  Program first(0), second(1);
  int sent = first.frameSlot({0, 64});
  int f0 = first.unit({{{}, {sent}}});
  int got = second.slot(0, 64), made = second.slot(64, 64);
  int f1 = second.unit({{{got}, {made}}});
  for (int m = 0; m < microBatches; ++m) {
    if (m >= inFlight)
      first.wait(0, m - inFlight);
    first.run(f0, m).send(0, m, sent);
    second.recv(0, m, got).run(f1, m);
  }
  for (int m = std::max(0, microBatches - inFlight); m < microBatches; ++m)
    first.wait(0, m);
  return {first, second};
}

TEST(ScheduleCheck, AcceptsPipeline) {
  EXPECT_EQ(check(pipeline(3)), "");
  EXPECT_EQ(check(pipeline(512)), "");
}

TEST(ScheduleCheck, RefusesMoreInFlightThanCopies) {
  expectError(pipeline(4, 3),
              "cpu:0: step 'U0.0', micro-batch 2 writes bytes 0 to 64 while "
              "send of channel 0, micro-batch 0 (x) of them is outstanding");
}

TEST(ScheduleCheck, PrintsCycleOfTwo) {
  std::vector<Program> programs;
  addCycle(programs, 2);
  expectError(programs, "deadlocks");
  expectError(programs, "\ncpu:0: recv of channel 1, micro-batch 0 (x) waits "
                        "for cpu:1: send of channel 1, micro-batch 0 (x)");
  EXPECT_EQ(lines(check(programs)), 3u);
}

TEST(ScheduleCheck, PrintsSmallestCycle) {
  std::vector<Program> programs;
  addCycle(programs, 4);
  addCycle(programs, 3);
  addCycle(programs, 5);
  std::string message = check(programs);
  EXPECT_EQ(lines(message), 4u) << message;
  EXPECT_NE(message.find("cpu:4"), std::string::npos) << message;
  EXPECT_EQ(message.find("cpu:0"), std::string::npos) << message;
}

TEST(ScheduleCheck, WaitTakesPartInCycle) {
  // The first waits for its send to be taken before it sends what the second
  // receives first.
  std::vector<Program> programs = {
      Program(0).send(0, 0).wait(0, 0).send(1, 0).wait(1, 0),
      Program(1).recv(1, 0).recv(0, 0)};
  expectError(programs, "wait of channel 0");
  EXPECT_EQ(lines(check(programs)), 3u);
}

TEST(ScheduleCheck, ChainBehindCycleIsNotPrinted) {
  std::vector<Program> programs;
  addCycle(programs, 2);
  programs[0].send(9, 0).wait(9, 0);
  programs.push_back(Program(2).recv(9, 0));
  expectError(programs, "deadlocks");
  EXPECT_EQ(check(programs).find("cpu:2"), std::string::npos);
}

TEST(ScheduleCheck, RefusesUnmatchedSteps) {
  Program none(1), taker = Program(1).recv(0, 0);
  expectError({Program(0).send(0, 0).wait(0, 0), none}, "nobody receives");
  expectError({Program(0).recv(0, 0), none}, "nobody sends");
  expectError({Program(0).send(0, 0), taker}, "has no wait");
  expectError({Program(0).wait(0, 0).send(0, 0), taker}, "before its send");
  expectError({Program(0).wait(0, 0), none}, "nobody sends it");
  expectError({Program(0).send(0, 0).send(0, 0).wait(0, 0), taker},
              "two steps");
}

TEST(ScheduleCheck, RefusesReadBeforeWrite) {
  expectError({Program(0).local(0, {{0, 64, 1}}, {}, "F0")},
              "reads bytes 0 to 64 before");
}

TEST(ScheduleCheck, RefusesPartlyWrittenRead) {
  expectError({Program(0)
                   .local(0, {}, {{0, 32, 1}}, "F0")
                   .local(0, {}, {{48, 64, 1}}, "F1")
                   .local(0, {{0, 64, 1}}, {}, "F2")},
              "'F2', micro-batch 0 reads bytes 32 to 48 before");
}

TEST(ScheduleCheck, RefusesPartlyOverwrittenRead) {
  expectError({Program(0)
                   .local(0, {}, {{0, 64, 1}}, "F0")
                   .local(0, {}, {{16, 32, 2}}, "F1")
                   .local(0, {{0, 16, 1}, {32, 64, 1}}, {}, "ok")
                   .local(0, {{0, 64, 1}}, {}, "F2")},
              "'F2', micro-batch 0 reads bytes 16 to 32, which step 'F1', "
              "micro-batch 0 has overwritten");
}

TEST(ScheduleCheck, AcceptsReadOverSeveralWrites) {
  EXPECT_EQ(check({Program(0)
                       .local(0, {}, {{0, 32, 1}}, "F0")
                       .local(0, {}, {{32, 64, 1}}, "F1")
                       .local(0, {{8, 60, 1}}, {}, "F2")}),
            "");
}

TEST(ScheduleCheck, RefusesOverwriteOfOutstandingSend) {
  Program first(0);
  first.local(0, {}, {{0, 64, 1}}, "F0").send(0, 0, 1);
  first.local(1, {}, {{32, 96, 2}}, "F0").wait(0, 0);
  Program second(1);
  second.recv(0, 0, second.slot(0, 64));
  expectError({first, second}, "writes bytes 32 to 64 while send of channel 0");
}

TEST(ScheduleCheck, WaitIsForTheRelease) {
  // Received at once, but released after what is sent only then.
  Program first = Program(0).send(0, 0).wait(0, 0).send(1, 0).wait(1, 0);
  EXPECT_EQ(check({first, Program(1).recv(0, 0).release(0, 0).recv(1, 0)}), "");
  expectError({first, Program(1).recv(0, 0).recv(1, 0).release(0, 0)},
              "\ncpu:0: wait of channel 0, micro-batch 0 (x) waits "
              "for cpu:1: release of channel 0");
}

TEST(ScheduleCheck, RefusesUnmatchedReleases) {
  Program first = Program(0).send(0, 0).wait(0, 0);
  EXPECT_EQ(check({first, Program(1).recv(0, 0).release(0, 0)}), "");
  expectError({first, Program(1).release(0, 0).recv(0, 0)}, "before its recv");
  expectError({first, Program(1).recv(0, 0).release(1, 0)},
              "nobody receives it");
  expectError({first, Program(1).recv(0, 0).release(0, 0).release(0, 0)},
              "two steps");
  first.release(0, 0);
  expectError({first, Program(1).recv(0, 0)}, "cpu:1 that receives it");
}

TEST(ScheduleCheck, RefusesReadAfterRelease) {
  Program first(0), second(1);
  first.local(0, {}, {{0, 64, 1}}, "F0").send(0, 0, 1).wait(0, 0);
  second.valueSlot(2);
  second.recv(0, 0, 1).local(0, {{0, 64, 1}}, {{0, 32, 2}}, "F1");
  second.release(0, 0);
  // Bytes written in between are the device's own.
  Program own = second;
  own.local(0, {{0, 32, 2}}, {}, "F2");
  EXPECT_EQ(check({first, own}), "");
  Program stale = second;
  stale.local(0, {{32, 64, 1}}, {}, "F2");
  expectError({first, stale},
              "'F2', micro-batch 0 reads bytes 32 to 64 before");
}

TEST(ScheduleCheck, RefusesWhatOnlyASecondStepWouldShow) {
  // Reads in the first half what the second half of the same program writes:
  // the first round stops it already; a value kept over rounds is stale.
  Program stale = Program(0)
                      .local(0, {}, {{0, 64, 1}}, "F0")
                      .local(0, {{0, 64, 1}}, {{0, 64, 2}}, "F1")
                      .local(0, {{0, 64, 2}}, {}, "F2");
  EXPECT_EQ(check({stale}), "");
  stale.steps.erase(stale.steps.begin());
  EXPECT_NE(check({stale}), "");
}

TEST(ScheduleCheck, RefusesRangeOutsideArena) {
  expectError({Program(0).local(0, {}, {{192, 320, 1}}, "F0")},
              "outside the arena");
  expectError({Program(0).local(0, {}, {{-64, 0, 1}}, "F0")},
              "outside the arena");
  Program received(1);
  received.recv(0, 0, received.slot(224, 64));
  expectError({Program(0).send(0, 0).wait(0, 0), received},
              "outside the arena");
}

TEST(ScheduleCheck, ValuesOfAnotherMicroBatchAreOthers) {
  Program program(0);
  int slot = program.slot(0, 64);
  int writer = program.unit({{{}, {slot}}}),
      reader = program.unit({{{slot}, {}}});
  EXPECT_EQ(check({Program(program).run(writer, 0).run(reader, 0)}), "");
  expectError({Program(program).run(writer, 0).run(reader, 1)},
              "which step 'U0.0', micro-batch 0 has overwritten");
}

TEST(ScheduleCheck, CopiesOfAFrameKeepMicroBatchesApart) {
  Program program(0);
  int slot = program.frameSlot({0, 128, 64});
  int writer = program.unit({{{}, {slot}}}),
      reader = program.unit({{{slot}, {}}});
  Program three = program;
  three.run(writer, 0).run(writer, 1).run(writer, 2);
  EXPECT_EQ(
      check({Program(three).run(reader, 0).run(reader, 1).run(reader, 2)}), "");
  three.run(writer, 3); // in the bytes of the first
  expectError({Program(three).run(reader, 0)},
              "'U1.0', micro-batch 0 reads bytes 0 to 64, which step 'U0.0', "
              "micro-batch 3 has overwritten");
}

TEST(ScheduleCheck, LocalBytesMayLieInACopyThatIsFree) {
  // The unit's own value lies where the frame's second copy is.
  Program program(0);
  int slot = program.frameSlot({0, 64}), mine = program.slot(64, 64);
  int writer = program.unit({{{}, {mine}}, {{mine}, {}}, {{}, {slot}}});
  int reader = program.unit({{{slot}, {}}});
  EXPECT_EQ(check({Program(program).run(writer, 0).run(reader, 0)}), "");
  Program both = program;
  both.run(writer, 1).run(writer, 0); // which rewrites its own bytes there
  expectError({Program(both).run(reader, 1)},
              "'U1.0', micro-batch 1 reads bytes 64 to 128, which step 'U0.0', "
              "micro-batch 0 has overwritten");
}

TEST(ScheduleCheck, RefusesOverwriteWithinAUnit) {
  Program program(0);
  int x = program.slot(0, 64), y = program.slot(32, 64);
  int unit = program.unit({{{}, {x}}, {{}, {y}}, {{x}, {}}});
  expectError({program.run(unit, 5)},
              "step 'U0.2', micro-batch 5 reads bytes 32 to 64, which step "
              "'U0.1' has overwritten");
}

TEST(ScheduleCheck, OnlyOneCopyMayBeTheCulprit) {
  // Right on micro-batch 0, wrong on 1, where the copy lies upon its operand.
  Program program(0);
  int slot = program.frameSlot({0, 64}), mine = program.slot(64, 64);
  int unit = program.unit({{{}, {mine}}, {{}, {slot}}, {{mine}, {}}});
  EXPECT_EQ(check({Program(program).run(unit, 0).run(unit, 2)}), "");
  expectError({Program(program).run(unit, 0).run(unit, 1)},
              "step 'U0.2', micro-batch 1 reads bytes 64 to 128");
}

TEST(ScheduleCheck, ConstantsAreTheSameOnAllMicroBatches) {
  Program program(0);
  program.constant_bytes = 64;
  program.slots.push_back({CheckedSlot::Space::constant, -1, 0, 64});
  int reader = program.unit({{{0}, {}}});
  program.run(reader, 0).run(reader, 1);
  expectError({program}, "before anything is written there");
  program.load = {{"load: w", {}, {{0, 0, 64}}}};
  EXPECT_EQ(check({program}), "");
}

/// A program with a collective from its first slot to its second.
struct Collective : Program {
  Collective() : Program(0) {
    from = slot(0, 64);
    to = slot(64, 64);
    result = slot(128, 64);
    makes = unit({{{}, {from}}});
    reads = unit({{{to}, {result}}});
  }
  int from, to, result, makes, reads;
};

TEST(ScheduleCheck, CollectivesOfAnyMicroBatches) {
  Collective p;
  for (int m : {0, 1}) {
    p.run(p.makes, m);
    p.start(0, m, p.from).finish(0, m, p.to);
    p.run(p.reads, m);
  }
  EXPECT_EQ(check({p}), "");
}

TEST(ScheduleCheck, ACollectiveInPlace) {
  Collective p;
  p.run(p.makes, 0);
  p.start(0, 0, p.from).finish(0, 0, p.from);
  const int unit = p.unit({{{p.from}, {p.result}}});
  p.run(unit, 0);
  EXPECT_EQ(check({p}), "");
}

TEST(ScheduleCheck, WhatACollectiveReadsIsNotWrittenMeanwhile) {
  Collective p;
  p.run(p.makes, 0).start(0, 0, p.from).run(p.makes, 1).finish(0, 0, p.to);
  expectError({p}, "writes bytes 0 to 64 while start of collective 0");
}

TEST(ScheduleCheck, WhatACollectiveWritesIsNotUsedMeanwhile) {
  Collective p;
  p.run(p.makes, 0).start(0, 0, p.from).run(p.reads, 0).finish(0, 0, p.to);
  expectError({p}, "reads bytes 64 to 128, which start of collective 0");
  Collective q;
  const int writes = q.unit({{{}, {q.to}}});
  q.run(q.makes, 0).start(0, 0, q.from).run(writes, 0).finish(0, 0, q.to);
  expectError({q}, "while start of collective 0");
}

TEST(ScheduleCheck, CollectivesWithoutTheirOtherHalf) {
  Collective p;
  p.run(p.makes, 0).start(0, 0, p.from);
  expectError({p}, "start of collective 0, micro-batch 0: nothing finishes it");
  Collective q;
  q.finish(0, 0, q.to);
  expectError({q}, "finish of collective 0, micro-batch 0: nothing starts it");
  Collective twice;
  twice.run(twice.makes, 0).start(0, 0, twice.from).start(0, 0, twice.from);
  expectError({twice}, "it is under way");
}

TEST(ScheduleCheck, ACollectiveOfWhatNothingWrote) {
  Collective p;
  p.start(0, 0, p.from).finish(0, 0, p.to);
  expectError({p}, "before anything is written there");
}

} // namespace
