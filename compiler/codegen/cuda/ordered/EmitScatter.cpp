//===- EmitScatter.cpp - What each thread does to add updates -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/ordered/ScatterKernel.h"

#include "compiler/codegen/cuda/grid/EmitGrid.h"
#include "compiler/codegen/cuda/ordered/ThreadBuilder.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

class ScatterEmitter : ThreadBuilder {
public:
  ScatterEmitter(func::FuncOp kernel, nn::ScatterOp scatter, ModuleOp target)
      : ThreadBuilder(scatter.getLoc(), kernel.getContext()), scatter(scatter),
        columns(scatter.getType().getDimSize(1)),
        updates(scatter.getPlaces().getType().getDimSize(0)) {
    func::FuncOp func = declareKernel(kernel, /*inPlace=*/{}, target);
    b.setInsertionPoint(func.getBody().front().getTerminator());
    auto argument = [&](Value tensor) -> Value {
      return func.getArgument(cast<BlockArgument>(tensor).getArgNumber());
    };
    places = argument(scatter.getPlaces());
    from = argument(scatter.getUpdates());
    if (isa<BlockArgument>(scatter.getX()))
      upon = argument(scatter.getX());
    to = func.getArgument(func.getNumArguments() - 1);
    firsts = declareShared(b, b.getLoc(), target,
                           (kernel.getName() + "_firsts").str(), kWarps,
                           b.getI32Type());
  }

  void emit() {
    thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
    row = toIndex(NVVM::BlockIdXOp::create(b, b.getI32Type()));
    base = arith::MulIOp::create(b, row, index(columns));
    overColumns([&](Value column) {
      Value place = arith::AddIOp::create(b, base, column);
      memref::StoreOp::create(b, read(place), to, place);
    });
    // All threads know the update of a turn.
    Type i32 = b.getI32Type();
    auto turns = scf::WhileOp::create(b, TypeRange{i32},
                                      ValueRange{findFrom(number(0))});
    {
      OpBuilder::InsertionGuard guard(b);
      Block *before = b.createBlock(&turns.getBefore(), {}, i32, b.getLoc());
      Value update = before->getArgument(0);
      scf::ConditionOp::create(b,
                               arith::CmpIOp::create(b,
                                                     arith::CmpIPredicate::slt,
                                                     update, number(updates)),
                               update);
      Block *after = b.createBlock(&turns.getAfter(), {}, i32, b.getLoc());
      addUpdate(after->getArgument(0));
      Value behind = arith::AddIOp::create(b, after->getArgument(0), number(1));
      scf::YieldOp::create(b, ValueRange{findFrom(behind)});
    }
  }

private:
  static constexpr int64_t kWarps = kScatterThreads / kWarp;

  /// What the result is before the first update.
  Value read(Value place) {
    if (upon)
      return memref::LoadOp::create(b, upon, place);
    auto constant = scatter.getX().getDefiningOp<nn::ConstantOp>();
    return arith::ConstantOp::create(
        b, cast<DenseElementsAttr>(constant.getValue())
               .getSplatValue<TypedAttr>());
  }

  /// The first update of this row at or behind `first`; their number: none.
  Value findFrom(Value first) {
    // Each thread has every 256th one.
    Value begin = arith::AddIOp::create(
        b,
        arith::MulIOp::create(
            b, arith::DivUIOp::create(b, first, number(kScatterThreads)),
            number(kScatterThreads)),
        thread);
    auto loop =
        scf::ForOp::create(b, toIndex(begin), index(updates),
                           index(kScatterThreads), ValueRange{number(updates)});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(loop.getBody());
      Value place = loop.getInductionVar();
      Value wanted = arith::IndexCastUIOp::create(b, b.getI64Type(), row);
      Value isRow = arith::CmpIOp::create(
          b, arith::CmpIPredicate::eq, memref::LoadOp::create(b, places, place),
          wanted);
      Value mine = arith::IndexCastUIOp::create(b, b.getI32Type(), place);
      Value isBehind =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sge, mine, first);
      Value found = arith::SelectOp::create(
          b, arith::AndIOp::create(b, isRow, isBehind), mine, number(updates));
      scf::YieldOp::create(b,
                           ValueRange{least(loop.getRegionIterArg(0), found)});
    }
    Value best = loop.getResult(0);
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      best = least(
          best, shuffle(b, b.getLoc(), best, NVVM::ShflKind::bfly, distance));
    Value warp = arith::DivUIOp::create(b, thread, number(kWarp)),
          lane = arith::RemUIOp::create(b, thread, number(kWarp));
    when(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, number(0)),
         [&] { memref::StoreOp::create(b, best, firsts, toIndex(warp)); });
    NVVM::Barrier0Op::create(b);
    for (int64_t i = 0; i < kWarps; ++i) {
      Value other = memref::LoadOp::create(b, firsts, index(i));
      best = i == 0 ? other : least(best, other);
    }
    // Nobody writes those of the next turn before all have read these.
    NVVM::Barrier0Op::create(b);
    return best;
  }

  void addUpdate(Value update) {
    Value first = arith::MulIOp::create(b, toIndex(update), index(columns));
    overColumns([&](Value column) {
      Value place = arith::AddIOp::create(b, base, column);
      Value all = memref::LoadOp::create(b, to, place);
      Value x = memref::LoadOp::create(
          b, from, ValueRange{arith::AddIOp::create(b, first, column)});
      memref::StoreOp::create(b, nn::scalar::add(b, b.getLoc(), all, x), to,
                              place);
    });
  }

  /// The same threads have the same columns each time.
  template <typename Fn> void overColumns(Fn emit) {
    auto loop = scf::ForOp::create(b, toIndex(thread), index(columns),
                                   index(kScatterThreads));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    emit(loop.getInductionVar());
  }

  Value least(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }

  nn::ScatterOp scatter;
  const int64_t columns, updates;
  Value places, from, upon, to, firsts, thread, row, base;
};

} // namespace

LogicalResult emitScatter(func::FuncOp kernel, nn::ScatterOp scatter,
                          ModuleOp target) {
  if (countBlocks(scatter) > std::numeric_limits<int32_t>::max())
    return kernel.emitError("the kernel has more blocks than a grid can have");
  ScatterEmitter(kernel, scatter, target).emit();
  return success();
}

} // namespace partita::codegen::cuda
