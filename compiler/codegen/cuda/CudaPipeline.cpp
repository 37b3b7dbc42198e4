//===- CudaPipeline.cpp - From kernels in linalg to the LLVM dialect ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Passes.h"
#include "compiler/codegen/kernels/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

struct CudaPipelineOptions : PassPipelineOptions<CudaPipelineOptions> {
  Option<std::string> architecture{
      *this, "architecture",
      llvm::cl::desc("GPUs to compile for (sm_80, sm_90, sm_100, sm_120)"),
      llvm::cl::init("sm_80")};
};

} // namespace

void addCudaPasses(OpPassManager &pm, StringRef architecture) {
  pm.addPass(createEmitCudaKernelsPass());
  addArithmeticPasses(pm);
  // There is no mathematics library for what is left.
  pm.addPass(createExpandCudaFunctionsPass());
  pm.addPass(createCheckCudaFunctionsPass());
  addConversionPasses(pm, /*hasLibm=*/false);
  pm.addPass(createSetCudaTargetPass({architecture.str()}));
}

void registerCudaPipelines() {
  PassPipelineRegistration<>(
      "lower-cuda-kernels-to-threads",
      "the model's kernels as what each thread of a grid does",
      [](OpPassManager &pm) {
        pm.nest<ModuleOp>().addPass(createEmitCudaKernelsPass());
      });
  PassPipelineRegistration<CudaPipelineOptions>(
      "lower-cuda-kernels-to-llvm",
      "the model's kernels for GPUs in the LLVM dialect",
      [](OpPassManager &pm, const CudaPipelineOptions &options) {
        addCudaPasses(pm.nest<ModuleOp>(), options.architecture);
      });
}

} // namespace partita::codegen::cuda
