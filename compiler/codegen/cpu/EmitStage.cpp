//===- EmitStage.cpp - The loops of one stage -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One loop of a stage runs over vectors: first as many wide ones as fit, then
// narrower ones, then single elements. If that loop is a reduction, each width
// has an accumulator of its own, and they are combined at the end: in an order
// that depends on the sizes alone.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/EmitBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen {
namespace {

/// Bits of the widest vectors, in several registers so that their chains of
/// operations overlap, and of the narrower ones.
constexpr int64_t kWideBits = 2048, kNarrowBits = 512;

std::optional<vector::CombiningKind> getCombiningKind(Operation *op) {
  using Kind = vector::CombiningKind;
  if (isa<arith::AddFOp, arith::AddIOp>(op))
    return Kind::ADD;
  if (isa<arith::MulFOp, arith::MulIOp>(op))
    return Kind::MUL;
  if (isa<arith::MaximumFOp>(op))
    return Kind::MAXIMUMF;
  if (isa<arith::MinimumFOp>(op))
    return Kind::MINIMUMF;
  if (isa<arith::MaxNumFOp>(op))
    return Kind::MAXNUMF;
  if (isa<arith::MaxSIOp>(op))
    return Kind::MAXSI;
  if (isa<arith::MaxUIOp>(op))
    return Kind::MAXUI;
  if (isa<arith::MinSIOp>(op))
    return Kind::MINSI;
  if (isa<arith::MinUIOp>(op))
    return Kind::MINUI;
  return std::nullopt;
}

class StageEmitter {
public:
  StageEmitter(EmitContext &context, const StageSchedule &stage)
      : context(context), stage(stage), op(stage.op), loc(op.getLoc()),
        target(context.getBuffer(op.getResult(0))) {
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      (kind == utils::IteratorType::parallel ? parallel : reduction)
          .push_back(loop);
    point.positions.resize(stage.sizes.size());
    point.inTile.resize(stage.sizes.size());
    chooseWidths();
  }

  void emit(OpBuilder &b) { emitParallel(b, 0); }

private:
  bool isReduction(unsigned loop) const {
    return llvm::is_contained(reduction, loop);
  }

  /// The loop over vectors: the last reduction, else the last parallel loop.
  void chooseWidths() {
    widths = {1};
    combiner = findCombiner();
    SmallVector<unsigned> candidates;
    if (!reduction.empty() && combiner && getCombiningKind(combiner))
      candidates.push_back(reduction.back());
    if (!parallel.empty())
      candidates.push_back(parallel.back());
    for (unsigned loop : candidates) {
      if (stage.sizes[loop] < 4 || !isVectorizable(context, stage, loop))
        continue;
      point.vectorLoop = loop;
      vectorized = true;
      int64_t bits = 8;
      for (Type type : op.getBody()->getArgumentTypes())
        bits = std::max<int64_t>(bits, type.getIntOrFloatBitWidth());
      op.getBody()->walk([&](Operation *inner) {
        for (Type type : inner->getResultTypes())
          bits = std::max<int64_t>(
              bits, type.isIndex() ? 64 : type.getIntOrFloatBitWidth());
      });
      widths = {kWideBits / bits, kNarrowBits / bits, 1};
      return;
    }
    if (!parallel.empty())
      point.vectorLoop = parallel.back();
    else if (!reduction.empty())
      point.vectorLoop = reduction.back();
  }

  /// The op that combines the accumulator and one element, if it is just one.
  Operation *findCombiner() {
    Value result = op.getBody()->getTerminator()->getOperand(0);
    BlockArgument all = op.getRegionOutputArgs()[0];
    Operation *def = result.getDefiningOp();
    if (!def || !all.hasOneUse() || *all.user_begin() != def ||
        def->getNumOperands() != 2)
      return nullptr;
    return def;
  }

  Value constant(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  /// Iterations of a loop within the tile; static unless the last tile is cut.
  Value getCount(OpBuilder &b, unsigned loop, int64_t &fixed) {
    int row = stage.rows[loop];
    fixed = row < 0 ? stage.sizes[loop] : context.schedule.tiles[row];
    if (row >= 0 && context.rowCounts[row]) {
      fixed = -1;
      return context.rowCounts[row];
    }
    return constant(b, fixed);
  }

  void place(OpBuilder &b, unsigned loop, Value inTile) {
    point.inTile[loop] = inTile;
    int row = stage.rows[loop];
    point.positions[loop] =
        row < 0 ? inTile
                : arith::AddIOp::create(b, loc, context.rowStarts[row], inTile)
                      .getResult();
  }

  /// Emits `body` for the values of a loop, carrying `values`.
  SmallVector<Value> emitFor(
      OpBuilder &b, unsigned loop, Value from, Value to, int64_t step,
      ArrayRef<Value> values,
      llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> body) {
    auto loopOp =
        scf::ForOp::create(b, loc, from, to, constant(b, step), values);
    OpBuilder inner = OpBuilder::atBlockBegin(loopOp.getBody());
    place(inner, loop, loopOp.getInductionVar());
    SmallVector<Value> next = body(inner, loopOp.getRegionIterArgs());
    if (!values.empty())
      scf::YieldOp::create(inner, loc, next);
    return SmallVector<Value>(loopOp.getResults());
  }

  /// Runs over a loop in pieces of each width. `body` is called with the number
  /// of the width.
  void emitPieces(OpBuilder &b, unsigned loop,
                  llvm::function_ref<void(OpBuilder &, unsigned)> body) {
    int64_t fixed;
    Value count = getCount(b, loop, fixed);
    Value from = constant(b, 0);
    int64_t start = 0;
    for (auto [number, width] : llvm::enumerate(widths)) {
      Value to = count;
      if (fixed >= 0) {
        int64_t stop = fixed / width * width;
        if (stop <= start)
          continue;
        start = stop;
        to = constant(b, stop);
      } else if (width != 1) {
        Value w = constant(b, width);
        Value rest = arith::RemUIOp::create(b, loc, count, w);
        to = arith::SubIOp::create(b, loc, count, rest);
      }
      emitFor(b, loop, from, to, width, {}, [&](OpBuilder &inner, ValueRange) {
        body(inner, number);
        return SmallVector<Value>();
      });
      from = to;
    }
  }

  void emitParallel(OpBuilder &b, unsigned depth) {
    if (depth == parallel.size())
      return emitPoints(b);
    unsigned loop = parallel[depth];
    int64_t fixed;
    Value count = getCount(b, loop, fixed);
    if (vectorized && loop == point.vectorLoop) {
      emitPieces(b, loop, [&](OpBuilder &inner, unsigned number) {
        point.width = widths[number];
        emitParallel(inner, depth + 1);
        point.width = 1;
      });
    } else if (fixed == 1) {
      place(b, loop, constant(b, 0));
      emitParallel(b, depth + 1);
    } else {
      emitFor(b, loop, constant(b, 0), count, 1, {},
              [&](OpBuilder &inner, ValueRange) {
                emitParallel(inner, depth + 1);
                return SmallVector<Value>();
              });
    }
  }

  /// All parallel loops are open: computes and stores.
  void emitPoints(OpBuilder &b) {
    Value result;
    if (reduction.empty()) {
      result = emitBody(b, context, stage, point, {});
    } else if (vectorized && isReduction(point.vectorLoop)) {
      result = emitVectorReduction(b);
    } else {
      SmallVector<Value> all{toVector(b, loc, emitNeutral(b), point.width)};
      result = emitReduction(b, 0, all, [&](OpBuilder &inner, ValueRange acc) {
        Value next = emitBody(inner, context, stage, point, acc[0]);
        return SmallVector<Value>{toVector(inner, loc, next, point.width)};
      })[0];
    }
    result = toVector(b, loc, result, point.width);
    AffineMap map = op.getIndexingMapsArray().back();
    Value address = emitAddress(b, loc, target, map, point);
    if (point.width == 1)
      memref::StoreOp::create(b, loc, result, target.memref, address);
    else
      vector::StoreOp::create(b, loc, result, target.memref, address);
  }

  Value emitNeutral(OpBuilder &b) {
    Value init = op.getDpsInits()[0];
    while (!init.getDefiningOp<linalg::FillOp>())
      init = init.getDefiningOp()->getOperand(0); // a view
    auto fill = init.getDefiningOp<linalg::FillOp>();
    Value value = fill.getInputs()[0];
    return b.clone(*value.getDefiningOp())->getResult(0);
  }

  using ReduceFn =
      llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)>;

  /// Opens the reduction loops from `depth` on, but not the one over vectors.
  SmallVector<Value> emitReduction(OpBuilder &b, unsigned depth,
                                   ArrayRef<Value> all, ReduceFn body) {
    while (depth < reduction.size() && vectorized &&
           reduction[depth] == point.vectorLoop)
      ++depth;
    if (depth == reduction.size())
      return body(b, all);
    unsigned loop = reduction[depth];
    return emitFor(b, loop, constant(b, 0), constant(b, stage.sizes[loop]), 1,
                   all, [&](OpBuilder &inner, ValueRange values) {
                     return emitReduction(inner, depth + 1,
                                          SmallVector<Value>(values), body);
                   });
  }

  Value combine(OpBuilder &b, Value all, Value x) {
    if (isa<arith::MaxNumFOp>(combiner)) {
      // One instruction, and right because the accumulator is never a NaN.
      Value larger =
          arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, all);
      return arith::SelectOp::create(b, loc, larger, x, all);
    }
    OperationState state(loc, combiner->getName());
    state.addOperands({all, x});
    state.addTypes(all.getType());
    state.addAttributes(combiner->getAttrs());
    return b.create(state)->getResult(0);
  }

  Value emitVectorReduction(OpBuilder &b) {
    unsigned loop = point.vectorLoop;
    int64_t size = stage.sizes[loop];
    SmallVector<int64_t> used;
    SmallVector<std::pair<int64_t, int64_t>> ranges;
    int64_t start = 0;
    for (int64_t width : widths) {
      int64_t stop = size / width * width;
      if (stop <= start)
        continue;
      used.push_back(width);
      ranges.push_back({start, stop});
      start = stop;
    }
    SmallVector<Value> all;
    for (int64_t width : used)
      all.push_back(toVector(b, loc, emitNeutral(b), width));
    all = emitReduction(b, 0, all, [&](OpBuilder &inner, ValueRange values) {
      SmallVector<Value> next(values);
      for (auto [i, width] : llvm::enumerate(used)) {
        next[i] = emitFor(inner, loop, constant(inner, ranges[i].first),
                          constant(inner, ranges[i].second), width, {next[i]},
                          [&](OpBuilder &body, ValueRange acc) {
                            point.width = width;
                            Value sum =
                                emitBody(body, context, stage, point, acc[0]);
                            point.width = 1;
                            return SmallVector<Value>{sum};
                          })[0];
      }
      return next;
    });
    Value result;
    for (auto [width, part] : llvm::zip_equal(used, all)) {
      Value scalar = part;
      if (width != 1)
        scalar = vector::ReductionOp::create(
            b, loc, *getCombiningKind(combiner), part,
            isa<FloatType>(getElementTypeOrSelf(part))
                ? arith::FastMathFlags::reassoc
                : arith::FastMathFlags::none);
      result = result ? combine(b, result, scalar) : scalar;
    }
    return result;
  }

  EmitContext &context;
  const StageSchedule &stage;
  linalg::GenericOp op;
  Location loc;
  Buffer target;
  SmallVector<unsigned> parallel, reduction;
  SmallVector<int64_t> widths;
  Operation *combiner = nullptr;
  bool vectorized = false;
  EmitPoint point;
};

} // namespace

LogicalResult emitStage(OpBuilder &b, EmitContext &context,
                        const StageSchedule &stage) {
  StageEmitter(context, stage).emit(b);
  return success();
}

} // namespace partita::codegen
