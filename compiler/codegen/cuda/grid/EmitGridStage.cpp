//===- EmitGridStage.cpp - What the threads do for one stage --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage of one element a row:
//   points   the thread computes it, for each of its rows
//   rows     each thread combines a part of the elements, then the threads
//            combine what they have; all of them keep the result
// A stage of many elements a row: each thread computes some of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/grid/EmitGrid.h"

#include "compiler/codegen/kernels/EmitBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen::cuda {

namespace {

class GridStageEmitter {
public:
  GridStageEmitter(GridContext &context, const StageSchedule &stage)
      : context(context), stage(stage), op(stage.op), loc(op.getLoc()),
        combiner(findCombiner(op)) {
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
      if (kind == utils::IteratorType::reduction)
        reduction.push_back(loop);
      else if (stage.rows[loop] < 0)
        inRow.push_back(loop);
    }
    point.positions.resize(stage.sizes.size());
    point.inTile.resize(stage.sizes.size());
    point.loaded.resize(op.getNumDpsInputs());
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Value staged = context.staged.lookup(operand);
      point.loaded[operand->getOperandNumber()] =
          staged ? staged
                 : context.elements.lookup(
                       skipViews(operand->get()).getDefiningOp());
    }
  }

  void emit(OpBuilder &b) {
    for (auto [loop, row] : llvm::enumerate(stage.rows)) {
      if (row < 0)
        continue;
      point.positions[loop] = context.buffers.rowStarts[row];
      point.inTile[loop] = constant(b, 0);
    }
    if (countPoints(stage) == 1) {
      for (unsigned loop : inRow)
        place(loop, constant(b, 0));
      emitElement(b);
    } else {
      // Earlier stages may still read there. What this one reads at the place
      // that it writes, the same thread reads.
      if (isInPlace() && &stage != &context.schedule.kernel.stages.front())
        context.rowThreads.barrier(b, loc);
      emitElements(b);
      if (op != context.schedule.kernel.stages.back().op)
        context.rowThreads.barrier(b, loc);
    }
  }

private:
  bool isResult() {
    return isa<BlockArgument>(getStorageRoot(op.getResult(0)));
  }

  /// Whether the result may lie where an operand of the kernel does.
  bool isInPlace() {
    auto result = dyn_cast<BlockArgument>(getStorageRoot(op.getResult(0)));
    if (!result)
      return false;
    auto kernel = op->getParentOfType<func::FuncOp>();
    const int64_t number =
        int64_t(result.getArgNumber()) -
        (int64_t(kernel.getNumArguments()) - int64_t(kernel.getNumResults()));
    ArrayRef<int64_t> pairs = context.schedule.kernel.inPlace;
    for (size_t i = 1; i < pairs.size(); i += 2)
      if (pairs[i] == number)
        return true;
    return false;
  }

  Value constant(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  void place(unsigned loop, Value position) {
    point.positions[loop] = point.inTile[loop] = position;
  }

  /// Sets the positions of loops that are run through as one.
  void placeAll(OpBuilder &b, ArrayRef<unsigned> loops, Value number) {
    SmallVector<int64_t> sizes;
    for (unsigned loop : loops)
      sizes.push_back(stage.sizes[loop]);
    for (auto [loop, position] :
         llvm::zip_equal(loops, emitDigits(b, loc, number, sizes)))
      place(loop, position);
  }

  /// The stage's only element of a row, which the thread keeps.
  void emitElement(OpBuilder &b) {
    const bool points = context.schedule.rowThreads == 1;
    if (points) {
      const int last =
          static_cast<int>(context.schedule.kernel.sizes.size()) - 1;
      auto loop = llvm::find(stage.rows, last);
      point.width = context.schedule.width;
      if (loop != stage.rows.end())
        point.vectorLoop = loop - stage.rows.begin();
    }
    Value element = !points && combiner && countReduced(stage) > 1
                        ? emitSharedReduction(b)
                        : emitReduction(b, 0, emitStart(b));
    if (isKept(stage))
      context.elements[op] = element;
    if (!isResult() && isKept(stage))
      return;
    OpBuilder::InsertionGuard guard(b);
    if (!points) {
      // One thread writes where all of the row have read.
      if (isInPlace())
        context.rowThreads.barrier(b, loc);
      auto branch = scf::IfOp::create(b, loc, context.rowThreads.stores,
                                      /*withElseRegion=*/false);
      {
        OpBuilder inner = branch.getThenBodyBuilder();
        store(inner, element);
      }
      if (!isKept(stage))
        context.rowThreads.barrier(b, loc);
      return;
    }
    store(b, element);
  }

  /// The elements of a row are dealt out to its threads.
  void emitElements(OpBuilder &b) {
    point.vectorLoop = inRow.back();
    point.width = reduction.empty() ? getVectorWidth(stage, inRow.back()) : 1;
    auto loop = scf::ForOp::create(
        b, loc, first(b), constant(b, countPoints(stage)),
        constant(b, point.width * context.rowThreads.size()));
    OpBuilder inner(loop.getBody()->getTerminator());
    placeAll(inner, inRow, loop.getInductionVar());
    store(inner, emitReduction(inner, 0, emitStart(inner)));
  }

  /// The first position of the thread.
  Value first(OpBuilder &b) {
    if (point.width == 1)
      return context.rowThreads.lane;
    return arith::MulIOp::create(b, loc, context.rowThreads.lane,
                                 constant(b, point.width));
  }

  /// The neutral element; null if nothing is reduced.
  Value emitStart(OpBuilder &b) {
    if (reduction.empty())
      return {};
    return toVector(b, loc, emitNeutral(b, op), point.width);
  }

  /// Opens the reduction loops from `depth` on, one element after the other.
  Value emitReduction(OpBuilder &b, size_t depth, Value all) {
    if (depth == reduction.size())
      return toVector(b, loc, emitBody(b, context.buffers, stage, point, all),
                      point.width);
    unsigned dim = reduction[depth];
    auto loop = scf::ForOp::create(b, loc, constant(b, 0),
                                   constant(b, stage.sizes[dim]),
                                   constant(b, 1), ValueRange{all});
    OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
    place(dim, loop.getInductionVar());
    Value next = emitReduction(inner, depth + 1, loop.getRegionIterArg(0));
    scf::YieldOp::create(inner, loc, next);
    return loop.getResult(0);
  }

  Value emitSharedReduction(OpBuilder &b) {
    point.vectorLoop = reduction.back();
    point.width = getVectorWidth(stage, reduction.back());
    auto loop =
        scf::ForOp::create(b, loc, first(b), constant(b, countReduced(stage)),
                           constant(b, point.width * context.rowThreads.size()),
                           ValueRange{emitStart(b)});
    OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
    placeAll(inner, reduction, loop.getInductionVar());
    Value next = emitBody(inner, context.buffers, stage, point,
                          loop.getRegionIterArg(0));
    scf::YieldOp::create(inner, loc, toVector(inner, loc, next, point.width));
    Value all = loop.getResult(0);
    if (point.width != 1) {
      Value sum;
      for (int64_t i = 0; i < point.width; ++i) {
        Value part = vector::ExtractOp::create(b, loc, all, i);
        sum = sum ? emitCombined(b, combiner, sum, part) : part;
      }
      all = sum;
      point.width = 1;
    }
    return context.rowThreads.reduce(b, loc, all,
                                     [&](OpBuilder &at, Value x, Value y) {
                                       return emitCombined(at, combiner, x, y);
                                     });
  }

  void store(OpBuilder &b, Value x) {
    emitStore(b, op, context.buffers.getBuffer(op.getResult(0)), x, point);
  }

  GridContext &context;
  const StageSchedule &stage;
  linalg::GenericOp op;
  Location loc;
  SmallVector<unsigned> reduction, inRow;
  Operation *combiner;
  EmitPoint point;
};

} // namespace

void emitStage(OpBuilder &b, GridContext &context, const StageSchedule &stage) {
  GridStageEmitter(context, stage).emit(b);
}

} // namespace partita::codegen::cuda
