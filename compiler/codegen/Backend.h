//===- Backend.h - How a kind of device computes clusters -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A backend knows one kind of device. It says which clusters a library computes
// there, how much memory a library call takes, and how our own kernels are
// compiled. The phases of the compiler ask it: none of them knows a library or
// a processor. What only some kinds of device have is an object of its own, and
// null elsewhere. To add a backend, add a folder inside this one and a call of
// `registerBackend`.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_BACKEND_H
#define PARTITA_COMPILER_CODEGEN_BACKEND_H

#include "compiler/analysis/Rates.h"
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/DeviceSpeeds.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>
#include <optional>
#include <string>

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

/// What the compiler decides for the library of a kind of device, beside which
/// ops become calls: the method of a call, where it accumulates, which operands
/// are packed when a plan is loaded, and what it takes by the tables that were
/// measured on a machine. A library that decides all of this by itself, at run
/// time, has no such object.
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

/// A kernel in the IR, and how a device starts it: by the extent of its
/// parallel loop, or by a grid of blocks.
struct BuiltKernel {
  mlir::func::FuncOp function;
  int64_t extent = 1, grain = 1;
  llvm::SmallVector<int64_t> launch;  ///< blocks, threads; empty: no grid
  llvm::SmallVector<int64_t> inPlace; ///< pairs (operand, result)
};

/// Where a launch takes as long as a small kernel, kernels that do not wait for
/// each other start together.
class KernelGrouping {
public:
  virtual ~KernelGrouping() = default;

  /// Whether a cluster's kernel is so small that it should start together with
  /// others that do not wait for it, nor it for them.
  virtual bool isSmall(nn::ClusterOp cluster) const = 0;

  /// Whether these kernels can start as one. Operand i of all kernels, one
  /// kernel after another, is operand inputs[i] of that one.
  virtual bool canGroup(llvm::ArrayRef<mlir::func::FuncOp> kernels,
                        llvm::ArrayRef<int64_t> inputs) const = 0;

  /// Appends one kernel that computes what all of these do, to the block of
  /// `b`. Its results are theirs, one kernel after another.
  virtual BuiltKernel group(mlir::OpBuilder &b,
                            llvm::ArrayRef<mlir::func::FuncOp> kernels,
                            llvm::ArrayRef<int64_t> inputs) const = 0;
};

class Backend {
public:
  virtual ~Backend() = default;

  /// An error text if the kind of device has no such architecture, or "". The
  /// target of a kind with several is written with a colon: "cuda:sm_90".
  virtual std::string checkArchitecture(llvm::StringRef architecture) const = 0;

  /// The speeds of the usual device of an architecture, from published figures.
  /// Nothing if the device is priced by what was measured of cores.
  virtual std::optional<DeviceSpeeds>
  getDeviceSpeeds(llvm::StringRef architecture) const {
    return std::nullopt;
  }

  /// The time in nanoseconds of these ops as one kernel or call on a device
  /// with such speeds, where they touch so many bytes. It is asked of backends
  /// that have speeds.
  virtual double getDeviceTime(const DeviceSpeeds &speeds,
                               llvm::ArrayRef<mlir::Operation *> ops,
                               nn::ClusterKind kind, int64_t bytes) const {
    return 0;
  }

  //===--------------------------------------------------------------------===//
  // Calls
  //===--------------------------------------------------------------------===//

  /// Whether a call may have the op as its root. The library computes the root;
  /// all other ops of a call are views, or are applied to its operands or
  /// result.
  virtual bool isCallRoot(mlir::Operation *op) const = 0;

  /// Whether only a call can compute the op.
  virtual bool needsCall(mlir::Operation *op) const = 0;

  /// The call that computes all of the ops, given in topological order, or
  /// null. `inputs` and `results` are the values that enter and leave the call.
  /// Views refer to them by their positions here.
  virtual plan::CallAttr
  matchCall(llvm::ArrayRef<mlir::Operation *> ops,
            llvm::ArrayRef<mlir::Value> inputs,
            llvm::ArrayRef<mlir::Value> results) const = 0;

  /// Whether attention of q [B, H, M, D] and v [B, H, L, E] is best kept whole,
  /// for a call or a kernel, where calls are used. If not, its products are
  /// calls. `hasFactor`: a mask multiplies the scores. `isAsked`: somebody
  /// asked for calls of attention.
  virtual bool keepsAttention(mlir::RankedTensorType q,
                              mlir::RankedTensorType v, bool hasFactor,
                              bool isAsked) const {
    return true;
  }

  /// How products of a model of f32 may be computed with halves.
  enum class HalfProducts {
    none,  ///< they are no faster
    plain, ///< with operands and a result of halves
    fused ///< a bias is added, and a ReLU applied, before the result is rounded
  };
  virtual HalfProducts getHalfProducts(mlir::Operation *op,
                                       mlir::FloatType half) const {
    return HalfProducts::fused;
  }

  /// What else the compiler decides for the library; null: nothing.
  virtual const CallTuning *getCallTuning() const { return nullptr; }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// Where weights and constants begin in the device's memory: at multiples of
  /// so many bytes, which count as their own.
  virtual int64_t getWeightAlignment() const { return 1; }

  /// Whether kernels can read and write states in the memory of a host that is
  /// not the device's own.
  virtual bool reachesHost() const { return false; }

  /// Whether what more than two devices add up together is added in the order
  /// that runtime/comm/Collective.h says.
  virtual bool hasOrderedSums() const { return true; }

  /// An upper bound on the bytes of scratch per core that the call needs beyond
  /// what every call may use. `packed`: operands that may be packed are known
  /// at load. `element`: the type of the second operand, or of the only one.
  virtual int64_t getScratchBytes(plan::CallAttr call, bool packed,
                                  mlir::Type element) const = 0;

  //===--------------------------------------------------------------------===//
  // Kernels
  //===--------------------------------------------------------------------===//

  /// The dialects that kernels are written in.
  virtual void registerDialects(mlir::DialectRegistry &registry) const = 0;

  /// Appends the kernel of a cluster to the block of `b`, with its schedule.
  /// `reference`: the simplest schedule.
  virtual mlir::FailureOr<BuiltKernel> buildKernel(mlir::OpBuilder &b,
                                                   nn::ClusterOp cluster,
                                                   bool reference) const = 0;

  /// Which kernels start together; null: each starts alone.
  virtual const KernelGrouping *getKernelGrouping() const { return nullptr; }

  /// How the kernel of this function starts, by its schedule. Fails, with a
  /// diagnostic, if it has none.
  virtual mlir::FailureOr<BuiltKernel>
  readKernel(mlir::func::FuncOp kernel) const = 0;

  /// Fails, with a diagnostic, if a kernel has no schedule, or if a dispatch of
  /// the surrounding plan does not match the kernel's schedule.
  llvm::LogicalResult checkKernels(mlir::ModuleOp kernels) const;

  /// Whether kernels are compiled for each level of CPUs.
  virtual bool hasCpuLevels() const { return false; }

  /// Compiles all functions of a module of kernels, for each of the levels. A
  /// backend without levels is asked for `none`.
  virtual mlir::FailureOr<std::vector<CompiledObject>>
  compile(mlir::ModuleOp kernels, llvm::ArrayRef<abi::CpuLevel> levels,
          bool optimize) const = 0;
};

/// Registers a backend for the rest of the process. A second one of the same
/// kind is dropped.
void registerBackend(llvm::StringRef kind, std::unique_ptr<Backend> backend);

/// On a module: the kind of its devices, and the architecture of those, e.g.
/// "cuda:sm_90". A module without it is for CPUs.
inline constexpr llvm::StringLiteral kTargetAttr = "plan.target";

/// The kind and the architecture of a target; the latter may be "".
inline std::pair<llvm::StringRef, llvm::StringRef>
splitTarget(llvm::StringRef target) {
  return target.split(':');
}

/// The target of the modules around an op.
llvm::StringRef getTarget(mlir::Operation *op);

/// All backends, in the order of their kinds.
std::vector<const Backend *> getBackends();

/// The backend of a kind of device, or null.
const Backend *findBackend(llvm::StringRef kind);

/// The backend for the target of an op. Ends the process if nobody registered
/// it.
const Backend &getBackend(mlir::Operation *op);

/// The target of the devices at each place along the axis "stage", an array of
/// strings (compiler/model/Decision.h).
inline constexpr llvm::StringLiteral kPlaceTargetsAttr = "dist.targets";

/// Whether all backends for which a function is compiled say so. Passes on the
/// whole model ask here for whom they rewrite it: the IR says it, by
/// `plan.target` of the module, or by `dist.targets` of the function, where
/// devices are of several kinds.
bool allBackends(mlir::Operation *function,
                 llvm::function_ref<bool(const Backend &)> says);

/// On a module: NaN that is computed must stay NaN. A step that has written
/// states cannot be computed again by other code.
inline constexpr llvm::StringLiteral kKeepsNanAttr = "plan.keeps_nan";

/// Whether the module of an op says so.
bool keepsNan(mlir::Operation *op);

/// The call of the body of a cluster, or null.
plan::CallAttr matchCall(const Backend &backend, nn::ClusterOp cluster);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_BACKEND_H
