//===- StateHomes.h - The device that has a state ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state lies on one device: that of the stage which updates it. What another
// device reads of it is sent there once a step, before the first micro-batch.
// What each micro-batch writes (`nn.carried`) has one stage, which hands what
// the micro-batch has found on to the stages behind it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PHASES_STATEHOMES_H
#define PARTITA_COMPILER_PIPELINE_PHASES_STATEHOMES_H

#include "compiler/pipeline/partition/PartitionGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <string>
#include <vector>

namespace partita::pipeline {

/// The stage of each state of a function whose ops have stages, by the weight's
/// symbol: the one that another plan has it on (`dist.state_stages`), or else
/// the one that updates it, or else the first that reads it.
std::map<std::string, int64_t> findStateStages(mlir::func::FuncOp function);

/// By cluster: the first one with which it must be on one stage, since one
/// reads a state that a micro-batch writes, and the other makes its new value,
/// or lies between them. Empty: each may be on a stage of its own.
std::vector<int> joinStates(mlir::func::FuncOp function,
                            const PartitionGraph &graph);

/// Ops that read a state on a device that does not have it read an op of the
/// state's stage instead, which hands it on. Emits an error if an update reads
/// a state of another device: it may be written already.
llvm::LogicalResult handStatesOn(mlir::func::FuncOp function);

/// The ops that make what all micro-batches of a step have in common, but each
/// anew: what devices gather of the parts of states that replicas share, and
/// what follows from that alone. A cluster is one of them as a whole.
llvm::DenseSet<mlir::Operation *> findGathered(mlir::func::FuncOp function);

/// What is gathered, each unit that reads it makes for itself, just before it
/// is read: it would take the memory that the parts have spared if it were kept
/// from forward to backward, and more bytes than a part if it were sent to
/// another stage. `turningStage` is the stage, -1 if none, whose forward and
/// backward are one unit: what it gathers last for its forward and first for
/// its backward, it makes once.
void gatherAgain(mlir::func::FuncOp function, int64_t turningStage);

/// Sums over micro-batches are other names of their accumulators: each reader
/// on the sum's own stage gets one of its own. Otherwise units of the stage
/// would copy sums for each other.
void repeatSums(mlir::func::FuncOp function);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PHASES_STATEHOMES_H
