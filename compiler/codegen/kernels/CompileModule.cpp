//===- CompileModule.cpp - LLVM IR to what a target runs ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/CompileModule.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"

namespace partita::codegen {

std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const MachineOptions &options, std::string &error) {
  llvm::Triple triple(options.triple);
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, options.cpu, options.features, options.target, options.relocation,
      std::nullopt, options.level));
}

void improve(llvm::Module &module, llvm::TargetMachine &machine,
             llvm::OptimizationLevel level,
             const llvm::PipelineTuningOptions &tuning,
             llvm::StringRef without) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks callbacks;
  if (!without.empty())
    callbacks.registerShouldRunOptionalPassCallback(
        [&](llvm::StringRef pass, const llvm::Any &) {
          return pass != without;
        });
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}

std::optional<std::vector<char>> emitFile(llvm::Module &module,
                                          llvm::TargetMachine &machine,
                                          llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emit;
  if (machine.addPassesToEmitFile(emit, stream, nullptr, type))
    return std::nullopt;
  emit.run(module);
  return std::vector<char>(bytes.begin(), bytes.end());
}

} // namespace partita::codegen
