//===- CompileModule.h - LLVM IR to what a target runs ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the backends ask of LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_COMPILEMODULE_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_COMPILEMODULE_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace partita::codegen {

/// The dialects that kernels are written in, and lowered through.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// What is compiled for. The target has been initialised.
struct MachineOptions {
  llvm::StringRef triple, cpu, features;
  llvm::TargetOptions target;
  std::optional<llvm::Reloc::Model> relocation;
  llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default;
};

/// Null, with `error`, if this build of LLVM does not have the target.
std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const MachineOptions &options, std::string &error);

/// Runs LLVM's own improvements of a level, without the pass of this name.
void improve(llvm::Module &module, llvm::TargetMachine &machine,
             llvm::OptimizationLevel level,
             const llvm::PipelineTuningOptions &tuning = {},
             llvm::StringRef without = {});

/// The module as a file of this type. Nothing if the target has no such files.
std::optional<std::vector<char>> emitFile(llvm::Module &module,
                                          llvm::TargetMachine &machine,
                                          llvm::CodeGenFileType type);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_COMPILEMODULE_H
