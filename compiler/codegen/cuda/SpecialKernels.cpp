//===- SpecialKernels.cpp - Kernels that are no loops of stages -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/SpecialKernels.h"

#include "compiler/codegen/cuda/ordered/ScanKernel.h"
#include "compiler/codegen/cuda/ordered/ScatterKernel.h"
#include "compiler/codegen/cuda/ordered/SelectKernel.h"
#include "compiler/codegen/cuda/recurrent/RecurrentKernel.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

struct Recurrent {
  static constexpr int64_t kThreads = kRecurrentThreads;
  static auto find(auto place) { return getRecurrentLayer(place); }
  static FailureOr<func::FuncOp> build(OpBuilder &b, nn::ClusterOp cluster,
                                       nn::RecurrentOp op) {
    return buildRecurrentKernel(b, cluster, op);
  }
  static LogicalResult emit(func::FuncOp kernel, nn::RecurrentOp op,
                            ModuleOp target) {
    emitRecurrent(kernel, op, target);
    return success();
  }
};

struct Scan {
  static constexpr int64_t kThreads = kScanThreads;
  static auto find(auto place) { return getLongScan(place); }
  static FailureOr<func::FuncOp> build(OpBuilder &b, nn::ClusterOp cluster,
                                       nn::ScanOp op) {
    return buildScanKernel(b, cluster, op);
  }
  static LogicalResult emit(func::FuncOp kernel, nn::ScanOp op,
                            ModuleOp target) {
    return emitScan(kernel, op, target);
  }
};

struct Selection {
  static constexpr int64_t kThreads = kSelectThreads;
  static auto find(auto place) { return getSelection(place); }
  static FailureOr<func::FuncOp> build(OpBuilder &b, nn::ClusterOp cluster,
                                       nn::TopKOp op) {
    return buildSelectKernel(b, cluster, op);
  }
  static LogicalResult emit(func::FuncOp kernel, nn::TopKOp op,
                            ModuleOp target) {
    return emitSelect(kernel, op, target);
  }
};

struct RowScatter {
  static constexpr int64_t kThreads = kScatterThreads;
  static auto find(auto place) { return getRowScatter(place); }
  static FailureOr<func::FuncOp> build(OpBuilder &b, nn::ClusterOp cluster,
                                       nn::ScatterOp op) {
    return buildScatterKernel(b, cluster, op);
  }
  static LogicalResult emit(func::FuncOp kernel, nn::ScatterOp op,
                            ModuleOp target) {
    return emitScatter(kernel, op, target);
  }
};

template <typename Kind>
constexpr SpecialKernel kKernel = {
    [](nn::ClusterOp cluster) { return bool(Kind::find(cluster)); },
    [](func::FuncOp kernel) { return bool(Kind::find(kernel)); },
    [](func::FuncOp kernel) { return countBlocks(Kind::find(kernel)); },
    Kind::kThreads,
    [](OpBuilder &b, nn::ClusterOp cluster) {
      return Kind::build(b, cluster, Kind::find(cluster));
    },
    [](func::FuncOp kernel, ModuleOp target) {
      return Kind::emit(kernel, Kind::find(kernel), target);
    }};

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

} // namespace partita::codegen::cuda
