//===- Codegen.cpp - From clusters to machine code ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/ObjectCache.h"
#include "compiler/codegen/Passes.h"
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::codegen {

ModuleOp getKernelsModule(ModuleOp module) {
  for (auto nested : module.getOps<ModuleOp>())
    if (nested.getName() == kKernelsModule)
      return nested;
  return {};
}

SmallVector<ModuleOp> getKernelsModules(ModuleOp module) {
  SmallVector<ModuleOp> all;
  for (auto nested : module.getOps<ModuleOp>())
    if (nested.getName() && nested.getName()->starts_with(kKernelsModule))
      all.push_back(nested);
  return all;
}

bool isKernelElsewhere(ModuleOp kernels, StringRef name) {
  auto model = kernels->getParentOfType<ModuleOp>();
  return model && llvm::any_of(getKernelsModules(model), [&](ModuleOp other) {
           return other != kernels && other.lookupSymbol(name);
         });
}

void addCodegenPasses(OpPassManager &pm, bool reference) {
  // Every cluster gets its lowering; those that compute the same share one.
  pm.addPass(createLowerClustersPass({reference}));
}

void registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<nn::NNDialect, plan::PlanDialect>();
  for (const Backend *backend : getBackends())
    backend->registerDialects(registry);
}

FailureOr<std::vector<CompiledObject>>
compileKernels(ModuleOp kernels, const CodegenOptions &options) {
  if (kernels.getOps<func::FuncOp>().empty())
    return std::vector<CompiledObject>();
  const Backend &backend = getBackend(kernels);
  PARTITA_TRY(backend.checkKernels(kernels));
  std::vector<abi::CpuLevel> levels = {abi::CpuLevel::none};
  if (backend.hasCpuLevels())
    levels = options.levels;
  if (!options.cache)
    return backend.compile(kernels, levels, options.optimize);
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << getTarget(kernels) << (options.optimize ? " optimized" : " plain")
         << "\n";
  kernels.print(stream);
  std::vector<CompiledObject> objects;
  for (abi::CpuLevel level : levels) {
    if (const CompiledObject *known = options.cache->find(text, level)) {
      objects.push_back(*known);
      continue;
    }
    auto compiled =
        PARTITA_TRY(backend.compile(kernels, level, options.optimize));
    options.cache->insert(text, level, compiled.front());
    objects.push_back(std::move(compiled.front()));
  }
  return objects;
}

} // namespace partita::codegen
