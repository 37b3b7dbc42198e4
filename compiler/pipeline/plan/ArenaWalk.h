//===- ArenaWalk.h - What lies in a device's arena, and when ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_ARENAWALK_H
#define PARTITA_COMPILER_PIPELINE_PLAN_ARENAWALK_H

#include "dialects/plan/PlanDialect.h"

#include <string>
#include <utility>
#include <vector>

namespace partita::pipeline {

/// A tensor in the arena, from the instruction or action that writes it to the
/// last that needs it.
struct LiveTensor {
  mlir::Operation *writer = nullptr; ///< an instruction or an action
  int64_t offset = 0, bytes = 0;
  int64_t begin = 0, end = 0;                ///< instructions, in order
  int64_t first_action = 0, last_action = 0; ///< of the schedule
  bool is_sum = false;                       ///< over micro-batches

  /// Whether it outlives the unit that makes it.
  bool isKept() const { return first_action != last_action; }
};

struct Moment {
  int64_t time = 0;
  int64_t bytes = 0;
};

/// Follows a program once and finds what is alive when.
class ArenaWalk {
public:
  explicit ArenaWalk(plan::ProgramOp program);

  /// The moment at which most bytes are needed; a byte that two tensors share
  /// counts once.
  Moment findPeak() const;

  /// A moment as errors call it: "'fc1' in unit F0, micro-batch 2".
  std::string nameOf(const Moment &moment) const;
  /// The node that makes a tensor, the input, or what is received.
  std::string nameOf(const LiveTensor &tensor) const;

  /// What is alive at a time, the largest first.
  std::vector<const LiveTensor *> getTensors(int64_t time) const;

  /// The bytes of the arena that tensors take; a byte that two share counts
  /// once.
  static int64_t countBytes(std::vector<const LiveTensor *> alive);

private:
  /// A slot that actions write.
  struct Place {
    size_t number = 0; ///< of its first copy, in `openOf`
    int64_t offset = 0, bytes = 0;
    llvm::ArrayRef<int64_t> copies; ///< of its frame; empty: it is in none
    bool is_sum = false;
  };
  struct Instruction {
    mlir::Operation *op;
    llvm::SmallVector<const Place *> reads, writes;
  };

  struct Started {
    mlir::Value source;
    int64_t time = 0, action = 0;
  };

  void addPlaces(mlir::Block &body);
  void addUnit(plan::UnitOp unit);
  void visit(plan::ActionOpInterface action);
  int64_t now() const { return static_cast<int64_t>(moments.size()) - 1; }
  const Place *find(mlir::Value slot) const;
  size_t copyOf(const Place &place) const;
  void read(const Place *place);
  void write(const Place *place, mlir::Operation *writer);
  void finish(const Started &start, mlir::Value target);
  static llvm::SmallVector<mlir::Value> getParts(mlir::Value slot);

  mutable mlir::ModuleOp module;
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::StringMap<std::vector<Instruction>> units;
  /// Instructions and actions, and their micro-batch, by time.
  std::vector<std::pair<mlir::Operation *, int64_t>> moments;
  llvm::SmallVector<LiveTensor> tensors, open;
  std::vector<int64_t> openOf; ///< in `open`, by copy of a slot; -1: none
  /// By channel and micro-batch.
  llvm::DenseMap<std::pair<mlir::Attribute, int64_t>, mlir::Value> sent;
  /// By collective and micro-batch.
  llvm::DenseMap<std::pair<mlir::Attribute, int64_t>, Started> started;
  int64_t microBatch = 0; ///< of the action at hand
  int64_t actionCount = 0;
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_ARENAWALK_H
