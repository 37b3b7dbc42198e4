//===- KernelPipeline.cpp - From kernels in linalg to the LLVM dialect ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Passes.h"
#include "compiler/codegen/kernels/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace partita::codegen {
namespace {

struct KernelPipelineOptions : PassPipelineOptions<KernelPipelineOptions> {
  Option<std::string> level{
      *this, "level",
      llvm::cl::desc("processors to compile for (x86-64-v3, x86-64-v4)")};
};

} // namespace

void addKernelPasses(OpPassManager &pm) {
  pm.addPass(createEmitKernelLoopsPass());
  addArithmeticPasses(pm);
  addConversionPasses(pm, /*hasLibm=*/true);
  // Last: a body is an ordinary function of pointers until here.
  pm.addPass(createAddKernelEntriesPass());
}

void registerKernelPipelines() {
  PassPipelineRegistration<>(
      "lower-kernels-to-loops", "the model's kernels as loops and vectors",
      [](OpPassManager &pm) {
        pm.nest<ModuleOp>().addPass(createEmitKernelLoopsPass());
      });
  PassPipelineRegistration<KernelPipelineOptions>(
      "lower-kernels-to-llvm", "the model's kernels in the LLVM dialect",
      [](OpPassManager &pm, const KernelPipelineOptions &options) {
        OpPassManager &kernels = pm.nest<ModuleOp>();
        addKernelPasses(kernels);
        if (!options.level.empty())
          kernels.addPass(createSetKernelTargetPass({options.level}));
      });
}

} // namespace partita::codegen
