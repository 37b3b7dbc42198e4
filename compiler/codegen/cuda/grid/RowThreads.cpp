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

using namespace mlir;

namespace partita::codegen::cuda {

/// No thread leaves: those of a column behind the last one compute the last
/// one again, and do not store it.
void RowThreads::beginColumns(NumberBuilder &b) {
  Value columns = b.number(schedule.columns);
  lane = b.toIndex(b.div(thread, columns));
  stores = b.isEqual(lane, b.index(0));
  row = b.add(b.mul(row, columns), b.rem(thread, columns));
  if (schedule.kernel.extent % schedule.columns == 0)
    return;
  Value last = b.number(schedule.kernel.extent - 1);
  Value isInside = b.compare(arith::CmpIPredicate::ule, row, last);
  stores = b.both(stores, isInside);
  row = b.min(row, last);
}

void RowThreads::begin(NumberBuilder &b, Value block) {
  thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  row = block;
  Value place = thread;
  if (schedule.columns > 1)
    return beginColumns(b);
  if (const int64_t rows = schedule.threads / schedule.rowThreads; rows > 1) {
    Value size = b.number(schedule.rowThreads);
    row = b.mul(row, b.number(rows));
    row = b.add(row, b.div(thread, size));
    place = b.rem(thread, size);
  }
  lane = b.toIndex(place);
  stores = b.isEqual(lane, b.index(0));
}

Value declareShared(NumberBuilder &b, ModuleOp target, StringRef name,
                    int64_t elements, Type element) {
  // LLVM reads a vector of four where three elements are wanted and its
  // alignment allows that. Vectors are as long as divides the length.
  const int64_t bytes = elements * ((element.getIntOrFloatBitWidth() + 7) / 8);
  const int64_t alignment = std::min<int64_t>(kVectorBytes, bytes & -bytes);
  auto type = MemRefType::get({elements}, element, MemRefLayoutAttrInterface(),
                              b.getI64IntegerAttr(kSharedSpace));
  OpBuilder top = OpBuilder::atBlockBegin(target.getBody());
  auto global = memref::GlobalOp::create(
      top, b.getLoc(), name, top.getStringAttr("private"), type,
      /*initial_value=*/top.getUnitAttr(), /*constant=*/false,
      top.getI64IntegerAttr(std::max<int64_t>(alignment, 1)));
  return memref::GetGlobalOp::create(b, type, global.getSymName());
}

KernelBuffer RowThreads::allocate(NumberBuilder &b, ArrayRef<int64_t> shape,
                                  Type element) {
  const int64_t rows = schedule.threads / schedule.rowThreads;
  // Without bytes between the rows' parts.
  const int64_t size = ShapedType::getNumElements(shape);
  KernelBuffer buffer;
  buffer.memref =
      declareShared(b, target, (kernel + "_shared" + Twine(buffers++)).str(),
                    size * rows, element);
  buffer.strides = computeStrides(shape);
  buffer.rows.assign(shape.size(), -1);
  if (rows > 1) {
    Value which = b.toIndex(b.div(thread, b.number(schedule.rowThreads)));
    buffer.base = b.mul(which, b.index(size));
  }
  return buffer;
}

void RowThreads::barrier(NumberBuilder &b) {
  if (schedule.rowThreads == kWarp && schedule.columns == 1)
    NVVM::SyncWarpOp::create(b, b.number(-1));
  else
    NVVM::Barrier0Op::create(b);
}

Value shuffle(NumberBuilder &b, Value value, NVVM::ShflKind kind,
              int distance) {
  Type type = value.getType(), i32 = b.getI32Type();
  const unsigned bits = type.getIntOrFloatBitWidth();
  Type plain = b.getIntegerType(bits);
  if (type != plain)
    value = arith::BitcastOp::create(b, plain, value);
  const int last = kind == NVVM::ShflKind::up ? 0 : kWarp - 1;
  auto exchange = [&](Value word) -> Value {
    return NVVM::ShflOp::create(b, i32, b.number(-1), word, b.number(distance),
                                b.number(last), kind, UnitAttr());
  };
  if (bits < 32) {
    Value word = arith::ExtUIOp::create(b, i32, value);
    value = arith::TruncIOp::create(b, plain, exchange(word));
  } else if (bits == 32) {
    value = exchange(value);
  } else {
    Value half = arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
    Value high = arith::ShRUIOp::create(b, value, half);
    Value words[] = {arith::TruncIOp::create(b, i32, value),
                     arith::TruncIOp::create(b, i32, high)};
    for (Value &word : words)
      word = arith::ExtUIOp::create(b, plain, exchange(word));
    value = arith::OrIOp::create(b, arith::ShLIOp::create(b, words[1], half),
                                 words[0]);
  }
  if (type != plain)
    value = arith::BitcastOp::create(b, type, value);
  return value;
}

Value reduceWarp(NumberBuilder &b, Value value, CombineFn combine) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = combine(value, shuffle(b, value, NVVM::ShflKind::bfly, distance));
  return value;
}

/// Halves the partial results until the first thread of each row has all.
Value RowThreads::reduceColumns(NumberBuilder &b, Value value,
                                CombineFn combine) {
  Value partials =
      declareShared(b, target, (kernel + "_shared" + Twine(buffers++)).str(),
                    schedule.threads, value.getType());
  Value own = b.toIndex(thread);
  memref::StoreOp::create(b, value, partials, own);
  barrier(b);
  for (int64_t half = schedule.rowThreads / 2; half > 0; half /= 2) {
    b.when(b.isBelow(lane, b.index(half)), [&] {
      Value other = b.add(own, b.index(half * schedule.columns));
      Value mine = memref::LoadOp::create(b, partials, own);
      Value theirs = memref::LoadOp::create(b, partials, other);
      memref::StoreOp::create(b, combine(mine, theirs), partials, own);
    });
    barrier(b);
  }
  Value column = b.rem(own, b.index(schedule.columns));
  return memref::LoadOp::create(b, partials, column);
}

Value RowThreads::reduce(NumberBuilder &b, Value value, CombineFn combine) {
  if (schedule.columns > 1)
    return reduceColumns(b, value, combine);
  value = reduceWarp(b, value, combine);
  const int64_t warps = schedule.rowThreads / kWarp;
  if (warps == 1)
    return value;
  // A part of shared memory of its own: no later reduction waits for the
  // readers of this one.
  KernelBuffer partials = allocate(b, {warps}, value.getType());
  Value warp = b.number(kWarp), zero = b.number(0);
  b.when(b.isEqual(b.rem(thread, warp), zero), [&] {
    memref::StoreOp::create(b, value, partials.memref,
                            b.toIndex(b.div(thread, warp)));
  });
  barrier(b);
  Value all;
  for (int64_t i = 0; i < warps; ++i) {
    Value part =
        memref::LoadOp::create(b, partials.memref, ValueRange{b.index(i)});
    all = all ? combine(all, part) : part;
  }
  return all;
}

} // namespace partita::codegen::cuda
