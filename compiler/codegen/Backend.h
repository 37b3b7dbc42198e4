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

#include "compiler/codegen/CallTuning.h"
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/DeviceSpeeds.h"
#include "compiler/codegen/KernelGrouping.h"

#include <memory>
#include <optional>
#include <string>

namespace partita::codegen {

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

/// The call of the body of a cluster, or null.
plan::CallAttr matchCall(const Backend &backend, nn::ClusterOp cluster);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_BACKEND_H
