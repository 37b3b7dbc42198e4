//===- ArithmeticPasses.cpp - Arithmetic that LLVM has instructions for ---===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace partita::codegen {

void addArithmeticPasses(OpPassManager &pm) {
  pm.addPass(math::createMathExtendToSupportedTypes());
  // Before anything folds.
  pm.addPass(createRoundKernelResultsPass());
  pm.addPass(createExpandKernelMathPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  emulate.targetTypeStr = "f32";
  pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  // It, too, lets its conversions be left out.
  pm.addPass(createRoundKernelResultsPass());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
}

} // namespace partita::codegen
