//===- MixedPrecision.cpp - Products of halves in a model of f32 ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/codegen/Backend.h"
#include "compiler/simplify/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using partita::analysis::Rate;

namespace partita::simplify {

#define GEN_PASS_DEF_MIXEDPRECISIONPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

/// That follow one another, and are looked through.
constexpr unsigned kMostMoves = 64;

bool isF32(Value value) {
  return getElementTypeOrSelf(value.getType()).isF32();
}

/// The operands that a product multiplies; none of another op.
OperandRange getFactors(Operation *op) {
  const unsigned count = isa<nn::DotOp, nn::ConvOp>(op) ? 2
                         : isa<nn::AttentionOp>(op)     ? op->getNumOperands()
                                                        : 0;
  return op->getOperands().take_front(count);
}

/// The vector that an op adds to each row of `value`, or null.
Value getBias(Operation *user, Value value) {
  auto add = dyn_cast<nn::AddOp>(user);
  if (!add)
    return {};
  Value other = add.getLhs() == value ? add.getRhs() : add.getLhs();
  auto spread = other.getDefiningOp<nn::BroadcastOp>();
  return spread && nn::getTensorType(spread.getX()).getRank() == 1 ? other
                                                                   : Value();
}

class Halving {
public:
  using Backend = codegen::Backend;

  Halving(func::FuncOp function, FloatType half)
      : function(function), b(function.getContext()),
        block(function.getBody().front()), half(half) {
    // Asked before anything changes.
    analysis::Rates rates;
    for (Operation &op : block) {
      OperandRange factors = getFactors(&op);
      if (!factors.empty() && llvm::all_of(factors, isF32) &&
          isF32(op.getResult(0)) && !rates.isLoad(&op) &&
          allCompute(&op, Backend::HalfProducts::plain))
        products.push_back(&op);
      if (isa<nn::BroadcastOp>(op) &&
          rates.getRate(op.getResult(0)) <= Rate::step)
        biases.insert(op.getResult(0));
    }
  }

  void run() {
    for (Operation *op : products)
      visit(op);
    // Nobody reads what was moved before it was rounded.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

private:
  /// Whether all devices multiply halves at least so.
  bool allCompute(Operation *op, Backend::HalfProducts how) const {
    return codegen::allBackends(function, [&](const Backend &backend) {
      return backend.getHalfProducts(op, half) >= how;
    });
  }

  void visit(Operation *op) {
    IRMapping halves;
    for (Value factor : getFactors(op))
      halves.map(factor, getHalf(factor));
    Value was = op->getResult(0), is = clone(op, halves);
    // What a library adds to its product before it rounds. A ReLU of what is
    // rounded is what is rounded of a ReLU.
    const bool isFused = allCompute(op, Backend::HalfProducts::fused);
    while (isFused && was.hasOneUse()) {
      Operation *user = *was.user_begin();
      Value bias = getBias(user, was);
      if (!isa<nn::ReluOp>(user) && !biases.contains(bias))
        break;
      halves.map(was, is);
      if (bias)
        halves.map(bias, getHalf(bias));
      is = clone(user, halves);
      Operation *done = was.getDefiningOp();
      was.replaceAllUsesWith(is);
      was = user->getResult(0);
      done->erase();
    }
    b.setInsertionPointAfterValue(is);
    was.replaceAllUsesWith(makeCast(is, was.getType()));
    was.getDefiningOp()->erase();
  }

  /// The op in its place, of halves.
  Value clone(Operation *op, const IRMapping &operands) {
    b.setInsertionPoint(op);
    IRMapping mapping = operands;
    Value result = b.clone(*op, mapping)->getResult(0);
    result.setType(toHalf(result.getType()));
    return result;
  }

  Value makeCast(Value x, Type type) {
    return nn::CastOp::create(b, x.getLoc(), type, x, /*saturate=*/true);
  }

  RankedTensorType toHalf(Type type) const {
    return cast<RankedTensorType>(type).clone(half);
  }

  /// The op whose elements a move without sums only moves, if it pays to move
  /// halves instead: there are as many of them, or they are there already.
  bool movesHalves(Operation *op) {
    auto moves = dyn_cast_or_null<nn::IndexedOpInterface>(op);
    if (!moves || op->getNumOperands() == 0 || moves.readsComputedPlace() ||
        !llvm::all_of(op->getOperands(), isF32))
      return false;
    int64_t read = 0;
    for (Value operand : op->getOperands())
      read += nn::getTensorType(operand).getNumElements();
    return read <= nn::getTensorType(op->getResult(0)).getNumElements() ||
           llvm::all_of(op->getOperands(),
                        [&](Value x) { return isHalf(x.getDefiningOp()); });
  }

  /// Whether the op's result is rounded to halves already.
  bool isHalf(Operation *op, unsigned depth = 0) {
    if (auto cast = dyn_cast_or_null<nn::CastOp>(op))
      return getElementTypeOrSelf(cast.getX().getType()) == half;
    auto moves = dyn_cast_or_null<nn::IndexedOpInterface>(op);
    if (!moves || op->getNumOperands() == 0 || moves.readsComputedPlace() ||
        depth > kMostMoves)
      return false;
    if (auto it = rounded.find(op); it != rounded.end())
      return it->second;
    const bool is = llvm::all_of(op->getOperands(), [&](Value x) {
      return isHalf(x.getDefiningOp(), depth + 1);
    });
    return rounded[op] = is;
  }

  /// The value, rounded to halves: where it is made, so that what makes it
  /// writes halves, and only once.
  Value getHalf(Value x, unsigned depth = 0) {
    auto [it, isNew] = known.try_emplace(x);
    if (!isNew)
      return it->second;
    Operation *op = x.getDefiningOp();
    auto cast = dyn_cast_or_null<nn::CastOp>(op);
    Value result;
    if (cast && getElementTypeOrSelf(cast.getX().getType()) == half) {
      result = cast.getX();
    } else if (depth < kMostMoves && movesHalves(op)) {
      IRMapping halves;
      for (Value operand : op->getOperands())
        halves.map(operand, getHalf(operand, depth + 1));
      result = clone(op, halves);
    } else {
      b.setInsertionPointAfterValue(x);
      result = makeCast(x, toHalf(x.getType()));
    }
    return known[x] = result;
  }

  func::FuncOp function;
  OpBuilder b;
  Block &block;
  const FloatType half;
  SmallVector<Operation *> products;
  llvm::DenseSet<Value> biases; ///< that change once a step at most
  llvm::DenseMap<Value, Value> known;
  llvm::DenseMap<Operation *, bool> rounded; ///< of moves
};

struct MixedPrecisionPass : impl::MixedPrecisionPassBase<MixedPrecisionPass> {
  using MixedPrecisionPassBase::MixedPrecisionPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    half = type == "bf16"  ? FloatType(BFloat16Type::get(context))
           : type == "f16" ? FloatType(Float16Type::get(context))
                           : FloatType();
    if (!half)
      return emitError(UnknownLoc::get(context))
             << "type=" << type << ": products of halves are bf16 or f16";
    return success();
  }

  void runOnOperation() override { Halving(getOperation(), half).run(); }

  FloatType half;
};

} // namespace
} // namespace partita::simplify
