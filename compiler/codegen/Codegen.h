//===- Codegen.h - From clusters to machine code ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `--lower-clusters` gives every `nn.cluster` its `lowering`: a library call
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

#include <map>
#include <string>
#include <vector>

namespace partita::codegen {

/// Name of the module that holds the kernels.
inline constexpr llvm::StringLiteral kKernelsModule = "kernels";

/// The modules of kernels inside `module`; none if no pass made one yet. There
/// is a second one, with a `plan.target` of its own, if some kernels are for
/// processors and some are started as grids.
llvm::SmallVector<mlir::ModuleOp> getKernelsModules(mlir::ModuleOp module);

/// Whether another of these modules has a kernel of that name.
bool isKernelElsewhere(mlir::ModuleOp kernels, llvm::StringRef name);

/// On a kernel, and on a module of kernels: it is compiled to scalar loops, as
/// the reference for tests.
inline constexpr llvm::StringLiteral kReferenceAttr = "nn.reference";

/// The code of all kernels: a shared object for processors of one level, or PTX
/// for GPUs of one architecture.
struct CompiledObject {
  abi::CpuLevel level = abi::CpuLevel::none;
  std::vector<char> bytes;
  abi::GpuArchitecture architecture = abi::GpuArchitecture::none;
};

/// A process that compiles many models often meets the same kernels: a model's
/// kernels do not depend on the devices for which it is cut. The cache is for
/// one thread. It drops all objects when it is full.
class ObjectCache {
public:
  explicit ObjectCache(size_t capacity = size_t(64) << 20)
      : capacity(capacity) {}

  /// The code that was compiled for this level from a module of
  /// kernels with this text, or null.
  const CompiledObject *find(llvm::StringRef text, abi::CpuLevel level);
  void insert(llvm::StringRef text, abi::CpuLevel level,
              const CompiledObject &object);

  int64_t hits = 0, misses = 0;

private:
  std::map<std::pair<abi::CpuLevel, std::string>, CompiledObject> objects;
  size_t capacity, bytes = 0;
};

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

/// Compiles all functions of a module of kernels. The module does not change. A
/// module without functions gives no objects. Either all functions have
/// `nn.reference` or none has.
mlir::FailureOr<std::vector<CompiledObject>>
compileKernels(mlir::ModuleOp kernels, const CodegenOptions &options = {});

/// Dialects and interfaces that `compileKernels` and the passes use.
void registerCodegenDialects(mlir::DialectRegistry &registry);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CODEGEN_H
