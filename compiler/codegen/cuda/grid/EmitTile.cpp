//===- EmitTile.cpp - What the threads do for a tile ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a block take the elements of its tile in turns, twice:
//
//   along `read`      load each staged operand, put it into shared memory
//   barrier
//   along `written`   compute the stages, with what lies in shared memory
//
// All threads come to the barrier, also those of a tile at an edge: they load
// the edge once more.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/grid/EmitGrid.h"
#include "compiler/codegen/cuda/grid/Tile.h"

#include "compiler/codegen/kernels/EmitBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

class TileEmitter {
public:
  TileEmitter(GridContext &context, Location loc)
      : context(context), schedule(context.schedule), loc(loc),
        transposition(*findTransposition(schedule.kernel)),
        read(transposition.read), written(transposition.written) {}

  void emit(OpBuilder &b, ModuleOp target, StringRef name, Value block) {
    thread = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
    placeTile(b, block);
    for (OpOperand *operand : transposition.staged) {
      StagedTile tile = getStagedTile(schedule, transposition, *operand);
      Type element =
          cast<RankedTensorType>(operand->get().getType()).getElementType();
      tiles.push_back(
          {operand, tile.pitch,
           declareShared(b, loc, target,
                         (name + "_tile" + Twine(tiles.size())).str(),
                         tile.pitch * tile.lines, element)});
    }
    stage(b);
    NVVM::Barrier0Op::create(b, loc);
    compute(b);
  }

private:
  struct Tile {
    OpOperand *operand;
    int64_t pitch;
    Value memref;
  };

  Value number(OpBuilder &b, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  Value toIndex(OpBuilder &b, Value x) {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), x);
  }
  int64_t getElements() { return schedule.tile[read] * schedule.tile[written]; }
  bool isWhole(unsigned row) {
    return schedule.kernel.sizes[row] % schedule.tile[row] == 0;
  }

  /// The first place of the block's tile along each row dimension.
  void placeTile(OpBuilder &b, Value block) {
    SmallVector<int64_t> counts;
    for (auto [size, tile] :
         llvm::zip_equal(schedule.kernel.sizes, schedule.tile))
      counts.push_back(llvm::divideCeil(size, tile));
    starts = emitDigits(b, loc, block, counts);
    context.buffers.rowCounts.resize(counts.size());
    for (auto [start, tile] : llvm::zip_equal(starts, schedule.tile)) {
      start = arith::MulIOp::create(b, loc, start, number(b, tile));
      context.buffers.rowStarts.push_back(toIndex(b, start));
    }
  }

  /// Where the element of a tile lies in shared memory.
  Value getSlot(OpBuilder &b, const Tile &tile, Value alongRead,
                Value alongWritten) {
    Value line =
        arith::MulIOp::create(b, loc, alongWritten, number(b, tile.pitch));
    return toIndex(b, arith::AddIOp::create(b, loc, line, alongRead));
  }

  /// Loads of one thread do not wait for each other: all of them come first.
  void stage(OpBuilder &b) {
    struct Loaded {
      Value element, alongRead, alongWritten;
    };
    SmallVector<SmallVector<Loaded>> loaded(tiles.size());
    Value extent = number(b, schedule.tile[read]);
    const bool whole = getElements() % schedule.threads == 0;
    for (int64_t first = 0; first < getElements(); first += schedule.threads) {
      Value which = arith::AddIOp::create(b, loc, thread, number(b, first));
      Value alongRead = arith::RemUIOp::create(b, loc, which, extent),
            alongWritten = arith::DivUIOp::create(b, loc, which, extent);
      SmallVector<Value> positions(context.buffers.rowStarts);
      positions[read] = clamp(b, read, alongRead, isWhole(read));
      positions[written] =
          clamp(b, written, alongWritten, whole && isWhole(written));
      for (auto [tile, elements] : llvm::zip_equal(tiles, loaded))
        elements.push_back(
            {load(b, *tile.operand, positions), alongRead, alongWritten});
    }
    for (auto [tile, elements] : llvm::zip_equal(tiles, loaded))
      for (const Loaded &each : elements)
        memref::StoreOp::create(
            b, loc, each.element, tile.memref,
            getSlot(b, tile, each.alongRead, each.alongWritten));
  }

  /// The place in the whole tensor, or the last one where that is behind it.
  Value clamp(OpBuilder &b, unsigned row, Value inTile, bool inside) {
    Value place = arith::AddIOp::create(b, loc, starts[row], inTile);
    if (!inside)
      place = arith::MinUIOp::create(b, loc, place,
                                     number(b, schedule.kernel.sizes[row] - 1));
    return toIndex(b, place);
  }

  Value load(OpBuilder &b, OpOperand &operand, ArrayRef<Value> positions) {
    const StageSchedule *stage = schedule.kernel.find(operand.getOwner());
    EmitPoint point;
    for (int row : stage->rows)
      point.positions.push_back(
          row < 0 ? arith::ConstantIndexOp::create(b, loc, 0).getResult()
                  : positions[row]);
    point.inTile = point.positions;
    return emitLoad(b, context.buffers, operand, point);
  }

  void compute(OpBuilder &b) {
    // A fixed number of turns, which LLVM unrolls.
    const int64_t turns = llvm::divideCeil(getElements(), schedule.threads);
    auto loop = scf::ForOp::create(b, loc, number(b, 0), number(b, turns),
                                   number(b, 1));
    OpBuilder inner(loop.getBody()->getTerminator());
    Value which = arith::MulIOp::create(inner, loc, loop.getInductionVar(),
                                        number(inner, schedule.threads));
    which = arith::AddIOp::create(inner, loc, which, thread);
    Value extent = number(inner, schedule.tile[written]);
    Value inTile[] = {arith::DivUIOp::create(inner, loc, which, extent),
                      arith::RemUIOp::create(inner, loc, which, extent)};
    const unsigned rows[] = {read, written};
    Value inside;
    auto check = [&](Value place, int64_t limit) {
      Value below = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ult,
                                          place, number(inner, limit));
      inside =
          inside ? arith::AndIOp::create(inner, loc, inside, below).getResult()
                 : below;
    };
    if (getElements() % schedule.threads != 0)
      check(which, getElements());
    for (auto [row, place] : llvm::zip_equal(rows, inTile)) {
      Value position = arith::AddIOp::create(inner, loc, starts[row], place);
      context.buffers.rowStarts[row] = toIndex(inner, position);
      if (!isWhole(row))
        check(position, schedule.kernel.sizes[row]);
    }
    if (inside)
      inner.setInsertionPoint(
          scf::IfOp::create(inner, loc, inside, /*withElseRegion=*/false)
              .thenBlock()
              ->getTerminator());
    for (const Tile &tile : tiles)
      context.staged[tile.operand] = memref::LoadOp::create(
          inner, loc, tile.memref, getSlot(inner, tile, inTile[0], inTile[1]));
    for (const StageSchedule &stage : schedule.kernel.stages)
      emitStage(inner, context, stage);
  }

  GridContext &context;
  const GridSchedule &schedule;
  Location loc;
  const Transposition transposition;
  const unsigned read, written;
  Value thread; ///< in the block, i32
  SmallVector<Value> starts;
  SmallVector<Tile> tiles;
};

} // namespace

void emitTile(OpBuilder &b, GridContext &context, Location loc, ModuleOp target,
              StringRef name, Value block) {
  TileEmitter(context, loc).emit(b, target, name, block);
}

} // namespace partita::codegen::cuda
