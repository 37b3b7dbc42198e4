//===- Codegen.cpp - From clusters to machine code ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/ObjectCache.h"
#include "compiler/codegen/Passes.h"

using namespace mlir;

namespace partita::codegen {

ModuleOp getKernelsModule(ModuleOp module) {
  for (auto nested : module.getOps<ModuleOp>())
    if (nested.getName() == kKernelsModule)
      return nested;
  return {};
}

void addCodegenPasses(OpPassManager &pm, bool reference) {
  // Every cluster gets its lowering; those that compute the same share one.
  pm.addPass(createLowerClustersPass({reference}));
}

void registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<nn::NNDialect, plan::PlanDialect>();
  getBackend().registerDialects(registry);
}

FailureOr<std::vector<CompiledObject>>
compileKernels(ModuleOp kernels, const CodegenOptions &options) {
  if (kernels.getOps<func::FuncOp>().empty())
    return std::vector<CompiledObject>();
  const Backend &backend = getBackend();
  if (failed(backend.checkKernels(kernels)))
    return failure();
  if (!options.cache)
    return backend.compile(kernels, options.levels, options.optimize);
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << (options.optimize ? "optimized" : "plain") << "\n";
  kernels.print(stream);
  std::vector<CompiledObject> objects;
  for (abi::CpuLevel level : options.levels) {
    if (const std::vector<char> *known = options.cache->find(text, level)) {
      objects.push_back({level, *known});
      continue;
    }
    auto compiled = backend.compile(kernels, level, options.optimize);
    if (failed(compiled))
      return failure();
    options.cache->insert(text, level, compiled->front().bytes);
    objects.push_back(std::move(compiled->front()));
  }
  return objects;
}

} // namespace partita::codegen
