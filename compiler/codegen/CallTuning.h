//===- CallTuning.h - What is decided for a library of calls ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the compiler decides for the library of a kind of device, beside which
// ops become calls (Backend.h): the method of a call, where it accumulates,
// which operands are packed when a plan is loaded, and what it takes by the
// tables that were measured on a machine. A library that decides all of this
// by itself, at run time, has no such object.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CALLTUNING_H
#define PARTITA_COMPILER_CODEGEN_CALLTUNING_H

#include "compiler/analysis/Rates.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include <optional>

namespace partita::codegen {

/// The work of a library call, in terms of the tables that are measured on a
/// machine (runtime/abi/machine.h).
struct CallWork {
  mlir::Operation *root = nullptr; ///< the op that takes most of the time
  llvm::StringRef table;           ///< its name; of operations per nanosecond
  llvm::SmallVector<double> point; ///< the shape, as a point of the table
  double operations = 0;           ///< partly filled vectors count as full
  bool ofIntegers = false;         ///< a product of integers of 8 bits
  double weightRows = 0;           ///< rows that read the weights
  double weightBytes = 0;          ///< of weights known at load; 0: none
  double parts = 0; ///< each for one thread; 0: threads share the work evenly
};

class CallTuning {
public:
  virtual ~CallTuning() = default;

  /// Writes the method of computation on the ops of a call, if the method
  /// changes how results round (`nn.winograd`). This is called before the model
  /// is cut, so that every cut gives the same bits.
  virtual void chooseMethod(llvm::ArrayRef<mlir::Operation *> ops,
                            analysis::Rates &rates) const = 0;

  /// Whether a call with this root is faster if it accumulates into its
  /// result's bytes than if it adds a tensor from elsewhere. The two may round
  /// differently, so this too is asked before the model is cut
  /// (`nn.accumulate`).
  virtual bool accumulates(mlir::Operation *root) const = 0;

  /// Fails, with a diagnostic, if a call is larger than the library's integers
  /// can count.
  virtual llvm::LogicalResult checkCall(nn::ClusterOp cluster) const = 0;

  /// An upper bound on the bytes of the library's own reordered copy of an
  /// operand that is known at load. Nothing if the library reads the operand in
  /// its plain layout.
  virtual std::optional<int64_t> getPackedBytes(plan::CallAttr call,
                                                unsigned operand,
                                                mlir::Type element) const = 0;

  /// The work of the call of these ops; nothing if such calls are not measured.
  /// `lanes`: floats in a vector.
  virtual std::optional<CallWork>
  getCallWork(llvm::ArrayRef<mlir::Operation *> ops, analysis::Rates &rates,
              int64_t lanes) const = 0;
};

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CALLTUNING_H
