//===- LowerClusters.cpp - Choose how each cluster is computed -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/Passes.h"
#include "compiler/codegen/cpu/KernelSchedule.h"
#include "compiler/codegen/cpu/NNToLinalg.h"
#include "compiler/codegen/cpu/onednn/LibraryCall.h"
#include "compiler/crash/Place.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

#include <limits>

using namespace mlir;

namespace partita::codegen {

#define GEN_PASS_DEF_LOWERCLUSTERSPASS
#include "compiler/codegen/Passes.h.inc"

namespace {

/// A word that tells a reader of a profile what the kernel is.
StringRef getWord(nn::ClusterOp cluster) {
  Operation *best = nullptr;
  auto rank = [](Operation *op) {
    if (isCallRoot(op) && !isa<nn::WindowReduceOp>(op))
      return 4;
    if (isa<nn::SoftmaxOp, nn::WindowReduceOp, nn::WindowArgMaxOp>(op))
      return 3;
    if (isa<nn::ReduceOp, nn::GatherOp, nn::ConcatOp>(op))
      return 2;
    return isa<nn::ConstantOp>(op) ? 0 : 1;
  };
  for (Operation &op : cluster.getBody().front().without_terminator())
    if (!best || rank(&op) >= rank(best))
      best = &op;
  return best ? best->getName().stripDialect() : "copy";
}

/// The library counts rows, columns and positions in 32 bits; a call beyond
/// that would only fail when the artifact is loaded.
LogicalResult checkExtents(nn::ClusterOp cluster) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (Operation &op : cluster.getBody().front().without_terminator()) {
    if (!isa<nn::DotOp, nn::ConvOp, nn::AttentionOp, nn::WindowReduceOp>(op))
      continue;
    auto isTooLong = [&](Value value) {
      return llvm::any_of(cast<RankedTensorType>(value.getType()).getShape(),
                          [&](int64_t size) { return size > most; });
    };
    for (Value value : op.getOperands())
      if (isTooLong(value))
        return op.emitError()
               << "a dimension of its operand " << value.getType()
               << " is longer than " << most
               << ", the most that can be computed with: use a smaller batch, "
                  "or split the operand in the model";
  }
  return success();
}

/// What fusion decided must hold: a call that nobody computes is an error.
LogicalResult lowerToCall(nn::ClusterOp cluster) {
  plan::CallAttr call = matchLibraryCall(cluster);
  if (!call)
    return cluster.emitError()
           << "'" << nn::getNodeName(cluster)
           << "' is to be a library call, but the library does not compute it";
  if (failed(checkExtents(cluster)))
    return failure();
  cluster.setLoweringAttr(call);
  return success();
}

class LowerClusters : public impl::LowerClustersPassBase<LowerClusters> {
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
      if (failed(cluster.getKind() == nn::ClusterKind::call
                     ? lowerToCall(cluster)
                     : lowerToKernel(cluster)))
        return signalPassFailure();
    }
  }

  LogicalResult lowerToKernel(nn::ClusterOp cluster) {
    OpBuilder b = OpBuilder::atBlockEnd(getKernels().getBody());
    func::FuncOp kernel;
    KernelSchedule schedule;
    // Memory on the stack is little: rather compute something again.
    for (StageMode mode :
         {StageMode::fast, StageMode::lean, StageMode::nothing}) {
      if (kernel)
        kernel.erase();
      FailureOr<func::FuncOp> built = buildKernel(b, cluster, "kernel", mode);
      if (failed(built))
        return failure();
      kernel = *built;
      if (reference)
        kernel->setAttr(kReferenceAttr, b.getUnitAttr());
      schedule = scheduleKernel(kernel);
      if (schedule.stackBytes <= kMaxStackBytes)
        break;
      if (mode == StageMode::fast)
        cluster.emitRemark("temporaries do not fit the stack of a thread: "
                           "some elements are computed more than once");
    }
    writeSchedule(kernel, schedule);
    std::string text;
    llvm::raw_string_ostream stream(text);
    // Not by the names that the whole module would give: that takes as long as
    // there are ops in it.
    kernel.print(stream, OpPrintingFlags().useLocalScope());
    auto [it, isNew] = kernels.try_emplace(text);
    if (isNew) {
      it->second = ("k" + Twine(count++) + "_" + getWord(cluster)).str();
      kernel.setName(it->second);
    } else {
      kernel.erase();
    }
    cluster.setLoweringAttr(
        plan::KernelAttr::get(&getContext(), it->second, schedule.extent,
                              schedule.grain, schedule.inPlace));
    return success();
  }

  ModuleOp getKernels() {
    if (ModuleOp known = getKernelsModule(getOperation()))
      return known;
    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    return ModuleOp::create(b, getOperation().getLoc(), kKernelsModule);
  }

  llvm::StringMap<std::string> kernels;
  unsigned count = 0;
};

} // namespace
} // namespace partita::codegen
