//===- Emit.h - From the plan dialect to an artifact ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_EMIT_EMIT_H
#define PARTITA_COMPILER_EMIT_EMIT_H

#include "runtime/abi/artifact.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace partita::emit {

/// The code of all compiled kernels: a shared object for one CPU level, or PTX
/// for one architecture of GPUs.
struct ObjectFile {
  abi::CpuLevel level = abi::CpuLevel::none;
  std::vector<char> bytes;
  abi::GpuArchitecture architecture = abi::GpuArchitecture::none;
};

enum class WeightPlacement {
  inside, ///< copied into the artifact
  beside  ///< references to the model's own files, relative to the artifact
};

struct EmitOptions {
  std::string output; ///< path of the artifact
  WeightPlacement weights = WeightPlacement::inside;
  /// The model, if it is trained: the artifact says where it is, and where it
  /// has each parameter.
  std::string trainedModel;
};

/// A module with a plan, and the kernels that the plan starts.
struct CompiledPlan {
  mlir::ModuleOp module;
  std::vector<ObjectFile> objects;
};

/// Writes an artifact with plans of one model, in the given order and in the
/// layout of runtime/abi/artifact.h. The same modules, objects and weights give
/// the same bytes. The file appears whole or not at all: it is written under
/// another name in the same folder, synchronised and renamed. Only weights that
/// a step or a load program reads are written, each once. A weight that has no
/// file of its own is always inside the artifact. Errors go through the
/// modules' diagnostics.
mlir::LogicalResult emitArtifact(llvm::ArrayRef<CompiledPlan> plans,
                                 const EmitOptions &options);

} // namespace partita::emit

#endif // PARTITA_COMPILER_EMIT_EMIT_H
