//===- LowerClusters.cpp - Choose how each cluster is computed ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/Passes.h"
#include "compiler/crash/Place.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/support/Try.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace partita::codegen {

#define GEN_PASS_DEF_LOWERCLUSTERSPASS
#include "compiler/codegen/Passes.h.inc"

namespace {

/// A word that tells a reader of a profile what the kernel is.
StringRef getWord(const Backend &backend, nn::ClusterOp cluster) {
  Operation *best = nullptr;
  auto rank = [&](Operation *op) {
    if (op->getNumOperands() == 0)
      return 0;
    if (isa<nn::PointwiseOpInterface, nn::ViewOpInterface>(op))
      return 1;
    if (isa<nn::IndexedOpInterface>(op))
      return 2;
    return backend.isCallRoot(op) ? 4 : 3;
  };
  for (Operation &op : cluster.getBody().front().without_terminator())
    if (!best || rank(&op) >= rank(best))
      best = &op;
  return best ? best->getName().stripDialect() : "copy";
}

class LowerClustersPass
    : public impl::LowerClustersPassBase<LowerClustersPass> {
public:
  using LowerClustersPassBase::LowerClustersPassBase;

private:
  void runOnOperation() override {
    SmallVector<nn::ClusterOp> clusters;
    getOperation()->walk(
        [&](nn::ClusterOp cluster) { clusters.push_back(cluster); });
    for (nn::ClusterOp cluster : clusters) {
      if (cluster.getLowering())
        continue;
      crash::AtNode at(cluster.getLoc());
      backend = &getBackend(cluster);
      if (failed(cluster.getKind() == nn::ClusterKind::call
                     ? lowerToCall(cluster)
                     : lowerToKernel(cluster)))
        return signalPassFailure();
    }
  }

  /// What fusion decided must hold: a call that nobody computes is an error.
  LogicalResult lowerToCall(nn::ClusterOp cluster) {
    plan::CallAttr call = matchCall(*backend, cluster);
    if (!call)
      return cluster.emitError()
             << "'" << nn::getNodeName(cluster)
             << "' is to be a library call, but the library does not compute "
                "it";
    const CallTuning *tuning = backend->getCallTuning();
    if (tuning && failed(tuning->checkCall(cluster)))
      return failure();
    cluster.setLoweringAttr(call);
    return success();
  }

  LogicalResult lowerToKernel(nn::ClusterOp cluster) {
    ModuleOp module = getKernels(cluster);
    OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
    BuiltKernel built =
        PARTITA_TRY(backend->buildKernel(b, cluster, reference));
    func::FuncOp kernel = built.function;
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << *module.getName() << "\n";
    // Not by the names that the whole module would give: that takes as long as
    // there are ops in it.
    // Locations are no part of what a kernel computes, and a flag of
    // partita-opt would print them. It is verified with all others.
    kernel.print(stream, OpPrintingFlags()
                             .useLocalScope()
                             .enableDebugInfo(false)
                             .assumeVerified());
    auto [it, isNew] = kernels.try_emplace(text);
    if (isNew) {
      it->second =
          ("k" + Twine(count++) + "_" + getWord(*backend, cluster)).str();
      kernel.setName(it->second);
    } else {
      kernel.erase();
    }
    cluster.setLoweringAttr(plan::KernelAttr::get(&getContext(), it->second,
                                                  built.extent, built.grain,
                                                  built.inPlace, built.launch));
    return success();
  }

  /// Kernels for processors are compiled in one module, and others in another.
  ModuleOp getKernels(nn::ClusterOp cluster) {
    const SmallVector<ModuleOp> modules = getKernelsModules(getOperation());
    for (ModuleOp known : modules)
      if (getBackend(known).hasCpuLevels() == backend->hasCpuLevels())
        return known;
    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    const StringRef target = getTarget(cluster);
    std::string name = kKernelsModule.str();
    if (!modules.empty())
      name += "_" + splitTarget(target).first.str();
    auto made = ModuleOp::create(b, getOperation().getLoc(), name);
    if (target != getTarget(getOperation()))
      made->setAttr(kTargetAttr, b.getStringAttr(target));
    return made;
  }

  const Backend *backend = nullptr;
  llvm::StringMap<std::string> kernels;
  unsigned count = 0;
};

} // namespace
} // namespace partita::codegen
