//===- Backend.cpp - What computes clusters on a kind of device -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"

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

void registerBackend(StringRef kind, std::unique_ptr<Backend> backend) {
  Registry &registry = getRegistry();
  std::lock_guard lock(registry.mutex);
  registry.backends.try_emplace(kind.str(), std::move(backend));
}

const Backend &getBackend(StringRef kind) {
  Registry &registry = getRegistry();
  std::lock_guard lock(registry.mutex);
  auto it = registry.backends.find(std::string_view(kind));
  if (it == registry.backends.end())
    llvm::report_fatal_error("there is no backend for devices of kind '" +
                             kind + "'");
  return *it->second;
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
