//===- partita-opt.cpp - Runs single passes, for lit tests ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#ifdef PARTITA_HAS_DIST
#include "dialects/dist/DistDialect.h"
#endif
#ifdef PARTITA_HAS_PLAN
#include "dialects/plan/PlanDialect.h"
#endif

#include "compiler/analysis/Passes.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/crash/CrashReport.h"
#include "compiler/simplify/Passes.h"
#include "compiler/train/Passes.h"
#ifdef PARTITA_HAS_FUSE
#include "compiler/fuse/Passes.h"
#endif
#ifdef PARTITA_HAS_CODEGEN
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/Passes.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "compiler/codegen/cpu/Passes.h"
#include "compiler/codegen/cuda/CudaBackend.h"
#include "compiler/codegen/cuda/Passes.h"
#include "compiler/codegen/kernels/Passes.h"
#endif
#ifdef PARTITA_HAS_PASSES
#include "compiler/passes/Phases.h"
#endif
#ifdef PARTITA_HAS_PIPELINE
#include "compiler/pipeline/Passes.h"
#endif
#ifdef PARTITA_HAS_SHARD
#include "compiler/shard/Passes.h"
#endif

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
  registry.insert<partita::nn::NNDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::math::MathDialect>();
  // The context is made inside of MlirOptMain.
  registry.addExtension(
      +[](mlir::MLIRContext *context, partita::nn::NNDialect *) {
        partita::crash::trackPlaces(*context);
      });
#ifdef PARTITA_HAS_DIST
  registry.insert<partita::dist::DistDialect>();
#endif
#ifdef PARTITA_HAS_PLAN
  registry.insert<partita::plan::PlanDialect>();
#endif

  partita::analysis::registerAnalysisPasses();
  partita::autodiff::registerAutodiffPasses();
  partita::train::registerTrainPasses();
  partita::simplify::registerSimplifyPasses();
  partita::simplify::registerSimplifyPipeline();
#ifdef PARTITA_HAS_FUSE
  partita::fuse::registerFusePasses();
#endif
#ifdef PARTITA_HAS_CODEGEN
  partita::codegen::registerCpuBackend();
  partita::codegen::cuda::registerCudaBackend();
  partita::codegen::registerCodegenDialects(registry);
  partita::codegen::registerCodegenPasses();
  partita::codegen::registerCodegenCpuPasses();
  partita::codegen::registerCodegenKernelsPasses();
  partita::codegen::registerKernelPipelines();
  partita::codegen::cuda::registerCodegenCudaPasses();
  partita::codegen::cuda::registerCudaPipelines();
#endif
#ifdef PARTITA_HAS_PIPELINE
  partita::pipeline::registerPipelinePasses();
#endif
#ifdef PARTITA_HAS_SHARD
  partita::shard::registerShardPasses();
#endif
#ifdef PARTITA_HAS_PASSES
  partita::passes::registerPhases();
#endif

  if (asksForHelp(llvm::ArrayRef(argv, argc).drop_front())) {
    llvm::outs()
        << "Runs passes on the IR in a file, one after another as they "
           "are named. Partita's:\n\n";
    mlir::printRegisteredPasses();
#ifdef PARTITA_HAS_PASSES
    llvm::outs() << "\nThe compiler's phases, in order:\n";
    partita::passes::printPhases(llvm::outs());
#endif
    llvm::outs() << "\n";
  }
  mlir::registerTransformsPasses();
  hideLlvmOptions();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Partita pass driver\n", registry));
}
