//===- Backend.h - What computes clusters on a kind of device ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A backend knows one kind of device: which clusters a library computes there,
// what memory that takes, what it costs, and how kernels of ours are compiled.
// The phases of the compiler ask it; none of them knows a library or a
// processor. A backend is a folder inside this one and one call of
// `registerBackend`.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_BACKEND_H
#define PARTITA_COMPILER_CODEGEN_BACKEND_H

#include "compiler/analysis/Rates.h"
#include "compiler/codegen/Codegen.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>
#include <optional>

namespace partita::codegen {

/// A library call in terms of what is measured of a machine
/// (runtime/abi/machine.h).
struct CallWork {
  mlir::Operation *root = nullptr; ///< the op that takes the call's time
  llvm::StringRef table;           ///< of operations a nanosecond
  llvm::SmallVector<double> point; ///< the shape, along the table's axes
  double operations = 0;           ///< with vectors that are filled in part
  bool ofIntegers = false;         ///< a product of integers of 8 bits
  double weightRows = 0;           ///< that read the weights
  double weightBytes = 0;          ///< that the call has by heart; 0: none
  double parts = 0; ///< that threads take in turns; 0: they share all evenly
};

/// A kernel in the IR, and how a device starts it.
struct BuiltKernel {
  mlir::func::FuncOp function;
  int64_t extent = 1, grain = 1;
  llvm::SmallVector<int64_t> inPlace; ///< pairs (operand, result)
};

class Backend {
public:
  virtual ~Backend() = default;

  //===--------------------------------------------------------------------===//
  // Calls
  //===--------------------------------------------------------------------===//

  /// Whether a call may have the op as its root: the one that the library
  /// computes, all others being views or steps on the way in and out.
  virtual bool isCallRoot(mlir::Operation *op) const = 0;

  /// Whether only a call can compute the op.
  virtual bool needsCall(mlir::Operation *op) const = 0;

  /// The call that computes all of the ops, given in topological order, or
  /// null. `inputs` and `results` are what comes in and goes out: views number
  /// them so.
  virtual plan::CallAttr
  matchCall(llvm::ArrayRef<mlir::Operation *> ops,
            llvm::ArrayRef<mlir::Value> inputs,
            llvm::ArrayRef<mlir::Value> results) const = 0;

  /// Writes on the ops of a call by which method they are computed, if that
  /// changes how results round (`nn.winograd`). Asked before the model is cut,
  /// so that every cut gives the same bits.
  virtual void chooseMethod(llvm::ArrayRef<mlir::Operation *> ops,
                            analysis::Rates &rates) const = 0;

  /// Whether a call with this root adds a tensor upon what its result's bytes
  /// held faster than one from elsewhere. The two may round differently, so
  /// this too is asked before the model is cut (`nn.accumulate`).
  virtual bool accumulates(mlir::Operation *root) const = 0;

  /// Fails, with a diagnostic, for a call that is larger than the library
  /// counts.
  virtual llvm::LogicalResult checkCall(nn::ClusterOp cluster) const = 0;

  //===--------------------------------------------------------------------===//
  // What a call takes
  //===--------------------------------------------------------------------===//

  /// Bytes, at most, in which the library keeps an operand in an order of its
  /// own once it is loaded, if it is known then; nothing if the library reads
  /// the operand as it lies.
  virtual std::optional<int64_t> getPackedBytes(plan::CallAttr call,
                                                unsigned operand,
                                                mlir::Type element) const = 0;

  /// Bytes of scratch on each core, at most, beyond those that every call may
  /// have. `packed`: operands that may be packed are known when loading.
  virtual int64_t getScratchBytes(plan::CallAttr call, bool packed) const = 0;

  /// What the call of these ops computes; nothing if such calls are not
  /// measured. `lanes`: floats in a vector.
  virtual std::optional<CallWork>
  getCallWork(llvm::ArrayRef<mlir::Operation *> ops, analysis::Rates &rates,
              int64_t lanes) const = 0;

  //===--------------------------------------------------------------------===//
  // Kernels
  //===--------------------------------------------------------------------===//

  /// The dialects that kernels are written in.
  virtual void registerDialects(mlir::DialectRegistry &registry) const = 0;

  /// Appends the kernel of a cluster to the block of `b`, with its schedule.
  /// `reference`: the plainest one.
  virtual mlir::FailureOr<BuiltKernel> buildKernel(mlir::OpBuilder &b,
                                                   nn::ClusterOp cluster,
                                                   bool reference) const = 0;

  /// Fails, with a diagnostic, if a kernel has no schedule, or the plan around
  /// the kernels starts one otherwise than its schedule says.
  virtual llvm::LogicalResult checkKernels(mlir::ModuleOp kernels) const = 0;

  /// Compiles all functions of a module of kernels, for each of the levels.
  virtual mlir::FailureOr<std::vector<CompiledObject>>
  compile(mlir::ModuleOp kernels, llvm::ArrayRef<abi::CpuLevel> levels,
          bool optimize) const = 0;
};

/// Makes a backend known for the rest of the process; a second one of the same
/// kind is dropped.
void registerBackend(llvm::StringRef kind, std::unique_ptr<Backend> backend);

/// The backend of a kind of device. Ends the process if nobody registered it.
const Backend &getBackend(llvm::StringRef kind = "cpu");

/// The call of the body of a cluster, or null.
plan::CallAttr matchCall(const Backend &backend, nn::ClusterOp cluster);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_BACKEND_H
