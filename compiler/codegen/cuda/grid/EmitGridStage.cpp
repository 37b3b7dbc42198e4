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

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen::cuda {

namespace {

class GridStageEmitter {
public:
  GridStageEmitter(const OpBuilder &at, GridContext &context,
                   const StageSchedule &stage)
      : b(stage.op->getLoc(), at), context(context), stage(stage), op(stage.op),
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

  void emit() {
    for (auto [loop, row] : llvm::enumerate(stage.rows)) {
      if (row < 0)
        continue;
      point.positions[loop] = context.buffers.rowStarts[row];
      point.inTile[loop] = b.index(0);
    }
    if (countPoints(stage) == 1) {
      for (unsigned loop : inRow)
        place(loop, b.index(0));
      emitElement();
    } else {
      // Earlier stages may still read there. What this one reads at the place
      // that it writes, the same thread reads.
      if (isInPlace() && &stage != &context.schedule.kernel.stages.front())
        context.rowThreads.barrier(b);
      emitElements();
      if (op != context.schedule.kernel.stages.back().op)
        context.rowThreads.barrier(b);
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

  void place(unsigned loop, Value position) {
    point.positions[loop] = point.inTile[loop] = position;
  }

  /// Sets the positions of loops that are run through as one.
  void placeAll(ArrayRef<unsigned> loops, Value number) {
    SmallVector<int64_t> sizes;
    for (unsigned loop : loops)
      sizes.push_back(stage.sizes[loop]);
    for (auto [loop, position] :
         llvm::zip_equal(loops, emitDigits(b, b.getLoc(), number, sizes)))
      place(loop, position);
  }

  /// The stage's only element of a row, which the thread keeps.
  void emitElement() {
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
                        ? emitSharedReduction()
                        : emitReduction(0, emitStart());
    if (isKept(stage))
      context.elements[op] = element;
    if (!isResult() && isKept(stage))
      return;
    if (points)
      return store(element);
    // One thread writes where all of the row have read.
    if (isInPlace())
      context.rowThreads.barrier(b);
    b.when(context.rowThreads.stores, [&] { store(element); });
    if (!isKept(stage))
      context.rowThreads.barrier(b);
  }

  /// The elements of a row are dealt out to its threads.
  void emitElements() {
    point.vectorLoop = inRow.back();
    point.width = reduction.empty() ? getVectorWidth(stage, inRow.back()) : 1;
    b.loop(first(), b.index(countPoints(stage)),
           point.width * context.rowThreads.size(), [&](Value number) {
             placeAll(inRow, number);
             store(emitReduction(0, emitStart()));
           });
  }

  /// The first position of the thread.
  Value first() {
    Value lane = context.rowThreads.lane;
    return point.width == 1 ? lane : b.mul(lane, b.index(point.width));
  }

  /// The neutral element; null if nothing is reduced.
  Value emitStart() {
    if (reduction.empty())
      return {};
    return toVector(b, b.getLoc(), emitNeutral(b, op), point.width);
  }

  /// Opens a loop that carries `all`, and builds what it has next.
  template <typename Fn>
  Value reduce(Value begin, Value end, Value step, Value all, Fn next) {
    auto loop = scf::ForOp::create(b, begin, end, step, ValueRange{all});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(
        b, next(loop.getInductionVar(), loop.getRegionIterArg(0)));
    return loop.getResult(0);
  }

  /// The stage's element(s) at the point.
  Value emitPoint(Value all) {
    return toVector(b, b.getLoc(),
                    emitBody(b, context.buffers, stage, point, all),
                    point.width);
  }

  /// Opens the reduction loops from `depth` on, one element after the other.
  Value emitReduction(size_t depth, Value all) {
    if (depth == reduction.size())
      return emitPoint(all);
    unsigned dim = reduction[depth];
    return reduce(b.index(0), b.index(stage.sizes[dim]), b.index(1), all,
                  [&](Value position, Value all) {
                    place(dim, position);
                    return emitReduction(depth + 1, all);
                  });
  }

  Value emitSharedReduction() {
    point.vectorLoop = reduction.back();
    point.width = getVectorWidth(stage, reduction.back());
    Value all = reduce(first(), b.index(countReduced(stage)),
                       b.index(point.width * context.rowThreads.size()),
                       emitStart(), [&](Value number, Value all) {
                         placeAll(reduction, number);
                         return emitPoint(all);
                       });
    auto combine = [&](Value x, Value y) {
      return emitCombined(b, combiner, x, y);
    };
    if (point.width != 1) {
      Value sum;
      for (int64_t i = 0; i < point.width; ++i) {
        Value part = vector::ExtractOp::create(b, all, i);
        sum = sum ? combine(sum, part) : part;
      }
      all = sum;
      point.width = 1;
    }
    return context.rowThreads.reduce(b, all, combine);
  }

  void store(Value x) {
    emitStore(b, op, context.buffers.getBuffer(op.getResult(0)), x, point);
  }

  NumberBuilder b;
  GridContext &context;
  const StageSchedule &stage;
  linalg::GenericOp op;
  SmallVector<unsigned> reduction, inRow;
  Operation *combiner;
  EmitPoint point;
};

} // namespace

void emitStage(OpBuilder &b, GridContext &context, const StageSchedule &stage) {
  GridStageEmitter(b, context, stage).emit();
}

} // namespace partita::codegen::cuda
