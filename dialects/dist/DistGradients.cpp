//===- DistGradients.cpp - Derivatives of collectives ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a device gives goes the way back that it came:
//
//   all_reduce sum   all_reduce of shares; what is whole stays
//   reduce_scatter   all_gather
//   all_gather       reduce_scatter of shares; of what is whole, the own part
//   shard            all_gather
//   all_to_all       all_to_all
//   broadcast        all_reduce of shares, for the root alone
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/DistDialect.h"
#include "dialects/nn/grad/Term.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace partita::dist;
using partita::nn::ReduceKind;
using namespace partita::nn::grad;

static StringAttr makeReason(Operation *op, const Twine &what) {
  return StringAttr::get(op->getContext(), "the cotangent of '" +
                                               partita::nn::getNodeName(op) +
                                               "' " + what);
}

/// The whole cotangent of a result that is the same on all devices.
static Term makeWhole(DifferentiableOpInterface op, Term dy, bool isShare) {
  if (!isShare)
    return dy;
  return {dy.b(),
          AllReduceOp::create(
              dy.b(), dy.type(), ReduceKind::sum, dy.get(), op.getGroupAxes(),
              makeReason(op, "is the sum of the devices' shares"))};
}

/// The number of the device in its group, an i64, everywhere in a tensor.
static Term getOwnNumber(DifferentiableOpInterface op, ImplicitLocOpBuilder &b,
                         ArrayRef<int64_t> shape) {
  const int64_t devices =
      getGroupSize(op->getParentOfType<func::FuncOp>(), op.getGroupAxes());
  auto all = RankedTensorType::get({devices}, b.getI64Type()),
       one = RankedTensorType::get({1}, b.getI64Type());
  Value numbers = partita::nn::IotaOp::create(b, all, 0);
  Term own(b, ShardOp::create(b, one, numbers, 0, 1, op.getGroupAxes()));
  return own.reshape({}).broadcast({}, shape);
}

//===----------------------------------------------------------------------===//
// all_reduce
//===----------------------------------------------------------------------===//

bool AllReduceOp::isSameOnAllDevices() { return true; }

/// What the other devices give, multiplied.
static Term multiplyOthers(AllReduceOp op, ImplicitLocOpBuilder &b) {
  Term x(b, op.getX());
  const int64_t devices =
      getGroupSize(op->getParentOfType<func::FuncOp>(), op.getAxes());
  Shape one(x.shape()), all(x.shape());
  one.insert(one.begin(), 1);
  all.insert(all.begin(), devices);
  auto type = RankedTensorType::get(all, x.element());
  Term given(b, AllGatherOp::create(
                    b, type, x.reshape(one).get(), 0, 1, op.getAxes(),
                    makeReason(op, "is multiplied by what others gave")));
  Term numbers(b, partita::nn::IotaOp::create(
                      b, RankedTensorType::get(all, b.getI64Type()), 0));
  Term isOwn = compare(partita::nn::ComparePredicate::eq, numbers,
                       getOwnNumber(op, b, all));
  return x.make<partita::nn::ReduceOp>(x.type(), ReduceKind::prod,
                                       select(isOwn, 1, given).get(), Shape{0});
}

Value AllReduceOp::buildVjp(const Term &cotangent, bool isShare) {
  Term dy = makeWhole(*this, cotangent, isShare);
  ImplicitLocOpBuilder &b = dy.b();
  switch (getKind()) {
  case ReduceKind::sum:
    return dy;
  case ReduceKind::prod:
    return dy * multiplyOthers(*this, b);
  case ReduceKind::max:
  case ReduceKind::min: {
    // Devices whose elements are equal share, as elements of a ReduceMax do.
    Term x(b, getX()), y(b, getResult());
    Term isChosen = compare(partita::nn::ComparePredicate::eq, x, y);
    Term count(b, AllReduceOp::create(
                      b, x.type(), ReduceKind::sum,
                      select(isChosen, x.splat(1), 0.0).get(), getAxes(),
                      makeReason(*this, "is shared by equal elements")));
    return select(isChosen, dy / count, 0.0);
  }
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

bool ReduceScatterOp::isSameOnAllDevices() { return false; }

Value ReduceScatterOp::buildVjp(const Term &dy, bool) {
  if (getKind() != ReduceKind::sum)
    return {};
  return AllGatherOp::create(dy.b(), getX().getType(), dy.get(), getDim(),
                             getBlocks(), getAxes(),
                             makeReason(*this, "has the parts of all devices"));
}

bool AllGatherOp::isSameOnAllDevices() { return true; }

Value AllGatherOp::buildVjp(const Term &dy, bool isShare) {
  if (!isShare)
    return ShardOp::create(dy.b(), getX().getType(), dy.get(), getDim(),
                           getBlocks(), getAxes());
  return ReduceScatterOp::create(
      dy.b(), getX().getType(), ReduceKind::sum, dy.get(), getDim(),
      getBlocks(), getAxes(),
      makeReason(*this, "is the sum of the devices' shares"));
}

bool ShardOp::isSameOnAllDevices() { return false; }
bool ShardOp::givesWhole() { return true; }

/// Of parts that were rounded up no derivative is known: elements beyond the
/// end are of no device.
Value ShardOp::buildVjp(const Term &dy, bool) {
  const int64_t devices =
      getGroupSize((*this)->getParentOfType<func::FuncOp>(), getAxes());
  auto whole = cast<RankedTensorType>(getX().getType());
  if (cast<RankedTensorType>(getType()).getDimSize(getDim()) * devices !=
      whole.getDimSize(getDim()))
    return {};
  return AllGatherOp::create(dy.b(), whole, dy.get(), getDim(), getBlocks(),
                             getAxes(),
                             makeReason(*this, "has the parts of all devices"));
}

bool AllToAllOp::isSameOnAllDevices() { return false; }

/// Part r of the result's cotangent belongs to device r. What a device gets
/// back stands where it had cut it off.
Value AllToAllOp::buildVjp(const Term &dy, bool) {
  if (getBlocks() != 1)
    return {};
  ImplicitLocOpBuilder &b = dy.b();
  Shape returned(dy.shape());
  returned.insert(returned.begin() + 1, 1);
  Term parts(b, AllToAllOp::create(
                    b, RankedTensorType::get(returned, dy.element()), dy.get(),
                    0, 1, getAxes(), makeReason(*this, "goes back")));
  return joinParts(b, b.getLoc(), parts.reshape(dy.shape()), getDim());
}

bool BroadcastOp::isSameOnAllDevices() { return true; }

Value BroadcastOp::buildVjp(const Term &cotangent, bool isShare) {
  Term dy = makeWhole(*this, cotangent, isShare);
  Term isRoot =
      getOwnNumber(*this, dy.b(), dy.shape()) == static_cast<double>(getRoot());
  return select(isRoot, dy, 0.0);
}
