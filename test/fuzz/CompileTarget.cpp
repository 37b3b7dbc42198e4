//===- CompileTarget.cpp - Fuzzes the compiler, from a model to a plan ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All phases but the compilation of kernels and the writing of the artifact,
// for two devices and three micro-batches.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/ModelInput.h"

#include "compiler/driver/Compile.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::ModelInput input(data, size);
  driver::CompileOptions options;
  options.import = input.options();
  options.partition.devices = 2;
  options.partition.microBatches = 3;
  options.kind = driver::EmitKind::plan;
  std::vector<pipeline::PlanSummary> summary;
  input.checkErrors(failed(
      driver::compileModel(input.context(), options, llvm::nulls(), summary)));
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
  return fuzz::mutateModel(data, size, most, seed);
}
