//===- Codegen.cpp - From clusters to machine code ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::codegen {

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

void registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<nn::NNDialect, plan::PlanDialect>();
  for (const Backend *backend : getBackends())
    backend->registerDialects(registry);
}

const CompiledObject *ObjectCache::find(StringRef text, abi::CpuLevel level) {
  auto it = objects.find({level, text.str()});
  ++(it == objects.end() ? misses : hits);
  return it == objects.end() ? nullptr : &it->second;
}

void ObjectCache::insert(StringRef text, abi::CpuLevel level,
                         const CompiledObject &object) {
  const size_t size = text.size() + object.bytes.size();
  if (bytes + size > capacity) {
    objects.clear();
    bytes = 0;
  }
  if (objects.try_emplace({level, text.str()}, object).second)
    bytes += size;
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
