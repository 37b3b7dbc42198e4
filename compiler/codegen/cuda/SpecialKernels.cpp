//===- SpecialKernels.cpp - Kernels that are no loops of stages -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/SpecialKernels.h"

#include "compiler/codegen/cuda/grid/GridSchedule.h"
#include "compiler/codegen/cuda/ordered/ScanKernel.h"
#include "compiler/codegen/cuda/ordered/ScatterKernel.h"
#include "compiler/codegen/cuda/ordered/SelectKernel.h"
#include "compiler/codegen/cuda/recurrent/RecurrentKernel.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

/// Operands and results do not overlap.
struct Apart {
  static SmallVector<int64_t> getInPlace(func::FuncOp) { return {}; }
};

struct Recurrent : Apart {
  static constexpr int64_t kThreads = kRecurrentThreads;
  static auto find(auto place) { return getRecurrentLayer(place); }
  static LogicalResult check(nn::ClusterOp cluster) {
    return checkRecurrentKernel(cluster, find(cluster));
  }
  static LogicalResult emit(func::FuncOp kernel, ModuleOp target) {
    emitRecurrent(kernel, find(kernel), target);
    return success();
  }
};

struct Scan : Apart {
  static constexpr int64_t kThreads = kScanThreads;
  static auto find(auto place) { return getLongScan(place); }
  static LogicalResult check(nn::ClusterOp) { return success(); }
  static LogicalResult emit(func::FuncOp kernel, ModuleOp target) {
    return emitScan(kernel, find(kernel), target);
  }
};

struct Selection : Apart {
  static constexpr int64_t kThreads = kSelectThreads;
  static auto find(auto place) { return getSelection(place); }
  static LogicalResult check(nn::ClusterOp) { return success(); }
  static LogicalResult emit(func::FuncOp kernel, ModuleOp target) {
    return emitSelect(kernel, find(kernel), target);
  }
};

struct RowScatter {
  static constexpr int64_t kThreads = kScatterThreads;
  static SmallVector<int64_t> getInPlace(func::FuncOp kernel) {
    return cuda::getInPlace(getRowScatter(kernel));
  }
  static auto find(auto place) { return getRowScatter(place); }
  static LogicalResult check(nn::ClusterOp) { return success(); }
  static LogicalResult emit(func::FuncOp kernel, ModuleOp target) {
    return emitScatter(kernel, find(kernel), target);
  }
};

template <typename Kind>
constexpr SpecialKernel kKernel = {
    [](nn::ClusterOp cluster) { return bool(Kind::find(cluster)); },
    [](func::FuncOp kernel) { return bool(Kind::find(kernel)); },
    [](func::FuncOp kernel) { return countBlocks(Kind::find(kernel)); },
    Kind::getInPlace,
    Kind::kThreads,
    Kind::check,
    Kind::emit};

constexpr SpecialKernel kKernels[] = {kKernel<Recurrent>, kKernel<Scan>,
                                      kKernel<Selection>, kKernel<RowScatter>};

} // namespace

const SpecialKernel *findSpecialKernel(nn::ClusterOp cluster) {
  for (const SpecialKernel &kind : kKernels)
    if (kind.isCluster(cluster))
      return &kind;
  return nullptr;
}

const SpecialKernel *findSpecialKernel(func::FuncOp kernel) {
  for (const SpecialKernel &kind : kKernels)
    if (kind.isFunction(kernel))
      return &kind;
  return nullptr;
}

FailureOr<func::FuncOp> buildSpecialKernel(OpBuilder &b, nn::ClusterOp cluster,
                                           const SpecialKernel &kind) {
  if (failed(kind.check(cluster)))
    return failure();
  SmallVector<Type> types(cluster.getOperandTypes());
  llvm::append_range(types, cluster.getResultTypes());
  auto func =
      func::FuncOp::create(b, cluster.getLoc(), "kernel",
                           b.getFunctionType(types, cluster.getResultTypes()));
  func->setAttr(kGridAttr, b.getDictionaryAttr(b.getNamedAttr(
                               "threads", b.getI64IntegerAttr(kind.threads))));
  Block *body = func.addEntryBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(body);
  IRMapping values;
  values.map(cluster.getBody().getArguments(),
             body->getArguments().drop_back(cluster.getNumResults()));
  Block &computed = cluster.getBody().front();
  for (Operation &op : computed.without_terminator())
    inner.clone(op, values);
  SmallVector<Value> results;
  for (Value result : computed.getTerminator()->getOperands())
    results.push_back(values.lookup(result));
  func::ReturnOp::create(inner, cluster.getLoc(), results);
  return func;
}

} // namespace partita::codegen::cuda
