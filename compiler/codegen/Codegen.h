//===- Codegen.h - From clusters to machine code ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `addCodegenPasses` gives every `nn.cluster` its `lowering`: a library call
// (`#plan.call`) or a kernel (`#plan.kernel`). The kernels are functions on
// tensors, in linalg, in a module named `kernels` inside the module. Each is
// compiled once, even if several clusters use it. `compileKernels` compiles
// them to shared objects whose functions follow runtime/abi/kernel.h.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CODEGEN_H
#define PARTITA_COMPILER_CODEGEN_CODEGEN_H

#include "runtime/abi/artifact.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"

#include <vector>

namespace partita::codegen {

class ObjectCache;

/// Name of the module that holds the kernels.
inline constexpr llvm::StringLiteral kKernelsModule = "kernels";

/// The module of kernels inside `module`; null if no pass made one yet.
mlir::ModuleOp getKernelsModule(mlir::ModuleOp module);

/// All of them. There is a second one, with a `plan.target` of its own, if some
/// kernels are for processors and some are started as grids.
llvm::SmallVector<mlir::ModuleOp> getKernelsModules(mlir::ModuleOp module);

/// Whether another of these modules has a kernel of that name.
bool isKernelElsewhere(mlir::ModuleOp kernels, llvm::StringRef name);

/// On a kernel, and on a module of kernels: it is compiled to scalar loops, as
/// the reference for tests.
inline constexpr llvm::StringLiteral kReferenceAttr = "nn.reference";

struct CodegenOptions {
  /// Instruction-set levels to compile for, one object each.
  std::vector<abi::CpuLevel> levels = {abi::CpuLevel::x86_64_v3,
                                       abi::CpuLevel::x86_64_v4};
  /// Whether LLVM optimizes the code. Without it, kernels compile several times
  /// faster and run several times slower, with the same results.
  bool optimize = true;
  /// Holds the objects that were compiled before, and takes new ones.
  ObjectCache *cache = nullptr;
};

/// The code of all kernels: a shared object for processors of one level, or PTX
/// for GPUs of one architecture.
struct CompiledObject {
  abi::CpuLevel level = abi::CpuLevel::none;
  std::vector<char> bytes;
  abi::GpuArchitecture architecture = abi::GpuArchitecture::none;
};

/// Compiles all functions of a module of kernels. The module does not change. A
/// module without functions gives no objects. Either all functions have
/// `nn.reference` or none has.
mlir::FailureOr<std::vector<CompiledObject>>
compileKernels(mlir::ModuleOp kernels, const CodegenOptions &options = {});

/// Adds the passes that give every cluster a lowering of its kind. `reference`:
/// kernels are scalar loops.
void addCodegenPasses(mlir::OpPassManager &pm, bool reference = false);

/// Dialects and interfaces that `compileKernels` and the passes use.
void registerCodegenDialects(mlir::DialectRegistry &registry);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CODEGEN_H
