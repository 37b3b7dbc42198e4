//===- OrderFile.h - Orders that a person writes ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The actions of each device in order, as PyTorch writes a pipeline's: a CSV
// with a row for each rank and an action in each cell, or the table that it
// prints, with a column for each rank.
//
//   0F0,0F1,,0B0,0B1
//   1F0,1B0,1F1,1B1
//
// An action is a stage, what is computed of it, and a micro-batch: `F` forward,
// `I` gradients of values, `W` gradients of weights, `B` both. Empty cells,
// which are times when a rank waits, say nothing. Several actions of one cell
// are `(0F3;1B2)OVERLAP_F_B`. Transfers follow from the order and are not
// written.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_ORDERFILE_H
#define PARTITA_COMPILER_SCHEDULE_ORDERFILE_H

#include "compiler/schedule/Registry.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace partita::schedule {

struct OrderAction {
  int stage = 0;
  char kind = 'F';
  int microBatch = 0;
  int rank = 0; ///< from 0
  int cell = 0; ///< of its rank, from 1; empty cells count

  /// "2F0"
  std::string getName() const;
  /// "2F0 (rank 1, cell 3)"
  std::string describe() const;
};

struct OrderError {
  std::string text;
  int line = 1, column = 1;
};

struct OrderFile {
  std::vector<std::vector<OrderAction>> ofRank;
  std::vector<int> rankOf; ///< by stage
  int microBatches = 0;
  bool hasBackward = false;
  /// Whether gradients of values and of weights are actions of their own.
  bool isSplit = false;
  /// "0B0 (rank 0, cell 4) comes after 0B1 (rank 0, cell 3)": the first place
  /// where the micro-batches of a stage do not ascend in `F`, in `I` or in `W`.
  /// Empty: they all do.
  std::string descent;
  /// Kinds of actions that were left out, each once, as messages name them.
  std::vector<std::string> leftOut;
};

/// Reads a file's text. Every stage has to have all actions, each once and on
/// one rank.
std::optional<OrderError> parseOrders(std::string_view text, OrderFile &file);

/// The orders of a file. `stages`: the model's, also those that have no work.
/// Actions of what a stage does not have (the first one has no gradients of
/// values for others) are left out. Sums over micro-batches are added up in the
/// order of the file: a remark says so where it does not ascend. A message that
/// names actions and cells if the file does not fit the problem, or if it
/// deadlocks: with the shortest cycle of actions that wait for one another.
std::optional<std::string> orderByFile(const ScheduleProblem &problem,
                                       const OrderFile &file, int stages,
                                       UnitOrders &orders);

/// What is said of a schedule that is a file. Its orders are those of
/// orderByFile, and so it is none of getScheduleKinds.
extern const ScheduleKind kFromFile;

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_ORDERFILE_H
