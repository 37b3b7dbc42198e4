//===- SpecialKernels.cpp - Kernels that are no loops of stages -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/SpecialKernels.h"

#include "compiler/codegen/cuda/grid/GridSchedule.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

/// The kind of the op that `find` finds in a body.
template <auto find, auto emit>
constexpr SpecialKernel makeKind(decltype(SpecialKernel::check) check = {}) {
  return {[](Block &body) { return bool(find(body)); },
          [](func::FuncOp kernel) { return countBlocks(find(kernel.front())); },
          [](func::FuncOp kernel) -> SmallVector<int64_t> {
            auto op = find(kernel.front());
            if constexpr (requires { getInPlace(op); })
              return getInPlace(op);
            else
              return {};
          },
          check,
          [](func::FuncOp kernel, ModuleOp target) {
            emit(kernel, find(kernel.front()), target);
          }};
}

constexpr SpecialKernel kKernels[] = {
    makeKind<getRecurrentLayer, emitRecurrent>(checkRecurrentKernel),
    makeKind<getLongScan, emitScan>(), makeKind<getSelection, emitSelect>(),
    makeKind<getRowScatter, emitScatter>()};

const SpecialKernel *findKind(Block &body) {
  for (const SpecialKernel &kind : kKernels)
    if (kind.is(body))
      return &kind;
  return nullptr;
}

} // namespace

const SpecialKernel *findSpecialKernel(nn::ClusterOp cluster) {
  return findKind(cluster.getBody().front());
}

const SpecialKernel *findSpecialKernel(func::FuncOp kernel) {
  return kernel.isExternal() ? nullptr : findKind(kernel.front());
}

FailureOr<func::FuncOp> buildSpecialKernel(OpBuilder &b, nn::ClusterOp cluster,
                                           const SpecialKernel &kind) {
  if (kind.check && failed(kind.check(cluster)))
    return failure();
  SmallVector<Type> types(cluster.getOperandTypes());
  llvm::append_range(types, cluster.getResultTypes());
  auto func =
      func::FuncOp::create(b, cluster.getLoc(), "kernel",
                           b.getFunctionType(types, cluster.getResultTypes()));
  func->setAttr(kGridAttr,
                b.getDictionaryAttr(b.getNamedAttr(
                    "threads", b.getI64IntegerAttr(kSpecialThreads))));
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
