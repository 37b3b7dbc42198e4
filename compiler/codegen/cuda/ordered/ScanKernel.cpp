//===- ScanKernel.cpp - Long scans on GPUs --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block scans a row, 1024 elements at a time. Each thread scans four that
// follow one another. What is before them is joined from what earlier threads
// of the warp have, by shuffles; what earlier warps have, in shared memory; and
// what is before the 1024, which is carried along.
//
// Short rows are reduced for each of their elements (DecomposeOrdered.cpp).
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/SpecialKernels.h"
#include "compiler/codegen/cuda/ordered/ThreadBuilder.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace partita::codegen::cuda {

/// Rows that are shorter take few operations for each element.
static constexpr int64_t kLongScan = 128;

bool isLongScan(nn::ScanOp scan) {
  return scan.getType().getDimSize(scan.getDim()) >= kLongScan;
}

nn::ScanOp getLongScan(Block &body) {
  if (!llvm::hasSingleElement(body.without_terminator()))
    return {};
  auto scan = dyn_cast<nn::ScanOp>(body.front());
  return scan && isLongScan(scan) ? scan : nn::ScanOp();
}

int64_t countBlocks(nn::ScanOp scan) {
  RankedTensorType type = scan.getType();
  return type.getNumElements() / type.getDimSize(scan.getDim());
}

namespace {

constexpr int64_t kElementsOfThread = 4, kWarps = kSpecialThreads / kWarp;

class ScanEmitter : ThreadBuilder {
public:
  ScanEmitter(func::FuncOp kernel, nn::ScanOp scan, ModuleOp target)
      : ThreadBuilder(scan.getLoc(), kernel, /*inPlace=*/{}, target),
        scan(scan), element(scan.getType().getElementType()),
        length(scan.getType().getDimSize(scan.getDim())) {
    from = func.getArgument(0);
    to = func.getArgument(1);
    partials = share("warps", kWarps, element);
    for (int64_t dim = scan.getDim() + 1; dim < scan.getType().getRank(); ++dim)
      inner *= scan.getType().getDimSize(dim);
  }

  void emit() {
    thread = getThread();
    lane = getLane(thread);
    warp = getWarp(thread);
    Value row = getBlock();
    // Rows of the dimensions before the scanned one, then of those behind it.
    base = b.add(b.mul(b.div(row, b.index(inner)), b.index(length * inner)),
                 b.rem(row, b.index(inner)));
    neutral = arith::ConstantOp::create(
        b, nn::getNeutralElement(scan.getKind(), element));
    auto loop = scf::ForOp::create(b, b.index(0), b.index(length),
                                   b.index(kSpecialThreads * kElementsOfThread),
                                   ValueRange{neutral});
    b.setInsertionPointToEnd(loop.getBody());
    Value next = emitPart(loop.getInductionVar(), loop.getRegionIterArg(0));
    scf::YieldOp::create(b, next);
  }

private:
  /// Scans the elements from `first` on, of all threads. Returns what is before
  /// the next ones.
  Value emitPart(Value first, Value carried) {
    SmallVector<Value> places, isInside, scanned;
    Value place =
        b.add(first, b.mul(b.toIndex(thread), b.index(kElementsOfThread)));
    for (int64_t i = 0; i < kElementsOfThread; ++i) {
      places.push_back(b.add(place, b.index(i)));
      isInside.push_back(b.isBelow(places[i], b.index(length)));
      Value safe = b.min(places[i], b.index(length - 1));
      Value x = memref::LoadOp::create(b, from, getAddress(safe));
      x = arith::SelectOp::create(b, isInside[i], x, neutral);
      scanned.push_back(i == 0 ? x : combine(scanned[i - 1], x));
    }
    // Those of the warp up to this thread.
    Value warpAll = scanned.back();
    for (int64_t distance = 1; distance < kWarp; distance *= 2)
      warpAll = where(atLeast(lane, distance),
                      combine(fromBelow(warpAll, distance), warpAll), warpAll);
    Value isLast = b.isEqual(lane, b.number(kWarp - 1));
    b.when(isLast, [&] {
      memref::StoreOp::create(b, warpAll, partials, b.toIndex(warp));
    });
    NVVM::Barrier0Op::create(b);
    Value before = carried, all = carried;
    for (int64_t i = 0; i < kWarps; ++i) {
      all = combine(all, memref::LoadOp::create(b, partials, b.index(i)));
      before = where(atLeast(warp, i + 1), all, before);
    }
    before =
        where(atLeast(lane, 1), combine(before, fromBelow(warpAll, 1)), before);
    for (int64_t i = 0; i < kElementsOfThread; ++i)
      b.when(isInside[i], [&] {
        memref::StoreOp::create(b, combine(before, scanned[i]), to,
                                getAddress(places[i]));
      });
    // Nobody writes the next sums of warps before all have read these.
    NVVM::Barrier0Op::create(b);
    return all;
  }

  Value combine(Value all, Value x) {
    return nn::scalar::combine(b, b.getLoc(), scan.getKind(), all, x, element);
  }

  /// The value of an earlier thread of the warp, if there is one.
  Value fromBelow(Value x, int64_t distance) {
    return shuffle(b, x, NVVM::ShflKind::up, distance);
  }

  Value where(Value condition, Value x, Value otherwise) {
    return arith::SelectOp::create(b, condition, x, otherwise);
  }
  Value atLeast(Value x, int64_t least) {
    return b.compare(arith::CmpIPredicate::uge, x, b.number(least));
  }
  Value getAddress(Value place) {
    return b.add(base, b.mul(place, b.index(inner)));
  }

  nn::ScanOp scan;
  const Type element;
  const int64_t length;
  int64_t inner = 1; ///< from one element of a row to the next
  Value from, to, partials, thread, lane, warp, base, neutral;
};

} // namespace

void emitScan(func::FuncOp kernel, nn::ScanOp scan, ModuleOp target) {
  ScanEmitter(kernel, scan, target).emit();
}

} // namespace partita::codegen::cuda
