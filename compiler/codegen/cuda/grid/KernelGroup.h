//===- KernelGroup.h - Kernels that start as one ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small kernels take less time than their launches, and leave most of a GPU
// idle. So kernels that do not wait for each other are *grouped*: each of them
// has a range of one grid's blocks. A group's function calls its members. Its
// operands and results are theirs, one member after another:
//
//   func @g0(%a0, %a1, %b0, %out_a, %out_b) -> (..., ...)
//       attributes {nn.grid = {threads = 256}} {
//     %a = call @k0(%a0, %a1, %out_a)
//     %b = call @k1(%b0, %out_b)
//     return %a, %b
//   }
//
// Members that are the same kernel share its code, and an operand that several
// members read is one of the group.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_GRID_KERNELGROUP_H
#define PARTITA_COMPILER_CODEGEN_CUDA_GRID_KERNELGROUP_H

#include "compiler/codegen/cuda/grid/GridSchedule.h"

#include <optional>

namespace partita::codegen::cuda {

/// The most members of a group, the most blocks of a member, the most operands
/// and results of a group (their addresses have 4 KiB), and the most bytes that
/// a member reads and writes: a GPU moves them in about the time of a launch.
inline constexpr int64_t kMostMembers = 64, kMostMemberBlocks = 1024,
                         kMostGroupOperands = 512,
                         kMostMemberBytes = int64_t(4) << 20;

/// One member of a group: its operands among those of the group, and where its
/// results begin.
struct GroupMember {
  mlir::func::FuncOp kernel;
  GridSchedule schedule;
  llvm::SmallVector<int64_t> inputs;
  int64_t firstResult = 0;
};

struct KernelGroup {
  llvm::SmallVector<GroupMember, 2> members;
  int64_t inputs = 0; ///< how many there are
  int64_t getBlocks() const;
  int64_t getThreads() const { return members.front().schedule.threads; }
  /// Pairs (operand, result) of the group, as its members have them. What
  /// several members read is written by none.
  llvm::SmallVector<int64_t> getInPlace() const;
};

/// Whether a kernel is a group.
bool isGroup(mlir::func::FuncOp kernel);

/// Puts kernels together. Operand i of all kernels, one kernel after another,
/// is operand inputs[i] of the group. Fails if they cannot be one group.
mlir::FailureOr<KernelGroup>
formGroup(llvm::ArrayRef<mlir::func::FuncOp> kernels,
          llvm::ArrayRef<int64_t> inputs);

/// Appends the group's function to the block of `b`.
mlir::func::FuncOp buildGroup(mlir::OpBuilder &b, KernelGroup &group);

/// Reads a group from its function. Fails with a diagnostic if it is not one.
mlir::FailureOr<KernelGroup> readGroup(mlir::func::FuncOp function);

/// Appends what each thread of the group does to `target`, under its name.
mlir::LogicalResult emitGroup(mlir::func::FuncOp function,
                              mlir::ModuleOp target);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_GRID_KERNELGROUP_H
