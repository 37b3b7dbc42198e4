//===- partita-opt.cpp - Runs single passes, for lit tests ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "compiler/analysis/Passes.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/Passes.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "compiler/codegen/cpu/Passes.h"
#include "compiler/codegen/cuda/CudaBackend.h"
#include "compiler/codegen/cuda/Passes.h"
#include "compiler/codegen/kernels/Passes.h"
#include "compiler/crash/CrashReport.h"
#include "compiler/fuse/Passes.h"
#include "compiler/passes/Phases.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/shard/Passes.h"
#include "compiler/simplify/Passes.h"
#include "compiler/train/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"

/// What LLVM's code generators register is for their developers;
/// --help-hidden lists it.
static void hideLlvmOptions() {
  for (auto &entry : llvm::cl::getRegisteredOptions())
    if (!entry.first.starts_with("help") && entry.first != "version")
      entry.second->setHiddenFlag(llvm::cl::Hidden);
}

static bool asksForHelp(llvm::ArrayRef<char *> words) {
  return llvm::any_of(words, [](llvm::StringRef word) {
    return word == "--help" || word == "-help" || word == "-h";
  });
}

int main(int argc, char **argv) {
  partita::crash::installCrashReport("partita-opt");
  mlir::DialectRegistry registry;
  registry.insert<partita::nn::NNDialect, partita::dist::DistDialect,
                  partita::plan::PlanDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::math::MathDialect>();
  // The context is made inside of MlirOptMain.
  registry.addExtension(
      +[](mlir::MLIRContext *context, partita::nn::NNDialect *) {
        partita::crash::trackPlaces(*context);
      });

  partita::analysis::registerAnalysisPasses();
  partita::autodiff::registerAutodiffPasses();
  partita::train::registerTrainPasses();
  partita::simplify::registerSimplifyPasses();
  partita::simplify::registerSimplifyPipeline();
  partita::fuse::registerFusePasses();
  partita::codegen::registerCpuBackend();
  partita::codegen::cuda::registerCudaBackend();
  partita::codegen::registerCodegenDialects(registry);
  partita::codegen::registerCodegenPasses();
  partita::codegen::registerCodegenCpuPasses();
  partita::codegen::registerCodegenKernelsPasses();
  partita::codegen::registerKernelPipelines();
  partita::codegen::cuda::registerCodegenCudaPasses();
  partita::codegen::cuda::registerCudaPipelines();
  partita::pipeline::registerPipelinePasses();
  partita::shard::registerShardPasses();
  partita::passes::registerPhases();

  if (asksForHelp(llvm::ArrayRef(argv, argc).drop_front())) {
    llvm::outs()
        << "Runs passes on the IR in a file, one after another as they "
           "are named. Partita's:\n\n";
    mlir::printRegisteredPasses();
    llvm::outs() << "\nThe compiler's phases, in order:\n";
    partita::passes::printPhases(llvm::outs());
    llvm::outs() << "\n";
  }
  mlir::registerTransformsPasses();
  hideLlvmOptions();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Partita pass driver\n", registry));
}
