//===- Compile.h - From an ONNX model to an artifact ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_COMPILE_H
#define PARTITA_COMPILER_DRIVER_COMPILE_H

#include "compiler/codegen/Codegen.h"
#include "compiler/emit/Emit.h"
#include "compiler/import/graph/Import.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/pipeline/plan/Summary.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {

/// Where compilation stops: `--emit`. All but `artifact` print the IR.
enum class EmitKind {
  nn,       ///< after import and simplification
  stages,   ///< stages and transfers (dist)
  clusters, ///< lowered clusters and the kernels' linalg
  plan,     ///< the plan dialect
  artifact
};

/// Which inner values become outputs of the artifact, to compare them.
struct ExposeOptions {
  std::string nodes;    ///< glob over node names; empty: none
  bool unfused = false; ///< before anything is rewritten or fused
};

struct CompileOptions {
  import::ImportOptions import;
  pipeline::PartitionOptions partition;
  codegen::CodegenOptions codegen;
  emit::EmitOptions emit;
  ExposeOptions expose;
  bool winograd = true; ///< for large convolutions of 3x3 windows
  /// Every op by itself, as the importer made it, by scalar loops: what other
  /// compilations are compared with.
  bool reference = false;
  EmitKind kind = EmitKind::artifact;
  /// Called as each phase begins, with its name and number of `phases`.
  llvm::function_ref<void(llvm::StringRef name, int phase, int phases)>
      progress;
};

/// Adds every dialect that compilation uses, with the interfaces that its
/// passes need.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// Compiles a model. Messages go through the context's diagnostics. On success
/// the artifact is written, or (other kinds) the IR printed to `ir`, and
/// `summary` holds the plan if compilation came that far.
mlir::LogicalResult compileModel(mlir::MLIRContext &context,
                                 const CompileOptions &options,
                                 llvm::raw_ostream &ir,
                                 std::optional<pipeline::Summary> &summary);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_COMPILE_H
