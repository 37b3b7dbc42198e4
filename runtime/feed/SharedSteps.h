//===- SharedSteps.h - Which sequences share a step -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stream may have plans for a step of one sequence, and for steps of several
// (Plan.step_sequences). Those are of groups of neighbours, of which each has
// its place:
//
//   sequences      0 1 2 3 | 4 5 6 7       steps of four
//   waiting        2 0 5 3                 in the order in which they came
//   next           0 . 2 3                 places 0, 2 and 3; then 5
//
// What is chosen are numbers of plans, and positions among those that wait.
// Nothing here is computed or locked.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_SHAREDSTEPS_H
#define PARTITA_RUNTIME_FEED_SHAREDSTEPS_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace partita::feed {

class SharedSteps {
public:
  using Clock = std::chrono::steady_clock;

  struct Plan {
    int sequences = 1;       ///< that a step may be of
    double predicted_ns = 0; ///< time of a step
    Clock::duration took{};  ///< by the shortest step; 0: there was none
  };

  /// `plans`: by increasing number of sequences; the first is for one.
  /// `sequences`: how many there are.
  explicit SharedSteps(std::vector<Plan> plans = {}, int sequences = 0);

  /// Whether steps may be of several.
  bool areShared() const { return plans.size() > 1; }

  /// The plan for the next step, of those that wait (their sequences, in their
  /// order): the largest that is full, or else that in which a sequence takes
  /// least time.
  size_t choose(const std::vector<int> &waiting) const;
  /// Those that share the step of a plan with the first one: of each sequence
  /// the first. Positions among those that wait.
  std::vector<size_t> find(const std::vector<int> &waiting, size_t plan) const;
  /// The place of a sequence in a step of a plan.
  int place(int sequence, size_t plan) const {
    return sequence % plans[plan].sequences;
  }
  /// Whether no other one could share the next step.
  bool isFull(const std::vector<int> &waiting) const;
  /// Until when a step of a sequence waits for others: for those that come back
  /// as soon as they have their answers. `earliest`: when it may begin.
  Clock::time_point latestBegin(int sequence, Clock::time_point earliest) const;

  /// A request of a sequence; it may have others already.
  void hasCome(int sequence, Clock::time_point now);
  /// One of them.
  void wasAnswered(int sequence, Clock::time_point now);
  void tookTime(size_t plan, Clock::duration time);

private:
  struct Sequence {
    int requests = 0; ///< that are not answered
    /// When its last step was done, unless it has another one.
    std::optional<Clock::time_point> answered;
    /// From such an answer to the next step; before that, as if it came late.
    Clock::duration pause = Clock::duration::max();
  };

  std::vector<Plan> plans;
  std::vector<Sequence> sequences;
  /// How long a step waits for those that have just been answered.
  Clock::duration patience{};
};

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_SHAREDSTEPS_H
