//===- SelectKernel.cpp - The few largest elements, on GPUs ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block chooses the first elements of a row one after another: its threads
// look for the first one of those that come behind the last one chosen. That is
// a pass over the row for each result.
//
// Where many are chosen, or rows are short, each element is ranked instead
// (DecomposeOrdered.cpp).
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/SpecialKernels.h"
#include "compiler/codegen/cuda/ordered/ThreadBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace partita::codegen::cuda {

bool isSelected(nn::TopKOp topK) {
  const int64_t columns = topK.getX().getType().getDimSize(1),
                count = topK.getType().getDimSize(1);
  return columns >= kSpecialThreads && columns <= (int64_t(1) << 30) &&
         count * (columns + kPassElements) < columns * columns;
}

nn::TopKOp getSelection(Block &body) {
  if (!llvm::hasSingleElement(body.without_terminator()))
    return {};
  auto topK = dyn_cast<nn::TopKOp>(body.front());
  return topK && isSelected(topK) ? topK : nn::TopKOp();
}

int64_t countBlocks(nn::TopKOp topK) {
  return topK.getX().getType().getDimSize(0);
}

namespace {

class SelectEmitter : ThreadBuilder {
public:
  SelectEmitter(func::FuncOp kernel, nn::TopKOp topK, ModuleOp target)
      : ThreadBuilder(topK.getLoc(), kernel, /*inPlace=*/{}, target),
        topK(topK), element(topK.getX().getType().getElementType()),
        columns(topK.getX().getType().getDimSize(1)),
        count(topK.getType().getDimSize(1)) {
    from = func.getArgument(0);
    to = func.getArgument(1);
    elements = share("elements", kWarps, element);
    places = share("places", kWarps, b.getI32Type());
  }

  void emit() {
    thread = getThread();
    Value row = getBlock();
    base = b.mul(row, b.index(columns));
    Value first = b.mul(row, b.index(count));
    Value any = arith::ConstantOp::create(b, b.getZeroAttr(element));
    auto passes = scf::ForOp::create(b, b.index(0), b.index(count), b.index(1),
                                     ValueRange{any, b.number(-1)});
    b.setInsertionPointToEnd(passes.getBody());
    Candidate chosen =
        emitPass({passes.getRegionIterArg(0), passes.getRegionIterArg(1)});
    Value isWriter = b.isEqual(thread, b.number(0));
    b.when(isWriter, [&] {
      Value place = arith::ExtUIOp::create(b, b.getI64Type(), chosen.place);
      memref::StoreOp::create(
          b, place, to, ValueRange{b.add(first, passes.getInductionVar())});
    });
    scf::YieldOp::create(b, ValueRange{chosen.element, chosen.place});
  }

private:
  static constexpr int64_t kWarps = kSpecialThreads / kWarp;

  /// An element of the row, and its column; a negative one: none.
  struct Candidate {
    Value element, place;
  };

  /// The first element behind the last one that was chosen.
  Candidate emitPass(Candidate last) {
    Value any = arith::ConstantOp::create(b, b.getZeroAttr(element));
    auto loop = scf::ForOp::create(b, b.toIndex(thread), b.index(columns),
                                   b.index(kSpecialThreads),
                                   ValueRange{any, b.number(-1)});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(loop.getBody());
      Value column = loop.getInductionVar();
      Candidate x{
          memref::LoadOp::create(b, from, ValueRange{b.add(base, column)}),
          arith::IndexCastUIOp::create(b, b.getI32Type(), column)};
      Value isBehind = arith::OrIOp::create(b, isNone(last), isBefore(last, x));
      Candidate next = choose(
          {loop.getRegionIterArg(0), loop.getRegionIterArg(1)}, x, isBehind);
      scf::YieldOp::create(b, ValueRange{next.element, next.place});
    }
    Candidate best{loop.getResult(0), loop.getResult(1)};
    // All threads of the warp, then of the block, agree: it is a total order.
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      best = join(best, {exchange(best.element, distance),
                         exchange(best.place, distance)});
    Value warp = getWarp(thread), lane = getLane(thread);
    b.when(b.isEqual(lane, b.number(0)), [&] {
      Value slot = b.toIndex(warp);
      memref::StoreOp::create(b, best.element, elements, slot);
      memref::StoreOp::create(b, best.place, places, slot);
    });
    NVVM::Barrier0Op::create(b);
    for (int64_t i = 0; i < kWarps; ++i) {
      Candidate other{memref::LoadOp::create(b, elements, b.index(i)),
                      memref::LoadOp::create(b, places, b.index(i))};
      best = i == 0 ? other : join(best, other);
    }
    // Nobody writes those of the next pass before all have read these.
    NVVM::Barrier0Op::create(b);
    return best;
  }

  /// The first of two, either of which may be none.
  Candidate join(Candidate x, Candidate other) {
    Value isOne =
        b.compare(arith::CmpIPredicate::sge, other.place, b.number(0));
    return choose(x, other, isOne);
  }

  /// `other`, if it is one and comes before `x`, or there is no `x`.
  Candidate choose(Candidate x, Candidate other, Value isOne) {
    Value isBetter = arith::OrIOp::create(b, isNone(x), isBefore(other, x));
    isBetter = b.both(isOne, isBetter);
    return {arith::SelectOp::create(b, isBetter, other.element, x.element),
            arith::SelectOp::create(b, isBetter, other.place, x.place)};
  }

  Value isNone(Candidate x) {
    return b.compare(arith::CmpIPredicate::slt, x.place, b.number(0));
  }

  /// Of equal elements the earlier one comes first.
  Value isBefore(Candidate x, Candidate y) {
    Value isLess = less(x.element, y.element),
          isMore = less(y.element, x.element);
    Value isEarlier = b.compare(arith::CmpIPredicate::slt, x.place, y.place);
    // If it comes neither before nor behind, it is equal.
    Value isBehind = topK.getLargest() ? isLess : isMore;
    Value isFirst = topK.getLargest() ? isMore : isLess;
    Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
    Value notBehind = arith::XOrIOp::create(b, isBehind, yes);
    return arith::OrIOp::create(b, isFirst, b.both(notBehind, isEarlier));
  }

  /// NaN is larger than all numbers.
  Value less(Value x, Value y) {
    if (!isa<FloatType>(element))
      return b.compare(arith::CmpIPredicate::slt, x, y);
    Value below = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
    Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, y, y);
    Value isNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, x, x);
    return arith::OrIOp::create(b, below, b.both(isNan, isNumber));
  }

  Value exchange(Value x, int distance) {
    return shuffle(b, x, NVVM::ShflKind::bfly, distance);
  }

  nn::TopKOp topK;
  const Type element;
  const int64_t columns, count;
  Value from, to, elements, places, thread, base;
};

} // namespace

void emitSelect(func::FuncOp kernel, nn::TopKOp topK, ModuleOp target) {
  SelectEmitter(kernel, topK, target).emit();
}

} // namespace partita::codegen::cuda
