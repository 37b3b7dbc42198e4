//===- NNToLinalg.cpp - A cluster as linalg on tensors --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/NNToLinalg.h"

#include "compiler/codegen/kernels/Evaluate.h"
#include "compiler/codegen/kernels/Reductions.h"
#include "compiler/codegen/kernels/Storage.h"
#include "dialects/support/Try.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace partita::codegen {
namespace {

/// One index for each of `sizes`: a loop, or 0 where there is one element.
SmallVector<Index> makePosition(MLIRContext *context, ArrayRef<int64_t> sizes,
                                unsigned &nextLoop) {
  SmallVector<Index> position;
  for (int64_t size : sizes)
    position.push_back({size == 1 ? getAffineConstantExpr(0, context)
                                  : getAffineDimExpr(nextLoop++, context),
                        {}});
  return position;
}

class KernelBuilder {
public:
  KernelBuilder(func::FuncOp func, Block &body)
      : func(func), body(body),
        outer(OpBuilder::atBlockEnd(func.addEntryBlock())) {}

  LogicalResult build(StageMode mode) {
    unsigned inputs = body.getNumArguments();
    for (BlockArgument argument : body.getArguments()) {
      auto type = cast<RankedTensorType>(argument.getType());
      Value tensor = reshapeTensor(outer, func.getLoc(),
                                   func.getArgument(argument.getArgNumber()),
                                   squeeze(type.getShape()));
      leaves[argument] = {tensor, type.getElementType()};
    }
    Operation *yield = body.getTerminator();
    SmallVector<Value> results(yield->getNumOperands());
    for (Value stage : chooseStages(body, mode)) {
      // Written straight to the first result that it is, if of its type.
      int64_t number = -1;
      for (auto [i, result] : llvm::enumerate(yield->getOperands()))
        if (result == stage && number < 0)
          number = i;
      std::optional<Reduction> reduction;
      if (mode != StageMode::nothing)
        reduction = describeReduction(stage.getDefiningOp());
      auto type = cast<RankedTensorType>(stage.getType());
      bool direct = number >= 0 && (!reduction || reduction->accumulator ==
                                                      type.getElementType());
      Value tensor = PARTITA_TRY(
          emitStage(stage, reduction,
                    direct ? func.getArgument(inputs + number) : Value()));
      if (direct)
        results[number] = tensor;
    }
    for (auto [i, result] : llvm::enumerate(yield->getOperands())) {
      if (!results[i])
        results[i] = PARTITA_TRY(
            emitStage(result, std::nullopt, func.getArgument(inputs + i)));
      results[i] = reshapeTensor(
          outer, func.getLoc(), results[i],
          cast<RankedTensorType>(func.getResultTypes()[i]).getShape());
    }
    func::ReturnOp::create(outer, func.getLoc(), results);
    return success();
  }

private:
  /// Emits the linalg.generic that puts `value` in memory, into `target` if
  /// there is one, and makes it a leaf unless it is one.
  Value emitStage(Value value, const std::optional<Reduction> &reduction,
                  Value target) {
    Location loc = value.getLoc();
    MLIRContext *context = func.getContext();
    auto type = cast<RankedTensorType>(value.getType());
    Type element = reduction ? reduction->accumulator : type.getElementType();
    SmallVector<int64_t> shape = squeeze(type.getShape());
    unsigned loops = 0;
    SmallVector<Index> position = makePosition(context, type.getShape(), loops);
    unsigned kept = loops;
    SmallVector<Index> reduced;
    if (reduction)
      reduced = makePosition(context, reduction->sizes, loops);

    auto owned = std::make_unique<Block>();
    OpBuilder inner(context);
    inner.setInsertionPointToEnd(owned.get());
    SmallVector<int64_t> sizes(shape);
    if (reduction)
      llvm::append_range(sizes, squeeze(reduction->sizes));
    Evaluator evaluator(outer, leaves, *owned, sizes);
    Value x = PARTITA_TRY(
        reduction ? reduction->element(evaluator, inner, position, reduced)
                  : evaluator.evaluate(inner, value, position));
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (const Evaluator::Operand &operand : evaluator.getOperands()) {
      inputs.push_back(operand.tensor);
      maps.push_back(operand.map);
    }
    // The sizes of loops that no operand shows come from an empty tensor.
    if (reduction) {
      SmallVector<int64_t> sizes = squeeze(reduction->sizes), missing;
      SmallVector<AffineExpr> exprs;
      for (unsigned loop = kept; loop < loops; ++loop) {
        AffineExpr dim = getAffineDimExpr(loop, context);
        if (llvm::none_of(maps, [&](AffineMap map) {
              return llvm::is_contained(map.getResults(), dim);
            })) {
          exprs.push_back(dim);
          missing.push_back(sizes[loop - kept]);
        }
      }
      if (!exprs.empty()) {
        Type bits = inner.getI8Type();
        inputs.push_back(tensor::EmptyOp::create(outer, loc, missing, bits));
        maps.push_back(AffineMap::get(loops, 0, exprs, context));
        owned->addArgument(bits, loc);
      }
    }
    Value init = target ? reshapeTensor(outer, loc, target, shape)
                        : tensor::EmptyOp::create(outer, loc, shape,
                                                  getStorageType(element))
                              .getResult();
    BlockArgument all = owned->addArgument(getStorageType(element), loc);
    if (loops > kept) {
      TypedAttr neutral = reduction->neutral;
      if (element.isInteger(1))
        neutral = inner.getI8IntegerAttr(cast<IntegerAttr>(neutral).getInt());
      init =
          linalg::FillOp::create(
              outer, loc,
              arith::ConstantOp::create(outer, loc, neutral).getResult(), init)
              .getResult(0);
      x = reduction->combine(inner, fromStorage(inner, loc, all, element), x);
    }
    linalg::YieldOp::create(inner, loc, toStorage(inner, loc, x, element));

    AffineMap identity = AffineMap::getMultiDimIdentityMap(loops, context);
    maps.push_back(AffineMap::get(
        loops, 0, identity.getResults().take_front(kept), context));
    SmallVector<utils::IteratorType> iterators(kept,
                                               utils::IteratorType::parallel);
    iterators.resize(loops, utils::IteratorType::reduction);
    auto generic = linalg::GenericOp::create(outer, loc, init.getType(), inputs,
                                             init, maps, iterators);
    generic.getRegion().push_back(owned.release());
    Value tensor = generic.getResult(0);
    if (!leaves.contains(value))
      leaves[value] = {tensor, element};
    return tensor;
  }

  func::FuncOp func;
  Block &body;
  OpBuilder outer;
  Leaves leaves;
};

/// Makes loops that run through memory without a step between them one loop.
/// For kernels of one stage: stages must agree about their loops.
void collapseLoops(func::FuncOp func) {
  auto generics = llvm::to_vector(func.getOps<linalg::GenericOp>());
  if (generics.size() != 1)
    return;
  linalg::GenericOp generic = generics.front();
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  if (generic.getNumLoops() < 2 || generic.hasIndexSemantics() ||
      llvm::any_of(maps,
                   [](AffineMap map) { return !map.isProjectedPermutation(); }))
    return;
  SmallVector<utils::IteratorType> iterators = generic.getIteratorTypesArray();
  SmallVector<ReassociationIndices> groups{{0}};
  for (int64_t loop = 1; loop < generic.getNumLoops(); ++loop) {
    ReassociationIndices pair{loop - 1, loop};
    if (iterators[loop - 1] == iterators[loop] &&
        linalg::areDimSequencesPreserved(maps, {pair}))
      groups.back().push_back(loop);
    else
      groups.push_back({loop});
  }
  if (groups.size() == generic.getNumLoops())
    return;
  IRRewriter rewriter(func.getContext());
  rewriter.setInsertionPoint(generic);
  FailureOr<linalg::CollapseResult> collapsed =
      linalg::collapseOpIterationDims(generic, groups, rewriter);
  if (succeeded(collapsed))
    rewriter.replaceOp(generic, collapsed->results);
}

} // namespace

FailureOr<func::FuncOp> buildKernel(OpBuilder &b, nn::ClusterOp cluster,
                                    StringRef name, StageMode mode,
                                    bool ordered) {
  auto copy = cast<nn::ClusterOp>(cluster->clone());
  llvm::scope_exit release([&] { copy->erase(); });
  Block &body = copy.getBody().front();
  decomposeOps(body);
  if (ordered)
    decomposeOrderedOps(body);

  SmallVector<Type> inputs, results;
  auto stored = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return getStorageTensor(type.getShape(), type.getElementType());
  };
  for (Value operand : cluster.getOperands())
    inputs.push_back(stored(operand));
  for (Value result : cluster.getResults())
    results.push_back(stored(result));
  llvm::append_range(inputs, results);
  auto func = func::FuncOp::create(b, cluster.getLoc(), name,
                                   b.getFunctionType(inputs, results));
  if (failed(KernelBuilder(func, body).build(mode))) {
    func.erase();
    return failure();
  }
  collapseLoops(func);
  return func;
}

} // namespace partita::codegen
