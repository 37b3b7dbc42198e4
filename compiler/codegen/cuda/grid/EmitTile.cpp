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

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

class TileEmitter {
public:
  TileEmitter(const NumberBuilder &b, GridContext &context)
      : b(b), context(context), schedule(context.schedule),
        transposition(*findTransposition(schedule.kernel)),
        read(transposition.read), written(transposition.written) {}

  void emit(ModuleOp target, StringRef name, Value block) {
    thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
    placeTile(block);
    for (OpOperand *operand : transposition.staged) {
      StagedTile tile = getStagedTile(schedule, transposition, *operand);
      Type element =
          cast<RankedTensorType>(operand->get().getType()).getElementType();
      tiles.push_back(
          {operand, tile.pitch,
           declareShared(b, target,
                         (name + "_tile" + Twine(tiles.size())).str(),
                         tile.pitch * tile.lines, element)});
    }
    stage();
    NVVM::Barrier0Op::create(b);
    compute();
  }

private:
  struct Tile {
    OpOperand *operand;
    int64_t pitch;
    Value memref;
  };

  int64_t getElements() { return schedule.tile[read] * schedule.tile[written]; }
  bool isWhole(unsigned row) {
    return schedule.kernel.sizes[row] % schedule.tile[row] == 0;
  }

  /// The first place of the block's tile along each row dimension.
  void placeTile(Value block) {
    SmallVector<int64_t> counts;
    for (auto [size, tile] :
         llvm::zip_equal(schedule.kernel.sizes, schedule.tile))
      counts.push_back(llvm::divideCeil(size, tile));
    starts = emitDigits(b, b.getLoc(), block, counts);
    context.buffers.rowCounts.resize(counts.size());
    for (auto [start, tile] : llvm::zip_equal(starts, schedule.tile)) {
      start = b.mul(start, b.number(tile));
      context.buffers.rowStarts.push_back(b.toIndex(start));
    }
  }

  /// Where the element of a tile lies in shared memory.
  Value getSlot(const Tile &tile, Value alongRead, Value alongWritten) {
    Value line = b.mul(alongWritten, b.number(tile.pitch));
    return b.toIndex(b.add(line, alongRead));
  }

  /// Loads of one thread do not wait for each other: all of them come first.
  void stage() {
    struct Loaded {
      Value element, alongRead, alongWritten;
    };
    SmallVector<SmallVector<Loaded>> loaded(tiles.size());
    Value extent = b.number(schedule.tile[read]);
    const bool whole = getElements() % schedule.threads == 0;
    for (int64_t first = 0; first < getElements(); first += schedule.threads) {
      Value which = b.add(thread, b.number(first));
      Value alongRead = b.rem(which, extent),
            alongWritten = b.div(which, extent);
      SmallVector<Value> positions(context.buffers.rowStarts);
      positions[read] = clamp(read, alongRead, isWhole(read));
      positions[written] =
          clamp(written, alongWritten, whole && isWhole(written));
      for (auto [tile, elements] : llvm::zip_equal(tiles, loaded))
        elements.push_back(
            {load(*tile.operand, positions), alongRead, alongWritten});
    }
    for (auto [tile, elements] : llvm::zip_equal(tiles, loaded))
      for (const Loaded &each : elements)
        memref::StoreOp::create(
            b, each.element, tile.memref,
            getSlot(tile, each.alongRead, each.alongWritten));
  }

  /// The place in the whole tensor, or the last one where that is behind it.
  Value clamp(unsigned row, Value inTile, bool inside) {
    Value place = b.add(starts[row], inTile);
    if (!inside)
      place = b.min(place, b.number(schedule.kernel.sizes[row] - 1));
    return b.toIndex(place);
  }

  Value load(OpOperand &operand, ArrayRef<Value> positions) {
    const StageSchedule *stage = schedule.kernel.find(operand.getOwner());
    EmitPoint point;
    for (int row : stage->rows)
      point.positions.push_back(row < 0 ? b.index(0) : positions[row]);
    point.inTile = point.positions;
    return emitLoad(b, context.buffers, operand, point);
  }

  void compute() {
    // A fixed number of turns, which LLVM unrolls.
    const int64_t turns = llvm::divideCeil(getElements(), schedule.threads);
    auto loop =
        scf::ForOp::create(b, b.number(0), b.number(turns), b.number(1));
    b.setInsertionPoint(loop.getBody()->getTerminator());
    Value which = b.mul(loop.getInductionVar(), b.number(schedule.threads));
    which = b.add(which, thread);
    Value extent = b.number(schedule.tile[written]);
    Value inTile[] = {b.div(which, extent), b.rem(which, extent)};
    const unsigned rows[] = {read, written};
    Value inside;
    auto check = [&](Value place, int64_t limit) {
      Value below = b.isBelow(place, b.number(limit));
      inside = inside ? b.both(inside, below) : below;
    };
    if (getElements() % schedule.threads != 0)
      check(which, getElements());
    for (auto [row, place] : llvm::zip_equal(rows, inTile)) {
      Value position = b.add(starts[row], place);
      context.buffers.rowStarts[row] = b.toIndex(position);
      if (!isWhole(row))
        check(position, schedule.kernel.sizes[row]);
    }
    if (inside)
      b.setInsertionPoint(scf::IfOp::create(b, inside, /*withElseRegion=*/false)
                              .thenBlock()
                              ->getTerminator());
    for (const Tile &tile : tiles)
      context.staged[tile.operand] = memref::LoadOp::create(
          b, tile.memref, getSlot(tile, inTile[0], inTile[1]));
    for (const StageSchedule &stage : schedule.kernel.stages)
      emitStage(b, context, stage);
  }

  NumberBuilder b;
  GridContext &context;
  const GridSchedule &schedule;
  const Transposition transposition;
  const unsigned read, written;
  Value thread; ///< in the block, i32
  SmallVector<Value> starts;
  SmallVector<Tile> tiles;
};

} // namespace

void emitTile(const NumberBuilder &b, GridContext &context, ModuleOp target,
              StringRef name, Value block) {
  TileEmitter(b, context).emit(target, name, block);
}

} // namespace partita::codegen::cuda
