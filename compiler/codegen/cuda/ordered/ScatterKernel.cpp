//===- ScatterKernel.cpp - Sums of rows at given places, on GPUs ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of an embedding: few updates of a table with many rows. A block
// makes some rows of the result. Its threads look at the places of as many
// updates at once, and vote: a bit says that an update is for one of these
// rows. All threads then add these updates, each its own columns. So updates
// are added in their order, and the places are read once a block, not once a
// row.
//
// Other scatters reduce all updates for each element (DecomposeOrdered.cpp).
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/SpecialKernels.h"
#include "compiler/codegen/cuda/ordered/ThreadBuilder.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::codegen::cuda {

/// Elements of a row that a block has enough to do with, updates that are worth
/// a look of all threads, and elements of a result that fill a GPU.
static constexpr int64_t kLongRow = 32, kManyUpdates = 64,
                         kManyElements = 32 * 1024;
/// Blocks that fill a GPU, several times, and rows of one that are worth it.
static constexpr int64_t kEnoughBlocks = 1024, kMostRows = 64;

static bool isNumber(Value x) {
  auto constant = x.getDefiningOp<nn::ConstantOp>();
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

bool isRowScatter(nn::ScatterOp scatter) {
  RankedTensorType type = scatter.getType();
  const int64_t updates = scatter.getPlaces().getType().getDimSize(0);
  return scatter.getCombine() == nn::ReduceKind::sum &&
         type.getElementTypeBitWidth() >= 32 &&
         type.getDimSize(1) >= kLongRow && updates >= kManyUpdates &&
         updates < std::numeric_limits<int32_t>::max() &&
         type.getNumElements() >= kManyElements;
}

/// The last op of the body, if everything before it is what it adds to.
nn::ScatterOp getRowScatter(Block &body) {
  auto scatter =
      dyn_cast_or_null<nn::ScatterOp>(body.getTerminator()->getPrevNode());
  if (!scatter || !isRowScatter(scatter) ||
      !isa<BlockArgument>(scatter.getPlaces()) ||
      !isa<BlockArgument>(scatter.getUpdates()) ||
      !(isa<BlockArgument>(scatter.getX()) || isNumber(scatter.getX())) ||
      body.getTerminator()->getOperands() != scatter->getResults())
    return {};
  for (Operation &op : body.without_terminator())
    if (&op != scatter && &op != scatter.getX().getDefiningOp())
      return {};
  return scatter;
}

/// Rows that a block makes: fewer where there would be too few blocks to fill a
/// GPU.
static int64_t countRowsOfBlock(nn::ScatterOp scatter) {
  return std::clamp<int64_t>(scatter.getType().getDimSize(0) / kEnoughBlocks, 1,
                             kMostRows);
}

int64_t countBlocks(nn::ScatterOp scatter) {
  return llvm::divideCeil(scatter.getType().getDimSize(0),
                          countRowsOfBlock(scatter));
}

SmallVector<int64_t> getInPlace(nn::ScatterOp scatter) {
  if (auto upon = dyn_cast<BlockArgument>(scatter.getX()))
    return {upon.getArgNumber(), 0};
  return {};
}

namespace {

class ScatterEmitter : ThreadBuilder {
public:
  ScatterEmitter(func::FuncOp kernel, nn::ScatterOp scatter, ModuleOp target)
      : ThreadBuilder(scatter.getLoc(), kernel, getInPlace(scatter), target),
        scatter(scatter), columns(scatter.getType().getDimSize(1)),
        updates(scatter.getPlaces().getType().getDimSize(0)) {
    auto argument = [&](Value tensor) -> Value {
      return func.getArgument(cast<BlockArgument>(tensor).getArgNumber());
    };
    places = argument(scatter.getPlaces());
    from = argument(scatter.getUpdates());
    if (isa<BlockArgument>(scatter.getX()))
      upon = argument(scatter.getX());
    to = func.getArgument(func.getNumArguments() - 1);
    found = share("found", kWarps, b.getI32Type());
  }

  void emit() {
    thread = getThread();
    first = b.mul(getBlock(), b.index(countRowsOfBlock(scatter)));
    Value end = b.min(b.add(first, b.index(countRowsOfBlock(scatter))),
                      b.index(scatter.getType().getDimSize(0)));
    count = b.sub(end, first);
    b.loop(first, end, 1, [&](Value row) {
      overColumns(row, [&](Value, Value place) {
        memref::StoreOp::create(b, read(place), to, place);
      });
    });
    b.loop(b.index(0), b.index(updates), kSpecialThreads,
           [&](Value begin) { addTurn(begin); });
  }

private:
  static constexpr int64_t kWarps = kSpecialThreads / kWarp;

  /// What the result is before the first update.
  Value read(Value place) {
    if (upon)
      return memref::LoadOp::create(b, upon, place);
    auto constant = scatter.getX().getDefiningOp<nn::ConstantOp>();
    return arith::ConstantOp::create(
        b, cast<DenseElementsAttr>(constant.getValue())
               .getSplatValue<TypedAttr>());
  }

  /// Adds those of the updates from `begin` on, one a thread, that go to rows
  /// of this block, in their order.
  void addTurn(Value begin) {
    Value lane = getLane(thread), warp = getWarp(thread);
    Value mask =
        NVVM::VoteSyncOp::create(b, b.getI32Type(), b.number(-1), isMine(begin),
                                 NVVM::VoteSyncKind::ballot);
    b.when(b.isEqual(lane, b.number(0)),
           [&] { memref::StoreOp::create(b, mask, found, b.toIndex(warp)); });
    NVVM::Barrier0Op::create(b);
    b.loop(b.index(0), b.index(kWarps), 1, [&](Value warp) {
      Value ofWarp = b.add(begin, b.mul(warp, b.index(kWarp)));
      overBits(memref::LoadOp::create(b, found, warp),
               [&](Value bit) { addUpdate(b.add(ofWarp, b.toIndex(bit))); });
    });
    // Nobody writes those of the next turn before all have read these.
    NVVM::Barrier0Op::create(b);
  }

  /// Whether this thread's update of a turn goes to a row of this block.
  Value isMine(Value begin) {
    Value update = b.add(begin, b.toIndex(thread));
    Value isThere = b.isBelow(update, b.index(updates));
    Value last = b.min(update, b.index(updates - 1));
    Type i64 = b.getI64Type();
    Value place = memref::LoadOp::create(b, places, last);
    Value behind = b.sub(place, arith::IndexCastUIOp::create(b, i64, first));
    Value isInside =
        b.isBelow(behind, arith::IndexCastUIOp::create(b, i64, count));
    return b.both(isThere, isInside);
  }

  void addUpdate(Value update) {
    Value row =
        b.toIndex(memref::LoadOp::create(b, places, ValueRange{update}));
    Value begin = b.mul(update, b.index(columns));
    overColumns(row, [&](Value column, Value place) {
      Value all = memref::LoadOp::create(b, to, place);
      Value x =
          memref::LoadOp::create(b, from, ValueRange{b.add(begin, column)});
      memref::StoreOp::create(b, nn::scalar::add(b, b.getLoc(), all, x), to,
                              place);
    });
  }

  /// The numbers of the bits of a mask, the lowest first.
  template <typename Fn> void overBits(Value mask, Fn emit) {
    Type i32 = b.getI32Type();
    auto bits = scf::WhileOp::create(b, TypeRange{i32}, ValueRange{mask});
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&bits.getBefore(), {}, i32, b.getLoc());
    Value left = before->getArgument(0);
    scf::ConditionOp::create(
        b, b.compare(arith::CmpIPredicate::ne, left, b.number(0)), left);
    Block *after = b.createBlock(&bits.getAfter(), {}, i32, b.getLoc());
    left = after->getArgument(0);
    emit(LLVM::CountTrailingZerosOp::create(b, i32, left,
                                            /*is_zero_poison=*/true));
    Value others = b.sub(left, b.number(1));
    scf::YieldOp::create(b, ValueRange{b.both(left, others)});
  }

  /// The same threads have the same columns each time.
  template <typename Fn> void overColumns(Value row, Fn emit) {
    Value base = b.mul(row, b.index(columns));
    b.loop(b.toIndex(thread), b.index(columns), kSpecialThreads,
           [&](Value column) { emit(column, b.add(base, column)); });
  }

  nn::ScatterOp scatter;
  const int64_t columns, updates;
  Value places, from, upon, to, found, thread, first, count;
};

} // namespace

void emitScatter(func::FuncOp kernel, nn::ScatterOp scatter, ModuleOp target) {
  ScatterEmitter(kernel, scatter, target).emit();
}

} // namespace partita::codegen::cuda
