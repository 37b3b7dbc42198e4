//===- WidenHalves.cpp - Half floats computed in f32 ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/NodeScopes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace partita::simplify {

#define GEN_PASS_DEF_WIDENHALVESPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

/// Moves elements, and computes none.
bool isMove(Operation *op) {
  return isa<nn::IndexedOpInterface>(op) && op->getNumOperands() > 0;
}

/// Whether the least change of an operand may change the result by a lot: a
/// comparison, an index, an integer. Rounding does not change on which side of
/// 0 a number is.
bool jumps(Operation *op) {
  if (isa<nn::CompareOp>(op))
    return !matchPattern(op->getOperand(0), m_AnyZeroFloat()) &&
           !matchPattern(op->getOperand(1), m_AnyZeroFloat());
  if (isa<nn::FloorOp, nn::CeilOp, nn::RoundEvenOp, nn::RemOp>(op))
    return true;
  return llvm::none_of(op->getResultTypes(), [](Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type));
  });
}

/// A value of halves in the model, as the rewritten graph has it.
struct Forms {
  Value half; ///< of the type that the model says
  Value wide; ///< the same numbers in f32; not rounded unless `isExact`
  Value rounded;
  Type type;           ///< the model's
  bool isExact = true; ///< the numbers are halves
};

class Widening {
public:
  explicit Widening(Block &block) : block(block), b(block.getParentOp()) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(block))
      visit(&op);
    for (Operation *op : llvm::reverse(replaced))
      op->erase();
  }

private:
  void visit(Operation *op) {
    const bool reads = llvm::any_of(op->getOperandTypes(), isHalf);
    // What has no operands is a weight, or says its elements itself.
    if (!reads && !isa<nn::CastOp>(op))
      return;
    if (auto cast = dyn_cast<nn::CastOp>(op))
      return visitCast(cast, reads);
    const bool staysHalf =
        isMove(op) && llvm::all_of(op->getOperands(), [&](Value x) {
          return !isHalf(x.getType()) || isExact(x);
        });
    // The bits themselves are read, or somebody outside of the graph reads.
    const bool needsHalf =
        op->hasTrait<OpTrait::IsTerminator>() || isa<nn::BitcastOp>(op);
    if (!staysHalf && !needsHalf)
      return widen(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(getHalf(operand.get()));
  }

  /// The op in f32.
  void widen(Operation *op) {
    const bool isJump = jumps(op);
    IRMapping operands;
    for (Value x : op->getOperands())
      operands.map(x, isJump ? getRounded(x) : getWide(x));
    b.setInsertionPoint(op);
    Operation *wide = b.clone(*op, operands);
    for (auto [was, is] : llvm::zip(op->getResults(), wide->getResults())) {
      if (!isHalf(was.getType())) {
        was.replaceAllUsesWith(is);
        continue;
      }
      is.setType(toWide(was.getType()));
      forms[was] = {{}, is, {}, was.getType(), /*isExact=*/false};
    }
    replaced.push_back(op);
  }

  void visitCast(nn::CastOp cast, bool reads) {
    Value x = cast.getX();
    if (isHalf(cast.getType())) {
      // An op that computes in f32 by itself need not round what it gives.
      if (cast->hasAttr(nn::kInnerAttr) &&
          getElementTypeOrSelf(x.getType()).isF32()) {
        forms[cast] = {{}, x, {}, cast.getType(), /*isExact=*/false};
        replaced.push_back(cast);
      } else if (reads) {
        cast.getXMutable().set(getWide(x));
      }
      return;
    }
    if (!reads)
      return;
    if (!getElementTypeOrSelf(cast.getType()).isF32()) {
      cast.getXMutable().set(jumps(cast) ? getRounded(x) : getWide(x));
      return;
    }
    for (OpOperand &use : llvm::make_early_inc_range(cast->getUses()))
      use.set(jumps(use.getOwner()) ? getRounded(x) : getWide(x));
    replaced.push_back(cast);
  }

  static RankedTensorType toWide(Type type) {
    return cast<RankedTensorType>(type).clone(
        Float32Type::get(type.getContext()));
  }

  bool isExact(Value x) const {
    auto it = forms.find(x);
    return it == forms.end() || it->second.isExact;
  }

  Forms &formsOf(Value x) {
    auto [it, isNew] = forms.try_emplace(x);
    if (isNew)
      it->second = {x, {}, {}, x.getType(), /*isExact=*/true};
    return it->second;
  }

  Value makeCast(Value x, Type type) {
    b.setInsertionPointAfterValue(x);
    return nn::CastOp::create(b, x.getLoc(), type, x, /*saturate=*/true);
  }

  Value getHalf(Value x) {
    if (!isHalf(x.getType()))
      return x;
    Forms &of = formsOf(x);
    if (!of.half)
      of.half = makeCast(of.wide, of.type);
    return of.half;
  }

  Value getRounded(Value x) {
    if (!isHalf(x.getType()) || isExact(x))
      return getWide(x);
    if (Value known = forms[x].rounded)
      return known;
    Value half = getHalf(x);
    return forms[x].rounded = makeCast(half, toWide(x.getType()));
  }

  Value getWide(Value x) {
    if (!isHalf(x.getType()))
      return x;
    if (Value known = formsOf(x).wide)
      return known;
    return forms[x].wide = makeWide(x);
  }

  /// Of a value that is a half in the rewritten graph, too.
  Value makeWide(Value x) {
    Operation *op = x.getDefiningOp();
    DenseFPElementsAttr numbers;
    if (op && matchPattern(op, m_Constant(&numbers))) {
      b.setInsertionPoint(op);
      auto wide = cast<DenseElementsAttr>(
          numbers.mapValues(b.getF32Type(), [](const APFloat &number) {
            APFloat exact = number;
            bool losesInfo;
            exact.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                          &losesInfo);
            return exact.bitcastToAPInt();
          }));
      return nn::ConstantOp::create(b, op->getLoc(), wide);
    }
    // A row of a table is converted when it has been chosen. Otherwise f32 is
    // moved: transposes and broadcasts are where other passes look for them.
    if (!op || !isMove(op) ||
        cast<nn::IndexedOpInterface>(op).readsComputedPlace())
      return makeCast(x, toWide(x.getType()));
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, getWide(operand));
    b.setInsertionPointAfter(op);
    Value wide = b.clone(*op, operands)->getResult(0);
    wide.setType(toWide(x.getType()));
    return wide;
  }

  Block &block;
  OpBuilder b;
  llvm::DenseMap<Value, Forms> forms; ///< by the model's value
  SmallVector<Operation *> replaced;
};

struct WidenHalvesPass : impl::WidenHalvesPassBase<WidenHalvesPass> {
  using WidenHalvesPassBase::WidenHalvesPassBase;

  void runOnOperation() override {
    // No level of CPUs has arithmetic of halves.
    const bool widens =
        !keep && codegen::allBackends(getOperation(),
                                      [](const codegen::Backend &backend) {
                                        return backend.hasCpuLevels();
                                      });
    if (widens)
      for (Block &block : getOperation().getBody())
        Widening(block).run();
    getOperation().walk(
        [](nn::CastOp cast) { cast->removeAttr(nn::kInnerAttr); });
  }
};

} // namespace
} // namespace partita::simplify
