//===- RowThreads.cpp - Threads that compute a row together ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/grid/RowThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace partita::codegen::cuda {

static Value number(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

/// No thread leaves: those of a column behind the last one compute the last
/// one again, and do not store it.
void RowThreads::beginColumns(OpBuilder &b, Location loc) {
  Value columns = number(b, loc, schedule.columns);
  lane = arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(),
      arith::DivUIOp::create(b, loc, thread, columns));
  stores = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                 arith::ConstantIndexOp::create(b, loc, 0));
  row =
      arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, row, columns),
                            arith::RemUIOp::create(b, loc, thread, columns));
  if (schedule.kernel.extent % schedule.columns == 0)
    return;
  Value last = number(b, loc, schedule.kernel.extent - 1);
  Value isInside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, row, last);
  stores = arith::AndIOp::create(b, loc, stores, isInside);
  row = arith::MinUIOp::create(b, loc, row, last);
}

void RowThreads::begin(OpBuilder &b, Location loc, Value block) {
  thread = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
  row = block;
  Value place = thread;
  if (schedule.columns > 1)
    return beginColumns(b, loc);
  if (const int64_t rows = schedule.threads / schedule.rowThreads; rows > 1) {
    Value size = number(b, loc, schedule.rowThreads);
    row = arith::MulIOp::create(b, loc, row, number(b, loc, rows));
    row = arith::AddIOp::create(b, loc, row,
                                arith::DivUIOp::create(b, loc, thread, size));
    place = arith::RemUIOp::create(b, loc, thread, size);
  }
  lane = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), place);
  stores = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                 arith::ConstantIndexOp::create(b, loc, 0));
}

Value declareShared(OpBuilder &b, Location loc, ModuleOp target, StringRef name,
                    int64_t elements, Type element) {
  // LLVM reads a vector of four where three elements are wanted and its
  // alignment allows that. Vectors are as long as divides the length.
  const int64_t bytes = elements * ((element.getIntOrFloatBitWidth() + 7) / 8);
  const int64_t alignment = std::min<int64_t>(kVectorBytes, bytes & -bytes);
  auto type = MemRefType::get({elements}, element, MemRefLayoutAttrInterface(),
                              b.getI64IntegerAttr(kSharedSpace));
  OpBuilder top = OpBuilder::atBlockBegin(target.getBody());
  auto global = memref::GlobalOp::create(
      top, loc, name, top.getStringAttr("private"), type,
      /*initial_value=*/top.getUnitAttr(), /*constant=*/false,
      top.getI64IntegerAttr(std::max<int64_t>(alignment, 1)));
  return memref::GetGlobalOp::create(b, loc, type, global.getSymName());
}

KernelBuffer RowThreads::allocate(OpBuilder &b, Location loc,
                                  ArrayRef<int64_t> shape, Type element) {
  const int64_t rows = schedule.threads / schedule.rowThreads;
  // Without bytes between the rows' parts.
  const int64_t size = ShapedType::getNumElements(shape);
  KernelBuffer buffer;
  buffer.memref = declareShared(b, loc, target,
                                (kernel + "_shared" + Twine(buffers++)).str(),
                                size * rows, element);
  buffer.strides = computeStrides(shape);
  buffer.rows.assign(shape.size(), -1);
  if (rows > 1) {
    Value which = arith::DivUIOp::create(b, loc, thread,
                                         number(b, loc, schedule.rowThreads));
    which = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), which);
    buffer.base = arith::MulIOp::create(
        b, loc, which, arith::ConstantIndexOp::create(b, loc, size));
  }
  return buffer;
}

void RowThreads::barrier(OpBuilder &b, Location loc) {
  if (schedule.rowThreads == kWarp && schedule.columns == 1)
    NVVM::SyncWarpOp::create(b, loc, number(b, loc, -1));
  else
    NVVM::Barrier0Op::create(b, loc);
}

Value shuffle(OpBuilder &b, Location loc, Value value, NVVM::ShflKind kind,
              int distance) {
  Type type = value.getType(), i32 = b.getI32Type();
  const unsigned bits = type.getIntOrFloatBitWidth();
  Type plain = b.getIntegerType(bits);
  if (type != plain)
    value = arith::BitcastOp::create(b, loc, plain, value);
  const int last = kind == NVVM::ShflKind::up ? 0 : kWarp - 1;
  auto exchange = [&](Value word) -> Value {
    return NVVM::ShflOp::create(b, loc, i32, number(b, loc, -1), word,
                                number(b, loc, distance), number(b, loc, last),
                                kind, UnitAttr());
  };
  if (bits < 32) {
    Value word = arith::ExtUIOp::create(b, loc, i32, value);
    value = arith::TruncIOp::create(b, loc, plain, exchange(word));
  } else if (bits == 32) {
    value = exchange(value);
  } else {
    Value half = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(32));
    Value high = arith::ShRUIOp::create(b, loc, value, half);
    Value words[] = {arith::TruncIOp::create(b, loc, i32, value),
                     arith::TruncIOp::create(b, loc, i32, high)};
    for (Value &word : words)
      word = arith::ExtUIOp::create(b, loc, plain, exchange(word));
    value = arith::OrIOp::create(
        b, loc, arith::ShLIOp::create(b, loc, words[1], half), words[0]);
  }
  if (type != plain)
    value = arith::BitcastOp::create(b, loc, type, value);
  return value;
}

Value reduceWarp(OpBuilder &b, Location loc, Value value, CombineFn combine) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = combine(b, value,
                    shuffle(b, loc, value, NVVM::ShflKind::bfly, distance));
  return value;
}

/// Halves the partial results until the first thread of each row has all.
Value RowThreads::reduceColumns(OpBuilder &b, Location loc, Value value,
                                CombineFn combine) {
  Value partials = declareShared(b, loc, target,
                                 (kernel + "_shared" + Twine(buffers++)).str(),
                                 schedule.threads, value.getType());
  Value own = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), thread);
  memref::StoreOp::create(b, loc, value, partials, own);
  barrier(b, loc);
  for (int64_t half = schedule.rowThreads / 2; half > 0; half /= 2) {
    Value isFirst =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lane,
                              arith::ConstantIndexOp::create(b, loc, half));
    auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
    OpBuilder inner = branch.getThenBodyBuilder();
    Value other = arith::AddIOp::create(
        inner, loc, own,
        arith::ConstantIndexOp::create(inner, loc, half * schedule.columns));
    Value mine = memref::LoadOp::create(inner, loc, partials, own);
    Value theirs = memref::LoadOp::create(inner, loc, partials, other);
    memref::StoreOp::create(inner, loc, combine(inner, mine, theirs), partials,
                            own);
    barrier(b, loc);
  }
  Value column = arith::RemUIOp::create(
      b, loc, own, arith::ConstantIndexOp::create(b, loc, schedule.columns));
  return memref::LoadOp::create(b, loc, partials, column);
}

Value RowThreads::reduce(OpBuilder &b, Location loc, Value value,
                         CombineFn combine) {
  if (schedule.columns > 1)
    return reduceColumns(b, loc, value, combine);
  value = reduceWarp(b, loc, value, combine);
  const int64_t warps = schedule.rowThreads / kWarp;
  if (warps == 1)
    return value;
  // A part of shared memory of its own: no later reduction waits for the
  // readers of this one.
  KernelBuffer partials = allocate(b, loc, {warps}, value.getType());
  Value warp = number(b, loc, kWarp), zero = number(b, loc, 0);
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            arith::RemUIOp::create(b, loc, thread, warp), zero);
  auto store = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  {
    OpBuilder inner = store.getThenBodyBuilder();
    Value place = arith::IndexCastUIOp::create(
        inner, loc, inner.getIndexType(),
        arith::DivUIOp::create(inner, loc, thread, warp));
    memref::StoreOp::create(inner, loc, value, partials.memref, place);
  }
  barrier(b, loc);
  Value all;
  for (int64_t i = 0; i < warps; ++i) {
    Value part = memref::LoadOp::create(
        b, loc, partials.memref,
        ValueRange{arith::ConstantIndexOp::create(b, loc, i)});
    all = all ? combine(b, all, part) : part;
  }
  return all;
}

} // namespace partita::codegen::cuda
