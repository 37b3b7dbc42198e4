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
#include "compiler/crash/CrashReport.h"
#include "compiler/simplify/Passes.h"
#ifdef PARTITA_HAS_FUSE
#include "compiler/fuse/Passes.h"
#endif
#ifdef PARTITA_HAS_CODEGEN
#include "compiler/codegen/Passes.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "compiler/codegen/cpu/Passes.h"
#endif
#ifdef PARTITA_HAS_PIPELINE
#include "compiler/pipeline/Passes.h"
#endif
#ifdef PARTITA_HAS_SHARD
#include "compiler/shard/Passes.h"
#endif

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  partita::crash::installCrashReport("partita-opt");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<partita::nn::NNDialect>();
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

  mlir::registerTransformsPasses();
  partita::analysis::registerAnalysisPasses();
  partita::simplify::registerSimplifyPasses();
  partita::simplify::registerSimplifyPipeline();
#ifdef PARTITA_HAS_FUSE
  partita::fuse::registerFusePasses();
#endif
#ifdef PARTITA_HAS_CODEGEN
  partita::codegen::registerCpuBackend();
  partita::codegen::registerCodegenPasses();
  partita::codegen::registerCodegenCpuPasses();
  partita::codegen::registerKernelPipelines();
#endif
#ifdef PARTITA_HAS_PIPELINE
  partita::pipeline::registerPipelinePasses();
#endif
#ifdef PARTITA_HAS_SHARD
  partita::shard::registerShardPasses();
#endif

  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Partita pass driver\n", registry));
}
