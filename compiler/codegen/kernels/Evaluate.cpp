//===- Evaluate.cpp - The value of one element ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Evaluate.h"

#include "compiler/codegen/kernels/Reductions.h"
#include "compiler/codegen/kernels/Storage.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"
#include "dialects/nn/fold/ScalarEmit.h"
#include "dialects/support/Try.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace partita::codegen {

/// Without negative factors: linalg infers ranges from the ends of the loops
/// and wants them not negative.
static bool isLinear(AffineExpr expr) {
  bool linear = true;
  expr.walk([&](AffineExpr part) {
    if (auto constant = dyn_cast<AffineConstantExpr>(part))
      linear &= constant.getValue() >= 0;
    else
      linear &= llvm::is_contained(
          {AffineExprKind::DimId, AffineExprKind::Add, AffineExprKind::Mul},
          part.getKind());
  });
  return linear;
}

Value Evaluator::evaluate(OpBuilder &b, Value value, ArrayRef<Index> position) {
  Key key{value.getAsOpaquePointer()};
  for (Index index : position)
    key.push_back(
        index.expr ? static_cast<const void *>(index.expr.getAsOpaquePointer())
                   : index.value.getAsOpaquePointer());
  for (const auto &scope : llvm::reverse(memo))
    if (auto it = scope.find(key); it != scope.end())
      return it->second;
  Value result = PARTITA_TRY(compute(b, value, position));
  memo.back()[key] = result;
  return result;
}

Value Evaluator::compute(OpBuilder &b, Value value, ArrayRef<Index> position) {
  if (auto it = leaves.find(value); it != leaves.end())
    return read(b, value, it->second, position);
  Operation *op = value.getDefiningOp();
  if (!op) {
    emitError(value.getLoc()) << "no tensor holds this value";
    return {};
  }
  if (auto pointwise = dyn_cast<nn::PointwiseOpInterface>(op)) {
    SmallVector<Value> scalars;
    for (Value operand : op->getOperands())
      scalars.push_back(PARTITA_TRY(evaluate(b, operand, position)));
    return pointwise.emitScalar(b, op->getLoc(), scalars);
  }
  if (std::optional<Reduction> reduction = describeReduction(op))
    return evaluateReduction(*this, b, *reduction, position);
  if (auto constant = dyn_cast<nn::ConstantOp>(op))
    return evaluateConstant(b, constant, position);
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op); reshape && viewLeaf(reshape))
    return read(b, value, leaves[value], position);
  if (auto indexed = dyn_cast<nn::IndexedOpInterface>(op))
    return indexed.emitElement(b, *this, position);
  op->emitError() << "'" << op->getName()
                  << "' cannot be computed by a kernel's loops";
  return {};
}

Value Evaluator::evaluateConstant(OpBuilder &b, nn::ConstantOp constant,
                                  ArrayRef<Index> position) {
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense) {
    constant.emitError("constant is not stored densely; pass it as a weight");
    return {};
  }
  Type element = dense.getElementType();
  if (dense.isSplat())
    return arith::ConstantOp::create(
        b, constant.getLoc(),
        cast<TypedAttr>(nn::toScalar(dense.getSplatValue<Attribute>())));
  Value tensor = arith::ConstantOp::create(
      outer, constant.getLoc(),
      getStorageConstant(dense, squeeze(dense.getType().getShape())));
  Leaf leaf{tensor, element};
  leaves[constant.getResult()] = leaf;
  return read(b, constant.getResult(), leaf, position);
}

bool Evaluator::viewLeaf(nn::ReshapeOp reshape) {
  Value source = reshape.getX();
  if (auto below = source.getDefiningOp<nn::ReshapeOp>())
    if (!leaves.contains(source))
      viewLeaf(below);
  auto it = leaves.find(source);
  if (it == leaves.end())
    return false;
  Leaf leaf = it->second;
  leaf.tensor = reshapeTensor(outer, reshape.getLoc(), leaf.tensor,
                              squeeze(reshape.getType().getShape()));
  leaves[reshape.getResult()] = leaf;
  return true;
}

Value Evaluator::read(OpBuilder &b, Value value, Leaf leaf,
                      ArrayRef<Index> position) {
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<Index> kept;
  for (auto [size, index] : llvm::zip_equal(type.getShape(), position))
    if (size != 1)
      kept.push_back(index);
  auto leafType = cast<RankedTensorType>(leaf.tensor.getType());
  // linalg wants an operand to reach to where reading begins, even where there
  // is nothing to read.
  const bool isOutermost = memo.size() == 1;
  bool linear = isOutermost && !llvm::is_contained(sizes, 0);
  for (auto [index, size] : llvm::zip_equal(kept, leafType.getShape())) {
    linear &= index.expr && isLinear(index.expr);
    // linalg takes a loop that runs over a part of a dimension for a mistake.
    if (auto loop = dyn_cast_or_null<AffineDimExpr>(index.expr))
      linear &= sizes[loop.getPosition()] == size;
  }
  Value stored;
  if (linear) {
    SmallVector<AffineExpr> exprs =
        llvm::map_to_vector(kept, [](Index index) { return index.expr; });
    AffineMap map = AffineMap::get(sizes.size(), 0, exprs, b.getContext());
    const Operand *known = llvm::find_if(operands, [&](const Operand &operand) {
      return operand.tensor == leaf.tensor && operand.map == map;
    });
    if (known == operands.end()) {
      operands.push_back(
          {leaf.tensor, map, body.addArgument(leafType.getElementType(), loc)});
      known = &operands.back();
    }
    stored = known->element;
  } else {
    SmallVector<Value> indices = llvm::map_to_vector(
        kept, [&](Index index) { return toValue(b, index); });
    stored = tensor::ExtractOp::create(b, loc, leaf.tensor, indices);
  }
  Value scalar = fromStorage(b, loc, stored, leaf.element);
  return nn::scalar::cast(b, loc, scalar, leaf.element, type.getElementType(),
                          /*saturate=*/true);
}

Value Evaluator::toValue(OpBuilder &b, Index index) {
  if (!index.expr)
    return index.value;
  Location loc = outer.getUnknownLoc();
  if (loopIndices.empty()) {
    OpBuilder start(b.getContext());
    start.setInsertionPointToStart(&body);
    for (unsigned loop = 0; loop < sizes.size(); ++loop)
      loopIndices.push_back(linalg::IndexOp::create(start, loc, loop));
  }
  return affine::expandAffineExpr(b, loc, index.expr, loopIndices, {});
}

Value Evaluator::guard(OpBuilder &b, Location loc, Value condition, Type scalar,
                       EmitFn then, EmitFn otherwise) {
  auto branch = scf::IfOp::create(b, loc, TypeRange{scalar}, condition,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  auto emit = [&](OpBuilder arm, EmitFn fn) {
    return nested([&] {
      Value value = fn(arm);
      if (value)
        scf::YieldOp::create(arm, loc, value);
      return value;
    });
  };
  Value first = emit(branch.getThenBodyBuilder(), then);
  Value second = emit(branch.getElseBodyBuilder(), otherwise);
  return first && second ? branch.getResult(0) : Value();
}

} // namespace partita::codegen
