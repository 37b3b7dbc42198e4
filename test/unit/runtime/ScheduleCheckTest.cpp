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

/// A program, action by action. Each value is a slot that covers the arena, of
/// which actions use a part.
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
    actions.push_back({ActionKind::run, microBatch, unit, -1});
    return *this;
  }
  Program &send(int channel, int microBatch, int slot = -1) {
    actions.push_back({ActionKind::send, microBatch, channel, slot});
    return *this;
  }
  Program &recv(int channel, int microBatch, int slot = -1) {
    actions.push_back({ActionKind::recv, microBatch, channel, slot});
    return *this;
  }
  Program &wait(int channel, int microBatch) {
    actions.push_back({ActionKind::wait, microBatch, channel, -1});
    return *this;
  }
  Program &release(int channel, int microBatch) {
    actions.push_back({ActionKind::release, microBatch, channel, -1});
    return *this;
  }
  Program &start(int collective, int microBatch, int slot) {
    actions.push_back({ActionKind::start, microBatch, collective, slot});
    return *this;
  }
  Program &finish(int collective, int microBatch, int slot) {
    actions.push_back({ActionKind::finish, microBatch, collective, slot});
    return *this;
  }

  /// The slot of a value, at the arena's begin.
  int valueSlot(int value, int64_t bytes = 64) {
    while (static_cast<int>(slots.size()) <= value)
      slots.push_back({Space::arena, -1, 0, bytes});
    return value;
  }
  int slot(int64_t offset, int64_t bytes) {
    slots.push_back({Space::arena, -1, offset, bytes});
    return static_cast<int>(slots.size()) - 1;
  }
  /// A slot of 64 bytes in a frame of its own.
  int frameSlot(const std::vector<int64_t> &copies) {
    frames.push_back({64, copies});
    slots.push_back({Space::frame, static_cast<int>(frames.size()) - 1, 0, 64});
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
              "cpu:0: action 'U0.0', micro-batch 2 writes bytes 0 to 64 while "
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
              "two actions");
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
              "'F2', micro-batch 0 reads bytes 16 to 32, which action 'F1', "
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
              "two actions");
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
  stale.actions.erase(stale.actions.begin());
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
              "which action 'U0.0', micro-batch 0 has overwritten");
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
              "'U1.0', micro-batch 0 reads bytes 0 to 64, which action 'U0.0', "
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
  expectError(
      {Program(both).run(reader, 1)},
      "'U1.0', micro-batch 1 reads bytes 64 to 128, which action 'U0.0', "
      "micro-batch 0 has overwritten");
}

TEST(ScheduleCheck, RefusesOverwriteWithinAUnit) {
  Program program(0);
  int x = program.slot(0, 64), y = program.slot(32, 64);
  int unit = program.unit({{{}, {x}}, {{}, {y}}, {{x}, {}}});
  expectError({program.run(unit, 5)},
              "action 'U0.2', micro-batch 5 reads bytes 32 to 64, which action "
              "'U0.1' has overwritten");
}

TEST(ScheduleCheck, OnlyOneCopyMayBeTheCulprit) {
  // Right on micro-batch 0, wrong on 1, where the copy lies upon its operand.
  Program program(0);
  int slot = program.frameSlot({0, 64}), mine = program.slot(64, 64);
  int unit = program.unit({{{}, {mine}}, {{}, {slot}}, {{mine}, {}}});
  EXPECT_EQ(check({Program(program).run(unit, 0).run(unit, 2)}), "");
  expectError({Program(program).run(unit, 0).run(unit, 1)},
              "action 'U0.2', micro-batch 1 reads bytes 64 to 128");
}

TEST(ScheduleCheck, ConstantsAreTheSameOnAllMicroBatches) {
  Program program(0);
  program.constant_bytes = 64;
  program.slots.push_back({Space::constant, -1, 0, 64});
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
  // One of a plan that no device begins.
  EXPECT_EQ(checkSchedule({Program(0)}, {{}, {}, {}, {"sum of w"}, {}}),
            "collective 0 (sum of w) never starts");
  Collective twice;
  twice.run(twice.makes, 0).start(0, 0, twice.from).start(0, 0, twice.from);
  expectError({twice}, "it is under way");
}

TEST(ScheduleCheck, ACollectiveOfWhatNothingWrote) {
  Collective p;
  p.start(0, 0, p.from).finish(0, 0, p.to);
  expectError({p}, "before anything is written there");
}

/// A device that learns: a prologue makes an accumulator 0, each micro-batch
/// adds to it, and an update reads it and writes a state.
struct Learner : Program {
  explicit Learner(int microBatches = 3) : Program(0) {
    micro_batches = microBatches;
    sum = spanning(0, Span::sum);
    other = slot(0, 64);
    local = slot(64, 64);
    made = slot(128, 64);
    slots.push_back({Space::state, -1, 7, 64});
    state = static_cast<int>(slots.size()) - 1;
    prologue = unit({{{}, {sum}}});
    add = unit({{{state}, {local}}, {{local, sum}, {sum}}});
    update = unit({{{sum, state}, {state}}});
  }
  /// A slot of 64 bytes of the arena.
  int spanning(int64_t offset, Span span) {
    const int made = slot(offset, 64);
    slots[made].span = span;
    return made;
  }
  /// Adds these micro-batches.
  Learner &adds(const std::vector<int> &batches) {
    for (int m : batches)
      run(add, m);
    return *this;
  }
  Learner &then(int unit, int microBatch) {
    run(unit, microBatch);
    return *this;
  }
  int last() const { return micro_batches - 1; }

  int sum, other, local, made, state, prologue, add, update;
};

/// A prologue, and the first micro-batches.
Learner begun(int microBatches, const std::vector<int> &batches) {
  return Learner(microBatches).then(0, 0).adds(batches);
}

TEST(ScheduleCheckTraining, AcceptsASumOfAllMicroBatches) {
  for (int count : {1, 2, 3, 64}) {
    Learner p(count);
    p.run(p.prologue, 0);
    for (int m = 0; m < count; ++m)
      p.run(p.add, m);
    p.run(p.update, p.last());
    EXPECT_EQ(check({p}), "") << count;
  }
}

TEST(ScheduleCheckTraining, AcceptsASumThatIsCopiedBack) {
  Learner p(2);
  p.units[p.add] = p.units[p.unit(
      {{{p.sum}, {p.local}}, {{p.local}, {p.made}}, {{p.made}, {p.sum}}})];
  p.run(p.prologue, 0).run(p.add, 0).run(p.add, 1).run(p.update, 1);
  EXPECT_EQ(check({p}), "");
}

TEST(ScheduleCheckTraining, RefusesASumThatNothingStarts) {
  Learner p;
  p.adds({0, 1, 2}).run(p.update, 2);
  expectError({p}, "cpu:0: action 'U1.1', micro-batch 0 reads bytes 0 to 64 "
                   "before anything is written there");
  // What is loaded is not there in later steps.
  p.load = {{"load: 0", {}, {{p.sum, 0, 64}}}};
  expectError({p}, "before anything is written there");
}

TEST(ScheduleCheckTraining, RefusesASumWithoutAMicroBatch) {
  expectError(
      {begun(3, {0, 2}).then(2, 2)},
      "action 'U2.0', micro-batch 2 reads a sum of 2 micro-batches, and "
      "needs one of 3");
  expectError(
      {begun(3, {0, 1}).then(2, 2)},
      "action 'U2.0', micro-batch 2 reads a sum of 2 micro-batches, and "
      "needs one of 3");
  expectError({begun(3, {}).then(2, 2)}, "reads a sum of 0 micro-batches");
  // All that the program has, but not all of the plan.
  expectError({begun(3, {0, 1}).then(2, 1)},
              "reads a sum of 2 micro-batches, and needs one of 3");
}

TEST(ScheduleCheckTraining, RefusesAMicroBatchTwice) {
  expectError(
      {begun(3, {0, 1, 1, 2}).then(2, 2)},
      "action 'U1.1', micro-batch 1 adds to a sum what is in it already: "
      "action 'U1.1', micro-batch 1 has added it");
  expectError({begun(3, {0, 1, 2, 2}).then(2, 2)},
              "micro-batch 2 adds to a sum what is in it already");
  expectError({begun(3, {0, 1, 0}).then(2, 2)},
              "micro-batch 0 adds to a sum what is in it already");
}

TEST(ScheduleCheckTraining, AcceptsAnyOrder) {
  for (const auto &order : {std::vector{1, 0, 2}, {0, 2, 1}, {2, 1, 0}})
    EXPECT_EQ(check({begun(3, order).then(2, 2)}), "");
}

TEST(ScheduleCheckTraining, RefusesAnUpdateBeforeTheEnd) {
  expectError(
      {begun(3, {0, 1}).then(2, 2).then(1, 2)},
      "action 'U2.0', micro-batch 2 reads a sum of 2 micro-batches, and "
      "needs one of 3");
}

TEST(ScheduleCheckTraining, RefusesASumThatIsStartedAgain) {
  expectError({begun(3, {0, 1}).then(0, 2).adds({2}).then(2, 2)},
              "reads a sum of 1 micro-batches, and needs one of 3");
}

TEST(ScheduleCheckTraining, RefusesAnUpdateThatAlsoAdds) {
  Learner p;
  p.units[p.update][0].writes.push_back({p.sum, 0, 64});
  p.run(p.prologue, 0).run(p.add, 0).run(p.add, 1).run(p.add, 2);
  p.run(p.update, 2);
  expectError({p}, "action 'U2.0', micro-batch 2 adds to a sum what is in it "
                   "already: action 'U1.1', micro-batch 2 has added it");
}

TEST(ScheduleCheckTraining, RefusesAReaderBetween) {
  // A micro-batch that looks at the sum, and does not add to it.
  Learner p;
  const int looks = p.unit({{{p.sum}, {p.local}}});
  p.run(p.prologue, 0).run(p.add, 0).run(looks, 0).run(p.add, 1);
  p.run(p.add, 2).run(p.update, 2);
  expectError({p},
              "action 'U3.0', micro-batch 0 reads a sum of 1 micro-batches, "
              "and needs one of 3");
}

TEST(ScheduleCheckTraining, RefusesAUnitThatReadsWhatItHasAdded) {
  Learner p(1);
  const int both = p.unit({{{p.sum}, {p.sum}}, {{p.sum}, {p.local}}});
  p.run(p.prologue, 0).run(both, 0).run(p.update, 0);
  expectError({p},
              "action 'U3.1', micro-batch 0 reads a sum that it has added");
}

TEST(ScheduleCheckTraining, RefusesASumThatIsWrittenTwiceInAUnit) {
  Learner p(1);
  const int both = p.unit({{{p.sum}, {p.sum}}, {{p.local}, {p.sum}}});
  p.units[both][1].reads.clear();
  p.run(p.prologue, 0).run(both, 0).run(p.update, 0);
  expectError({p}, "action 'U3.1', micro-batch 0 writes a sum that it has "
                   "written");
}

TEST(ScheduleCheckTraining, RefusesASumThatIsReplaced) {
  // It is read, but what is written has nothing of it.
  Learner p(1);
  const int replaces =
      p.unit({{{p.sum}, {p.local}}, {{}, {p.made}}, {{p.made}, {p.sum}}});
  p.run(p.prologue, 0).run(replaces, 0).run(p.update, 0);
  expectError({p},
              "action 'U3.2', micro-batch 0 writes a sum that it has read, "
              "and does not add to it");
}

TEST(ScheduleCheckTraining, RefusesASumOfAPart) {
  Learner p(1);
  p.units[p.add][1].reads[1].end = 32;
  p.run(p.prologue, 0).run(p.add, 0).run(p.update, 0);
  expectError({p}, "writes a sum that it has read, and does not add to it");
  Learner q(1);
  for (auto *uses : {&q.units[q.add][1].reads, &q.units[q.add][1].writes})
    uses->back().end = 32;
  q.run(q.prologue, 0).run(q.add, 0).run(q.update, 0);
  expectError({q},
              "action 'U2.0', micro-batch 0 reads a sum of 0 micro-batches, "
              "and needs one of 1");
}

TEST(ScheduleCheckTraining, RefusesAnotherValueInTheBytesOfASum) {
  Learner p;
  const int writes = p.unit({{{}, {p.other}}});
  p.run(p.prologue, 0).run(p.add, 0).run(writes, 0).run(p.add, 1);
  p.run(p.add, 2).run(p.update, 2);
  expectError({p},
              "action 'U1.1', micro-batch 1 reads bytes 0 to 64, which action "
              "'U3.0', micro-batch 0 has overwritten with another value");
  // In the unit that adds, before it does and afterwards.
  for (bool before : {true, false}) {
    Learner q;
    CheckedUnit &unit = q.units[q.add];
    unit.insert(before ? unit.begin() : unit.end(),
                {"x", {}, {{q.other, 32, 64}}});
    q.run(q.prologue, 0).run(q.add, 0).run(q.add, 1).run(q.add, 2);
    q.run(q.update, 2);
    expectError({q}, "reads bytes 32 to 64, which action 'x'");
  }
}

TEST(ScheduleCheckTraining, ASumHasNoCopies) {
  // Each micro-batch would add to a copy of its own.
  Learner p(2);
  p.frames.push_back({64, {0, 128}});
  p.slots[p.sum] = {Space::frame, 0, 0, 64, Span::sum};
  p.run(p.prologue, 0).run(p.add, 0).run(p.add, 1).run(p.update, 1);
  expectError({p}, "action 'U1.1', micro-batch 1 reads bytes 128 to 192 before "
                   "anything is written there");
}

/// A learner whose sum has two lanes, which the prologue and the update name.
struct LaneLearner : Learner {
  explicit LaneLearner(int microBatches) : Learner(microBatches) {
    arena_bytes = 1024;
    frames.push_back({64, {512, 640}});
    slots[sum] = {Space::frame, 0, 0, 64, Span::sum};
    for (int lane : {0, 1})
      lanes.push_back(named(lane));
    prologue = unit({{{}, {lanes[0]}}, {{}, {lanes[1]}}});
    update = unit({{{lanes[0], lanes[1], state}, {state}}});
  }
  int named(int lane) {
    const int made = slot(512 + 128 * lane, 64);
    slots[made].span = Span::sum;
    slots[made].sum = sum;
    slots[made].lane = lane;
    return made;
  }
  std::vector<int> lanes;
};

TEST(ScheduleCheckTraining, AcceptsLanesOfASum) {
  for (int count : {2, 3, 4, 7})
    for (bool ascends : {true, false}) {
      LaneLearner p(count);
      p.run(p.prologue, 0);
      for (int m = 0; m < count; ++m)
        p.run(p.add, ascends ? m : count - 1 - m);
      p.run(p.update, p.last());
      EXPECT_EQ(check({p}), "") << count;
    }
}

TEST(ScheduleCheckTraining, RefusesALaneWithoutAMicroBatch) {
  LaneLearner p(5);
  p.run(p.prologue, 0).run(p.add, 0).run(p.add, 1).run(p.add, 2);
  LaneLearner second = p, first = p, twice = p;
  second.run(second.add, 4).run(second.update, 4);
  expectError({second}, "action 'U4.0', micro-batch 4 reads a sum of 1 "
                        "micro-batches, and needs one of 2");
  first.run(first.add, 3).run(first.update, 4);
  expectError({first}, "action 'U4.0', micro-batch 4 reads a sum of 2 "
                       "micro-batches, and needs one of 3");
  twice.run(twice.add, 2);
  expectError({twice},
              "action 'U1.1', micro-batch 2 adds to a sum what is in it "
              "already");
}

TEST(ScheduleCheckTraining, RefusesALaneThatNothingStarts) {
  LaneLearner p(2);
  p.units[p.prologue].pop_back();
  p.run(p.prologue, 0).run(p.add, 0).run(p.add, 1).run(p.update, 1);
  expectError({p}, "action 'U1.1', micro-batch 1 reads bytes 640 to 704 before "
                   "anything is written there");
}

TEST(ScheduleCheckTraining, ALaneIsTheSumOfItsMicroBatches) {
  // A unit that runs on micro-batch 1 names lane 0 and uses the sum.
  LaneLearner p(2);
  const int mixes = p.unit({{{p.sum}, {p.local}}, {{p.lanes[0]}, {p.made}}});
  p.run(p.prologue, 0).run(p.add, 0).run(mixes, 1).run(p.add, 1);
  p.run(p.update, 1);
  expectError({p},
              "action 'U5.0', micro-batch 1 reads a sum of 0 micro-batches, "
              "and needs one of 1");
}

/// A learner with two sums, which a collective adds up at once.
struct JoiningLearner : Learner {
  explicit JoiningLearner(int microBatches) : Learner(microBatches) {
    second = spanning(192, Span::sum);
    slots[second].offset = 320;
    joined = spanning(256, Span::sum);
    arena_bytes = 384;
    slots[sum].offset = slots[other].offset = 256;
    slots[joined].bytes = 128;
    slots[joined].members = {sum, second};
    prologue = unit({{{}, {sum}}, {{}, {second}}});
    add = unit({{{state}, {local}},
                {{local, sum}, {sum}},
                {{local, second}, {second}}});
    addsOne = unit({{{state}, {local}}, {{local, sum}, {sum}}});
    update = unit({{{sum, second, state}, {state}}});
  }
  int second, joined, addsOne;
};

TEST(ScheduleCheckTraining, AcceptsACollectiveWhereASumIs) {
  Learner p(2);
  p.run(p.prologue, 0).run(p.add, 0).run(p.add, 1);
  p.start(0, 1, p.sum).finish(0, 1, p.sum).run(p.update, 1);
  EXPECT_EQ(check({p}), "");
  // Before all is added.
  Learner early(2);
  early.run(early.prologue, 0).run(early.add, 0);
  early.start(0, 0, early.sum).finish(0, 0, early.sum).run(early.add, 1);
  early.run(early.update, 1);
  expectError({early}, "start of collective 0, micro-batch 0 reads a sum of 1 "
                       "micro-batches, and needs one of 2");
  // What comes from elsewhere has no micro-batches in it.
  Learner moved(2);
  moved.run(moved.prologue, 0).run(moved.add, 0).run(moved.add, 1);
  moved.start(0, 1, moved.local).finish(0, 1, moved.sum);
  moved.run(moved.update, 1);
  expectError({moved}, "reads a sum of 0 micro-batches, and needs one of 2");
}

TEST(ScheduleCheckTraining, JoinedSumsAreAddedUpWhereTheyAre) {
  JoiningLearner begun(2);
  begun.run(begun.prologue, 0).run(begun.add, 0);
  JoiningLearner p = begun;
  p.run(p.add, 1).start(0, 1, p.joined).finish(0, 1, p.joined);
  p.run(p.update, 1);
  EXPECT_EQ(check({p}), "");
  // One of them is not complete.
  JoiningLearner early = begun;
  early.run(early.addsOne, 1);
  early.start(0, 1, early.joined).finish(0, 1, early.joined);
  early.run(early.update, 1);
  expectError({early}, "start of collective 0, micro-batch 1 reads a sum of 1 "
                       "micro-batches, and needs one of 2");
  // The update comes between, or writes the bytes meanwhile.
  JoiningLearner late = begun;
  late.run(late.add, 1).start(0, 1, late.joined).run(late.update, 1);
  late.finish(0, 1, late.joined);
  expectError({late}, "has overwritten with another value");
  JoiningLearner writes = begun;
  const int over = writes.unit({{{}, {writes.other}}});
  writes.run(writes.add, 1).start(0, 1, writes.joined).run(over, 1);
  writes.finish(0, 1, writes.joined).run(writes.update, 1);
  expectError({writes}, "writes bytes 256 to 320 while start of collective 0");
  // Another kind of action, another slot, another place.
  JoiningLearner sent = begun;
  sent.run(sent.add, 1).send(0, 1, sent.joined).wait(0, 1);
  sent.run(sent.update, 1);
  Program second(1);
  second.recv(0, 1, second.slot(0, 64));
  expectError({sent, second}, "uses joined slots, which only a collective may");
  JoiningLearner elsewhere = begun;
  elsewhere.run(elsewhere.add, 1).start(0, 1, elsewhere.joined);
  elsewhere.finish(0, 1, elsewhere.sum).run(elsewhere.update, 1);
  expectError({elsewhere}, "joined slots are added up elsewhere");
  JoiningLearner outside = begun;
  outside.slots[outside.joined].bytes = 64;
  outside.run(outside.add, 1).start(0, 1, outside.joined);
  outside.finish(0, 1, outside.joined).run(outside.update, 1);
  expectError({outside}, "joins what lies elsewhere");
  // A unit cannot use them all as one.
  JoiningLearner unit = begun;
  const int reads = unit.unit({{{unit.joined}, {unit.local}}});
  unit.run(unit.add, 1).run(reads, 1).run(unit.update, 1);
  EXPECT_NE(check({unit}), "");
}

TEST(ScheduleCheckTraining, AMessageHasAllOfASum) {
  Learner p(2);
  p.run(p.prologue, 0).run(p.add, 0);
  Program second(1);
  second.recv(0, 1, second.slot(0, 64));
  Learner early = p;
  early.send(0, 1, p.sum).wait(0, 1).run(p.add, 1);
  expectError({early, second}, "reads a sum of 1 micro-batches, and needs one "
                               "of 2");
  p.run(p.add, 1).send(0, 1, p.sum).wait(0, 1);
  EXPECT_EQ(check({p, second}), "");
}

/// A value of the whole step, in the last bytes of the arena.
struct Stepper : Learner {
  Stepper() : Learner(2) {
    value = spanning(192, Span::step);
    writes = unit({{{}, {value}}});
    reads = unit({{{value}, {local}}});
  }
  int value, writes, reads;
};

TEST(ScheduleCheckTraining, AValueOfTheStepIsForAllMicroBatches) {
  Stepper p;
  p.run(p.writes, 0).run(p.reads, 0).run(p.reads, 1);
  EXPECT_EQ(check({p}), "");
  Stepper input;
  input.actions.push_back({ActionKind::load_input, 0, 0, input.value});
  input.run(input.reads, 0).run(input.reads, 1);
  EXPECT_EQ(check({input}), "");
}

TEST(ScheduleCheckTraining, RefusesAValueOfTheStepBeforeItIsWritten) {
  Stepper p;
  p.run(p.reads, 0).run(p.writes, 0).run(p.reads, 1);
  expectError({p}, "action 'U4.0', micro-batch 0 reads bytes 192 to 256 before "
                   "anything is written there");
}

TEST(ScheduleCheckTraining, RefusesAValueOfTheStepFromEachMicroBatch) {
  Stepper p;
  p.run(p.writes, 0).run(p.writes, 1).run(p.reads, 0);
  expectError({p}, "action 'U3.0', micro-batch 1 writes a value of the whole "
                   "step that action 'U3.0', micro-batch 0 has written");
  Stepper input;
  input.run(input.writes, 0).run(input.reads, 0);
  input.actions.push_back({ActionKind::load_input, 1, 0, input.value});
  expectError({input}, "action 'input in', micro-batch 1 writes a value of the "
                       "whole step");
}

TEST(ScheduleCheckTraining, AStateIsReadUntilItIsWritten) {
  Learner p;
  const int looks = p.unit({{{p.state}, {p.local}}});
  p.run(p.prologue, 0).run(looks, 0).run(p.add, 0).run(p.add, 1).run(p.add, 2);
  p.actions.push_back({ActionKind::store_output, 2, 0, p.state});
  p.run(p.update, 2);
  EXPECT_EQ(check({p}), "");
}

TEST(ScheduleCheckTraining, RefusesAStateThatIsReadAfterItWasWritten) {
  Learner done = begun(3, {0, 1, 2}).then(2, 2);
  Learner later = done;
  later.run(later.unit({{{later.state}, {later.local}}}), 2);
  expectError({later}, "cpu:0: action 'U3.0', micro-batch 2 reads a state that "
                       "action 'U2.0', micro-batch 2 has written for the next "
                       "step");
  // Its new value would be of the step before.
  Learner mixed = begun(1, {0}).then(2, 0).adds({0});
  expectError({mixed}, "action 'U1.0', micro-batch 0 reads a state that");
  Learner output = done;
  output.actions.push_back({ActionKind::store_output, 2, 0, output.state});
  expectError({output}, "action 'output out', micro-batch 2 reads a state that "
                        "action 'U2.0', micro-batch 2 has written");
  Learner same = done;
  same.units[same.update].push_back(
      {"looks", {{same.state, 0, 64}}, {{same.local, 0, 64}}});
  expectError({same}, "action 'looks', micro-batch 2 reads a state that action "
                      "'U2.0' has written for the next step");
  // By another slot of the same state.
  Learner slot = done;
  slot.slots.push_back(slot.slots[slot.state]);
  slot.run(
      slot.unit({{{static_cast<int>(slot.slots.size()) - 1}, {slot.local}}}),
      2);
  expectError({slot}, "reads a state that");
}

/// A slot that is renewed has what was written.
TEST(ScheduleCheckTraining, ANewValueIsReadAfterItWasWritten) {
  auto withNew = [](Learner p) {
    p.slots.push_back(p.slots[p.state]);
    p.slots.back().renewed = true;
    return p;
  };
  Learner done = withNew(begun(3, {0, 1, 2}).then(2, 2));
  const int renewed = static_cast<int>(done.slots.size()) - 1;
  Learner later = done;
  later.run(later.unit({{{renewed}, {later.local}}}), 2);
  later.actions.push_back({ActionKind::store_output, 2, 0, renewed});
  EXPECT_EQ(check({later}), "");
  Learner same = done;
  same.units[same.update].push_back(
      {"looks", {{renewed, 0, 64}}, {{same.local, 0, 64}}});
  EXPECT_EQ(check({same}), "");
  Learner early = withNew(begun(3, {0, 1, 2}));
  early.run(early.unit({{{renewed}, {early.local}}}), 2);
  early.then(2, 2);
  expectError({early}, "action 'U3.0', micro-batch 2 reads the new value of a "
                       "state, which nothing has written");
  Learner twice = done;
  twice.run(twice.unit({{{}, {renewed}}}), 2);
  expectError({twice}, "action 'U3.0', micro-batch 2 writes a state that");
}

TEST(ScheduleCheckTraining, RefusesAStateThatIsWrittenTwice) {
  Learner done = begun(3, {0, 1, 2}).then(2, 2);
  Learner later = done;
  later.run(later.unit({{{}, {later.state}}}), 2);
  expectError({later},
              "cpu:0: action 'U3.0', micro-batch 2 writes a state that "
              "action 'U2.0', micro-batch 2 has written");
  Learner same = done;
  same.units[same.update].push_back({"again", {}, {{same.state, 0, 64}}});
  expectError({same}, "action 'again', micro-batch 2 writes a state that is "
                      "written already");
  // By each micro-batch.
  Learner each(2);
  const int writes = each.unit({{{}, {each.state}}});
  each.run(writes, 0).run(writes, 1);
  expectError({each}, "action 'U3.0', micro-batch 1 writes a state that");
}

/// One that is carried is as many states as there are micro-batches.
TEST(ScheduleCheckTraining, EachMicroBatchHasItsOwnOfAStateThatIsCarried) {
  Learner p(2);
  p.slots[p.state].carried = true;
  p.slots.push_back(p.slots[p.state]);
  const int renewed = static_cast<int>(p.slots.size()) - 1;
  p.slots[renewed].renewed = true;
  const int looks = p.unit({{{p.state}, {p.local}}}),
            writes = p.unit({{{p.state}, {renewed}}}),
            after = p.unit({{{renewed}, {p.local}}}),
            overwrites = p.unit({{{}, {renewed}}});
  Learner good = p;
  good.run(writes, 0).run(after, 0).run(looks, 1).run(writes, 1).run(after, 1);
  EXPECT_EQ(check({good}), "");
  Learner late = p;
  late.run(writes, 1).run(looks, 0).run(looks, 1);
  expectError({late}, "micro-batch 1 reads a state that action 'U4.0', "
                      "micro-batch 1 has written for the next step");
  Learner other = p;
  other.run(writes, 0).run(after, 1);
  expectError({other}, "micro-batch 1 reads the new value of a state, which "
                       "nothing has written");
  Learner twice = p;
  twice.run(writes, 0).run(writes, 1).run(overwrites, 0);
  expectError({twice}, "micro-batch 0 writes a state that action 'U4.0', "
                       "micro-batch 0 has written");
}

TEST(ScheduleCheckTraining, TwoStatesAreTwo) {
  Learner p(1);
  p.slots.push_back({Space::state, -1, 8, 64});
  const int second = static_cast<int>(p.slots.size()) - 1;
  const int writes = p.unit({{{second}, {second}}});
  p.run(p.prologue, 0).run(p.add, 0).run(p.update, 0).run(writes, 0);
  EXPECT_EQ(check({p}), "");
}

TEST(ScheduleCheckTraining, ACollectiveReadsAStateBeforeItIsWritten) {
  Learner reads = begun(1, {0});
  Learner early = reads;
  early.start(0, 0, early.state).finish(0, 0, early.local);
  early.then(2, 0);
  EXPECT_EQ(check({early}), "");
  Learner meanwhile = reads;
  meanwhile.start(0, 0, meanwhile.state);
  meanwhile.then(2, 0);
  meanwhile.finish(0, 0, meanwhile.local);
  expectError({meanwhile},
              "writes a state while start of collective 0, micro-batch 0"
              " of it is outstanding");
  Learner late = reads;
  late.then(2, 0).start(0, 0, late.state).finish(0, 0, late.local);
  expectError({late}, "start of collective 0, micro-batch 0 reads a state that "
                      "action 'U2.0', micro-batch 0 has written for the next");
}

TEST(ScheduleCheckTraining, NoOtherMessageUsesAState) {
  const std::string expected = " uses a state, which it may not";
  Program second(1);
  second.recv(0, 0, second.slot(0, 64));
  Learner sends(1);
  sends.send(0, 0, sends.state).wait(0, 0);
  expectError({sends, second},
              "send of channel 0, micro-batch 0 (x)" + expected);
  Learner finishes(1);
  const int writes = finishes.unit({{{}, {finishes.local}}});
  finishes.run(writes, 0);
  finishes.start(0, 0, finishes.local).finish(0, 0, finishes.state);
  expectError({finishes}, expected);
  Learner receives(1);
  receives.device = "cpu:1";
  receives.recv(0, 0, receives.state).release(0, 0);
  Program first(0);
  const int sent = first.slot(0, 64);
  first.run(first.unit({{{}, {sent}}}), 0).send(0, 0, sent).wait(0, 0);
  expectError({first, receives},
              "recv of channel 0, micro-batch 0 (x)" + expected);
  Learner loads(1);
  loads.actions.push_back({ActionKind::load_input, 0, 0, loads.state});
  expectError({loads}, "action 'input in', micro-batch 0" + expected);
}

TEST(ScheduleCheckTraining, AStateThatIsWrittenIsOfOneDevice) {
  const Learner first = begun(1, {0}).then(2, 0);
  Program second(1);
  second.slots.push_back({Space::state, -1, 7, 64});
  const int local = second.slot(0, 64);
  second.run(second.unit({{{0}, {local}}}), 0);
  expectError({first, second}, "cpu:1 uses a state that cpu:0 writes");
  second.slots[0].offset = 8;
  EXPECT_EQ(check({first, second}), "");
  // One that nobody writes may be on both.
  second.slots[0].offset = 7;
  Learner reads(1);
  reads.run(reads.unit({{{reads.state}, {reads.local}}}), 0);
  EXPECT_EQ(check({reads, second}), "");
}

} // namespace
