//===- Backend.cpp - What computes clusters on a kind of device -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"

#include "dialects/support/Try.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"

#include <map>
#include <mutex>
#include <string>

using namespace mlir;

namespace partita::codegen {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Backend>, std::less<>> backends;
};

Registry &getRegistry() {
  static Registry registry;
  return registry;
}

} // namespace

LogicalResult Backend::checkKernels(ModuleOp kernels) const {
  llvm::StringMap<BuiltKernel> known;
  for (auto kernel : kernels.getOps<func::FuncOp>())
    known[kernel.getName()] = PARTITA_TRY(readKernel(kernel));
  auto model = kernels->getParentOfType<ModuleOp>();
  if (!model)
    return success();
  WalkResult result = model->walk([&](plan::DispatchOp op) {
    plan::KernelAttr kernel = op.getKernel();
    auto it = known.find(kernel.getName());
    if (it == known.end() && isKernelElsewhere(kernels, kernel.getName()))
      return WalkResult::advance();
    if (it == known.end())
      return op.emitError("starts a kernel that is not compiled"),
             WalkResult::interrupt();
    const BuiltKernel &built = it->second;
    if (kernel.getExtent() != built.extent ||
        kernel.getGrain() != built.grain ||
        kernel.getLaunch() != ArrayRef(built.launch) ||
        kernel.getInPlace() != ArrayRef(built.inPlace))
      return op.emitError("starts a kernel otherwise than it is compiled"),
             WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void registerBackend(StringRef kind, std::unique_ptr<Backend> backend) {
  Registry &registry = getRegistry();
  std::lock_guard lock(registry.mutex);
  registry.backends.try_emplace(kind.str(), std::move(backend));
}

StringRef getTarget(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<StringAttr>(kTargetAttr))
      return target;
  return "cpu";
}

std::vector<const Backend *> getBackends() {
  Registry &registry = getRegistry();
  std::lock_guard lock(registry.mutex);
  std::vector<const Backend *> all;
  for (const auto &[kind, backend] : registry.backends)
    all.push_back(backend.get());
  return all;
}

const Backend *findBackend(StringRef kind) {
  Registry &registry = getRegistry();
  std::lock_guard lock(registry.mutex);
  auto it = registry.backends.find(std::string_view(kind));
  return it == registry.backends.end() ? nullptr : it->second.get();
}

const Backend &getBackend(Operation *op) {
  StringRef kind = splitTarget(getTarget(op)).first;
  if (const Backend *backend = findBackend(kind))
    return *backend;
  llvm::report_fatal_error("there is no backend for devices of kind '" + kind +
                           "'");
}

bool allBackends(Operation *function,
                 llvm::function_ref<bool(const Backend &)> says) {
  auto targets = function->getAttrOfType<ArrayAttr>(kPlaceTargetsAttr);
  if (!targets)
    return says(getBackend(function));
  return llvm::all_of(
      targets.getAsValueRange<StringAttr>(), [&](StringRef target) {
        const Backend *backend = findBackend(splitTarget(target).first);
        return backend && says(*backend);
      });
}

bool keepsNan(Operation *op) {
  while (op && !op->hasAttr(kKeepsNanAttr))
    op = op->getParentOp();
  return op != nullptr;
}

plan::CallAttr matchCall(const Backend &backend, nn::ClusterOp cluster) {
  SmallVector<Operation *> ops;
  Block &body = cluster.getBody().front();
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  SmallVector<Value> inputs(body.getArguments());
  SmallVector<Value> results(body.getTerminator()->getOperands());
  return backend.matchCall(ops, inputs, results);
}

} // namespace partita::codegen
