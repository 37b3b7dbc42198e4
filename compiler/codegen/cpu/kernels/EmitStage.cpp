//===- EmitStage.cpp - The loops of one stage -----------------------------===//
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

#include "compiler/codegen/cpu/kernels/EmitStage.h"

#include "compiler/codegen/kernels/EmitBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen {
namespace {

/// Bits of the widest vectors, in several registers so that their chains of
/// operations overlap, and of the narrower ones.
constexpr int64_t kWideBits = 2048, kNarrowBits = 512;

/// Elements that a transpose writes one after the other: a cache line of f32.
constexpr int64_t kStripWidth = 16;

/// Bits of the side of a square that is transposed in registers: the registers
/// of AVX2 hold it. Squares of 16 by 16 f32 spill: transposes within the caches
/// ran at a third of the speed (Zen 3), and took seven times as long to
/// compile.
constexpr int64_t kSquareBits = 256;

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

  void emit(OpBuilder &b) {
    // A temporary is cut to tiles, and lies otherwise.
    bool temporary =
        llvm::any_of(target.rows, [](int row) { return row >= 0; });
    if (std::optional<Crossing> crossing = findCrossing(op);
        crossing && !temporary && !readsTemporary() && !context.schedule.scalar)
      return emitCrossing(b, *crossing, 0);
    emitParallel(b, 0);
  }

private:
  bool readsTemporary() {
    return llvm::any_of(op.getDpsInputs(), [&](Value input) {
      return llvm::any_of(context.getBuffer(input).rows,
                          [](int row) { return row >= 0; });
    });
  }

  bool isReduction(unsigned loop) const {
    return llvm::is_contained(reduction, loop);
  }

  /// The loop over vectors: the last reduction, else the last parallel loop.
  void chooseWidths() {
    widths = {1};
    combiner = findCombiner(op);
    SmallVector<unsigned> candidates;
    if (context.schedule.scalar)
      return;
    if (!reduction.empty() && combiner)
      candidates.push_back(reduction.back());
    if (!parallel.empty())
      candidates.push_back(parallel.back());
    for (unsigned loop : candidates) {
      if (stage.sizes[loop] < 4 || !isVectorizable(context, stage, loop))
        continue;
      breaks = *findBreaks(op, loop);
      if (isReduction(loop) && !breaks.empty())
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

  using PieceFn = llvm::function_ref<void(OpBuilder &, int64_t)>;

  /// Runs over a loop in pieces of each width, which `body` is called with.
  void emitPieces(OpBuilder &b, unsigned loop, ArrayRef<int64_t> widths,
                  PieceFn body) {
    int64_t fixed;
    Value count = getCount(b, loop, fixed);
    if (fixed >= 0)
      return emitRange(b, loop, 0, fixed, widths, body);
    emitRange(b, loop, constant(b, 0), count, widths, body);
  }

  void emitPiece(OpBuilder &b, unsigned loop, Value from, Value to,
                 int64_t width, PieceFn body) {
    emitFor(b, loop, from, to, width, {}, [&](OpBuilder &inner, ValueRange) {
      body(inner, width);
      return SmallVector<Value>();
    });
  }

  void emitRange(OpBuilder &b, unsigned loop, int64_t from, int64_t to,
                 ArrayRef<int64_t> widths, PieceFn body) {
    for (int64_t width : widths) {
      int64_t stop = from + (to - from) / width * width;
      if (stop > from)
        emitPiece(b, loop, constant(b, from), constant(b, stop), width, body);
      from = stop;
    }
  }

  void emitRange(OpBuilder &b, unsigned loop, Value from, Value to,
                 ArrayRef<int64_t> widths, PieceFn body) {
    for (int64_t width : widths) {
      Value stop = to;
      if (width != 1) {
        Value length = arith::SubIOp::create(b, loc, to, from);
        Value rest = arith::RemUIOp::create(b, loc, length, constant(b, width));
        stop = arith::SubIOp::create(b, loc, to, rest);
      }
      emitPiece(b, loop, from, stop, width, body);
      from = stop;
    }
  }

  /// Runs over the loop of the vectors, apart for the ranges within which
  /// conditions of the body stay as they are.
  void emitSegments(OpBuilder &b, unsigned loop, PieceFn body) {
    if (breaks.empty())
      return emitPieces(b, loop, widths, body);
    int64_t fixed, size = stage.sizes[loop], low = 0;
    Value count = getCount(b, loop, fixed);
    SmallVector<int64_t> ends;
    for (int64_t end : breaks)
      if (end > 0 && end < size)
        ends.push_back(end);
    ends.push_back(size);
    bool whole = fixed == size;
    Value start = whole || stage.rows[loop] < 0
                      ? Value()
                      : context.rowStarts[stage.rows[loop]];
    auto place = [&](int64_t position) {
      Value zero = constant(b, 0);
      Value moved = arith::SubIOp::create(b, loc, constant(b, position), start);
      moved = arith::MaxSIOp::create(b, loc, moved, zero);
      return arith::MinSIOp::create(b, loc, moved, count).getResult();
    };
    for (int64_t high : ends) {
      point.low = low;
      point.high = high;
      if (start)
        emitRange(b, loop, place(low), place(high), widths, body);
      else
        emitRange(b, loop, low, high, widths, body);
      low = high;
    }
    point.low = point.high = 0;
  }

  void emitParallel(OpBuilder &b, unsigned depth) {
    if (depth == parallel.size())
      return emitPoints(b);
    unsigned loop = parallel[depth];
    int64_t fixed;
    Value count = getCount(b, loop, fixed);
    if (vectorized && loop == point.vectorLoop) {
      emitSegments(b, loop, [&](OpBuilder &inner, int64_t width) {
        point.width = width;
        emitParallel(inner, depth + 1);
        point.width = 1;
      });
    } else if (fixed == 1) {
      place(b, loop, constant(b, 0));
      emitParallel(b, depth + 1);
    } else {
      emitPiece(
          b, loop, constant(b, 0), count, 1,
          [&](OpBuilder &inner, int64_t) { emitParallel(inner, depth + 1); });
    }
  }

  /// Opens the loops but the two that cross, then those two.
  void emitCrossing(OpBuilder &b, const Crossing &crossing, unsigned loop) {
    while (loop < stage.sizes.size() &&
           (loop == crossing.read || loop == crossing.written))
      ++loop;
    if (loop < stage.sizes.size()) {
      emitPieces(b, loop, {1}, [&](OpBuilder &inner, int64_t) {
        emitCrossing(inner, crossing, loop + 1);
      });
      return;
    }
    SmallVector<int64_t> widths{kStripWidth, kStripWidth / 2, kStripWidth / 4,
                                1};
    if (crossing.interleaves) {
      emitPieces(b, crossing.read, widths,
                 [&](OpBuilder &inner, int64_t width) {
                   emitInterleaved(inner, crossing, width);
                 });
      return;
    }
    const int64_t side = getSquareSide(crossing);
    emitPieces(b, crossing.written, widths,
               [&](OpBuilder &inner, int64_t width) {
                 emitStrip(inner, crossing, width, std::min(width, side));
               });
  }

  int64_t getSquareSide(const Crossing &crossing) {
    int64_t side = kStripWidth;
    for (unsigned number : crossing.operands) {
      Type type = getElementTypeOrSelf(op->getOperand(number).getType());
      side = std::min(side, kSquareBits / type.getIntOrFloatBitWidth());
    }
    return side;
  }

  /// `width` elements along the written loop, over the whole read loop.
  void emitStrip(OpBuilder &b, const Crossing &crossing, int64_t width,
                 int64_t side) {
    SmallVector<int64_t> widths{side};
    if (side != 1)
      widths.push_back(1);
    emitPieces(b, crossing.read, widths, [&](OpBuilder &inner, int64_t rows) {
      if (rows == 1)
        return emitCrossed(inner, crossing, width);
      for (int64_t first = 0; first < width; first += side)
        emitSquare(inner, crossing, side, first);
    });
  }

  /// The point moved along a loop.
  EmitPoint moved(OpBuilder &b, EmitPoint from, unsigned loop, Value by) {
    for (SmallVector<Value> *places : {&from.positions, &from.inTile})
      (*places)[loop] = arith::AddIOp::create(b, loc, (*places)[loop], by);
    return from;
  }
  EmitPoint moved(OpBuilder &b, EmitPoint from, unsigned loop, int64_t by) {
    return by == 0 ? from : moved(b, from, loop, constant(b, by));
  }

  void store(OpBuilder &b, Value x, const EmitPoint &at) {
    emitStore(b, op, target, x, at);
  }

  /// Element by element: the edges. Where tiles may have none, it is a loop of
  /// a few: they are rarely run, and LLVM takes long for much code.
  void emitCrossed(OpBuilder &b, const Crossing &crossing, int64_t width) {
    EmitPoint here = point;
    here.width = 1;
    int64_t fixed;
    getCount(b, crossing.read, fixed);
    const int64_t step = fixed >= 0 ? width : std::min<int64_t>(width, 4);
    auto loop = scf::ForOp::create(b, loc, constant(b, 0), constant(b, width),
                                   constant(b, step));
    OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
    here = moved(inner, here, crossing.written, loop.getInductionVar());
    for (int64_t i = 0; i < step; ++i) {
      EmitPoint at = moved(inner, here, crossing.written, i);
      store(inner, emitBody(inner, context, stage, at, {}), at);
    }
  }

  /// A square, from `first` along the written loop: rows are loaded as they
  /// lie, turned in registers, and stored as they shall lie.
  void emitSquare(OpBuilder &b, const Crossing &crossing, int64_t width,
                  int64_t first) {
    SmallVector<SmallVector<Value>> columns(op.getNumDpsInputs());
    EmitPoint here = moved(b, point, crossing.written, first);
    here.width = width;
    here.vectorLoop = crossing.read;
    for (unsigned number : crossing.operands) {
      SmallVector<Value> &rows = columns[number];
      for (int64_t i = 0; i < width; ++i)
        rows.push_back(emitLoad(b, context, op->getOpOperand(number),
                                moved(b, here, crossing.written, i)));
      transpose(b, rows);
    }
    here.vectorLoop = crossing.written;
    here.loaded.resize(op.getNumDpsInputs());
    for (int64_t i = 0; i < width; ++i) {
      for (unsigned number : crossing.operands)
        here.loaded[number] = columns[number][i];
      EmitPoint at = moved(b, here, crossing.read, i);
      store(b, emitBody(b, context, stage, at, {}), at);
    }
  }

  /// Turns a square. Within lanes of 16 bytes an instruction interleaves two
  /// rows. Interleaving the first half of as many rows as a lane has elements
  /// with the second turns the bits of an element's place among them by one:
  /// as many times as the number of a row has bits, and rows are columns.
  /// Whole lanes are exchanged then, between rows that are 1, 2, 4, .. lanes
  /// apart.
  void transpose(OpBuilder &b, SmallVector<Value> &rows) {
    const int64_t width = rows.size();
    Type element = cast<VectorType>(rows[0].getType()).getElementType();
    const int64_t lane =
        std::min<int64_t>(width, 128 / element.getIntOrFloatBitWidth());
    auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> order) {
      return vector::ShuffleOp::create(b, loc, x, y, order);
    };
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < width; ++i) {
      const int64_t inLane = i % lane;
      low.push_back(i - inLane + inLane / 2 + inLane % 2 * width);
      high.push_back(low.back() + lane / 2);
    }
    for (int64_t step = 1; step < lane; step *= 2) {
      SmallVector<Value> next;
      for (int64_t i = 0; i < width; ++i)
        if (i % lane < lane / 2)
          for (ArrayRef<int64_t> order : {low, high})
            next.push_back(shuffle(rows[i], rows[i + lane / 2], order));
      rows = next;
    }
    for (int64_t apart = lane; apart < width; apart *= 2) {
      for (int64_t i = 0; i < width; ++i) {
        low[i] = i & apart ? width + i - apart : i;
        high[i] = i & apart ? width + i : i + apart;
      }
      for (int64_t i = 0; i < width; ++i)
        if (!(i & apart)) {
          Value x = rows[i], y = rows[i + apart];
          rows[i] = shuffle(x, y, low);
          rows[i + apart] = shuffle(x, y, high);
        }
    }
  }

  /// The written loop is short and whole, and the other goes on where it ends:
  /// computes along the other and interleaves.
  void emitInterleaved(OpBuilder &b, const Crossing &crossing, int64_t width) {
    int64_t count = stage.sizes[crossing.written];
    EmitPoint here = point;
    here.width = width;
    here.vectorLoop = crossing.read;
    SmallVector<Value> parts;
    place(b, crossing.written, constant(b, 0));
    here.positions[crossing.written] = point.positions[crossing.written];
    here.inTile[crossing.written] = point.inTile[crossing.written];
    for (int64_t i = 0; i < count; ++i) {
      EmitPoint at = moved(b, here, crossing.written, i);
      Value x = emitBody(b, context, stage, at, {});
      if (width == 1)
        store(b, x, at);
      else
        parts.push_back(toVector(b, loc, x, width));
    }
    if (width == 1)
      return;
    // One vector after the other, then in the order of memory.
    Value all = parts[0];
    for (int64_t i = 1; i < count; ++i) {
      SmallVector<int64_t> order;
      for (int64_t place = 0; place < width; ++place) {
        for (int64_t part = 0; part < i; ++part)
          order.push_back(place * i + part);
        order.push_back(width * i + place);
      }
      all = vector::ShuffleOp::create(b, loc, all, parts[i], order);
    }
    here.width = width * count;
    store(b, all, here);
  }

  /// All parallel loops are open: computes and stores.
  void emitPoints(OpBuilder &b) {
    Value result;
    if (reduction.empty()) {
      result = emitBody(b, context, stage, point, {});
    } else if (vectorized && isReduction(point.vectorLoop)) {
      result = emitVectorReduction(b);
    } else {
      SmallVector<Value> all{toVector(b, loc, emitNeutral(b, op), point.width)};
      result = emitReduction(b, 0, all, [&](OpBuilder &inner, ValueRange acc) {
        Value next = emitBody(inner, context, stage, point, acc[0]);
        return SmallVector<Value>{toVector(inner, loc, next, point.width)};
      })[0];
    }
    store(b, result, point);
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
    return emitCombined(b, combiner, all, x);
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
      all.push_back(toVector(b, loc, emitNeutral(b, op), width));
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
            b, loc, *linalg::getCombinerOpKind(combiner), part,
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
  KernelBuffer target;
  SmallVector<unsigned> parallel, reduction;
  SmallVector<int64_t> widths, breaks;
  Operation *combiner = nullptr;
  bool vectorized = false;
  EmitPoint point;
};

} // namespace

void emitStage(OpBuilder &b, EmitContext &context, const StageSchedule &stage) {
  StageEmitter(context, stage).emit(b);
}

} // namespace partita::codegen
