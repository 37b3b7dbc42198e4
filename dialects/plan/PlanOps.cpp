//===- PlanOps.cpp - Slots, units and instructions ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/plan/PlanDialect.h"
#include "dialects/support/Try.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace partita::plan;

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

LogicalResult ModelOp::verify() {
  if (getMicroBatches() < 1)
    return emitOpError("(C1) needs at least 1 micro-batch, has ")
           << getMicroBatches();
  return success();
}

LogicalResult PortOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  int64_t axis = getBatchAxis();
  if (!type || axis < -1 || axis >= type.getRank())
    return emitOpError("(C1) batch axis ")
           << axis << " is not a dimension of " << getType();
  return success();
}

LogicalResult CheckOp::verify() {
  const int64_t indices = llvm::product_of(getShape()), rows = getRows();
  if (rows < 1 || indices % rows != 0)
    return emitOpError("(C1) has ")
           << rows << " rows of " << indices << " indices";
  const size_t bounds = getLow().size();
  const bool fits =
      bounds == 1 || (!getShape().empty() &&
                      static_cast<int64_t>(bounds) == getShape().back());
  if (!fits || getHigh().size() != bounds)
    return emitOpError("(C2) has ")
           << bounds << " and " << getHigh().size() << " bounds";
  return success();
}

LogicalResult CollectionOp::verify() {
  if (getKind() == PortKind::bound_input)
    return emitOpError("(C1) is neither an input nor an output");
  int64_t length = getLength();
  bool isAbsent = length == -1 && getOf() != CollectionKind::sequence;
  bool isTensor = getOf() == CollectionKind::optional_tensor;
  if (!isAbsent && (isTensor ? length != 1 : length < 0))
    return emitOpError("(C2) has the length ") << length;
  return success();
}

/// The axes of an op's module, which begins with them: collectives ask for
/// them, and there may be thousands of both these and other ops.
static SmallVector<AxisOp> getAxisOps(Operation *op) {
  SmallVector<AxisOp> axes;
  for (Operation &other : *op->getParentOfType<ModuleOp>().getBody())
    if (auto axis = dyn_cast<AxisOp>(other))
      axes.push_back(axis);
    else
      break;
  return axes;
}

LogicalResult DeviceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<ProgramOp>(*this, getProgramAttr()))
    return emitOpError("(C1) ") << getProgramAttr() << " is not a program";
  // The first of a row of devices looks at all of them: there may be thousands.
  if (isa_and_nonnull<DeviceOp>((*this)->getPrevNode()))
    return success();
  const SmallVector<AxisOp> axes = getAxisOps(*this);
  for (auto device = *this; device;
       device = dyn_cast_or_null<DeviceOp>(device->getNextNode())) {
    ArrayRef<int64_t> place =
        device.getCoordinate().value_or(ArrayRef<int64_t>());
    if (axes.size() != place.size())
      return device.emitOpError("(C2) has ")
             << place.size() << " coordinates for " << axes.size() << " axes";
    for (auto [axis, at] : llvm::zip_equal(axes, place))
      if (at < 0 || at >= AxisOp(axis).getSize())
        return device.emitOpError("(C2) has the coordinate ")
               << at << " on the axis '" << AxisOp(axis).getAxisName() << "'";
  }
  return success();
}

LogicalResult AxisOp::verify() {
  if (getSize() < 1)
    return emitOpError("(C1) has the size ") << getSize();
  if (Operation *before = (*this)->getPrevNode();
      before && !isa<AxisOp>(before))
    return emitOpError("(C2) stands behind another op than an axis");
  return success();
}

DeviceOp partita::plan::getFirstDevice(ProgramOp program) {
  for (auto device : program->getParentOfType<ModuleOp>().getOps<DeviceOp>())
    if (device.getProgram() == program.getSymName())
      return device;
  return {};
}

LogicalResult ChannelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (FlatSymbolRefAttr program : {getSourceAttr(), getTargetAttr()})
    if (!symbols.lookupNearestSymbolFrom<ProgramOp>(*this, program))
      return emitOpError("(C1) ") << program << " is not a program";
  if (getSource() == getTarget())
    return emitOpError("(C1) leads from ")
           << getSourceAttr() << " to the same program";
  if (getBytes() < 0)
    return emitOpError("(C2) has ") << getBytes() << " bytes";
  return success();
}

/// Devices of a group along `axes`; 0 if one is no axis, or stands there twice.
static int64_t getGroupSize(Operation *op, ArrayRef<int64_t> axes) {
  SmallVector<AxisOp> all = getAxisOps(op);
  int64_t devices = 1;
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (axis < 0 || axis >= static_cast<int64_t>(all.size()) ||
        llvm::is_contained(axes.take_front(index), axis))
      return 0;
    devices *= all[axis].getSize();
  }
  return devices;
}

int64_t CollectiveOp::getGroupSize() {
  return ::getGroupSize(*this, getAxes());
}

LogicalResult CollectiveOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<ProgramOp>(*this, getProgramAttr()))
    return emitOpError("(C1) ") << getProgramAttr() << " is not a program";
  if (getAxes().empty() || getGroupSize() == 0)
    return emitOpError("(C2) is along axes that the module does not have");
  // Some micro-batches are absent on some replicas, if a step may lack some.
  auto module = (*this)->getParentOfType<ModuleOp>();
  SmallVector<AxisOp> axes = getAxisOps(*this);
  auto models = module.getOps<ModelOp>();
  const bool isFull = !models.empty() && (*models.begin()).getFullSteps();
  for (int64_t axis : getAxes())
    if (!isFull && axes[axis].getAxisName() == "data")
      return emitOpError("(C2) is along the axis 'data'");
  if (getRows() < 0 || getPart() < 0)
    return emitOpError("(C3) has ")
           << getRows() << " rows of " << getPart() << " elements";
  if (getRoot() < 0 || getRoot() >= getGroupSize())
    return emitOpError("(C4) has the root ")
           << getRoot() << " in a group of " << getGroupSize();
  return success();
}

//===----------------------------------------------------------------------===//
// Frames and slots
//===----------------------------------------------------------------------===//

static bool isAligned(int64_t offset) {
  return offset >= 0 && offset % 64 == 0;
}

LogicalResult FrameOp::verify() {
  if (getCopies().empty())
    return emitOpError("(C1) has no copy");
  auto program = (*this)->getParentOfType<ProgramOp>();
  const int64_t bytes = getBytes(), arena = program.getArenaBytes().value_or(0);
  for (int64_t copy : getCopies()) {
    if (!isAligned(copy))
      return emitOpError("(C1) copy at ")
             << copy << " is not at a multiple of 64 that is at least 0";
    if (bytes < 0 || copy + bytes > arena)
      return emitOpError("(C2) copy ends at byte ")
             << copy + bytes << " of the arena, which has " << arena
             << " bytes";
  }
  return success();
}

int64_t SlotOp::getByteSize() { return getSlot().getType().getByteSize(); }

/// C5
LogicalResult SlotOp::verifyLane() {
  auto sum = getSum() ? getSum().getDefiningOp<SlotOp>() : nullptr;
  if (!sum)
    return success();
  if (getSpace() != Space::arena ||
      sum.getSlot().getType() != getSlot().getType())
    return emitOpError("(C5) lies elsewhere than in the arena, or has another "
                       "type than the sum of which it is a lane");
  const int64_t lane = *getLane();
  if (lane < 0 || lane >= sum.getLanes())
    return emitOpError("(C5) is lane ")
           << lane << " of a sum of " << sum.getLanes() << " lanes";
  auto frame =
      sum.getFrame() ? sum.getFrame().getDefiningOp<FrameOp>() : nullptr;
  if (frame && lane < static_cast<int64_t>(frame.getCopies().size()) &&
      getOffset() != frame.getCopies()[lane] + sum.getOffset().value_or(0))
    return emitOpError("(C5) lies elsewhere than lane ")
           << lane << " of its sum";
  return success();
}

/// C6
LogicalResult SlotOp::verifyMembers() {
  if (getMembers().empty())
    return success();
  if (getSpace() != Space::arena || getLanes() != 1 || getSum())
    return emitOpError("(C6) joins slots, and lies in ")
           << stringifySpace(getSpace()) << ", or has lanes or is one";
  for (Value value : getMembers()) {
    auto member = value.getDefiningOp<SlotOp>();
    if (!member)
      continue;
    if (member.getSpan() != getSpan() || member.getSpace() != Space::arena ||
        member.getLanes() != 1 || member.getSum() ||
        !member.getMembers().empty() ||
        member.getSlot().getType().getTensor().getElementType() !=
            getSlot().getType().getTensor().getElementType())
      return emitOpError("(C6) joins what has another span or element type, "
                         "lies elsewhere than in the arena, or has lanes");
    if (getOffset() && member.getOffset() &&
        (*member.getOffset() < *getOffset() ||
         *member.getOffset() + member.getByteSize() >
             *getOffset() + getByteSize()))
      return emitOpError("(C6) joins what lies elsewhere");
  }
  return success();
}

LogicalResult SlotOp::verify() {
  const Space space = getSpace();
  if (hasWeight() != static_cast<bool>(getWeight()))
    return emitOpError("(C1) in ")
           << stringifySpace(space)
           << (getWeight() ? " names a weight" : " names no weight");
  if ((space == Space::frame) != static_cast<bool>(getFrame()))
    return emitOpError("(C1) in ")
           << stringifySpace(space)
           << (getFrame() ? " names a frame" : " names no frame");
  const bool hasLanes = getLanes() != 1;
  if (getSpan() != Span::micro_batch && space != Space::arena &&
      !(hasLanes && space == Space::frame))
    return emitOpError("(C3) in ") << stringifySpace(space) << " has the span "
                                   << stringifySpan(getSpan());
  if ((getCuts() || getRenewed()) && space != Space::state)
    return emitOpError("(C4) in ") << stringifySpace(space)
                                   << (getCuts() ? " has cuts" : " is renewed");
  if (static_cast<bool>(getSum()) != static_cast<bool>(getLane()))
    return emitOpError("(C5) is a lane of nothing, or no lane of a sum");
  if ((hasLanes || getLane()) && getSpan() != Span::sum)
    return emitOpError("(C5) has lanes, or is one, and is no sum");
  if (getLanes() < 1 || (hasLanes && getLane()))
    return emitOpError("(C5) has ") << getLanes() << " lanes";
  if (auto frame = getFrame() ? getFrame().getDefiningOp<FrameOp>() : nullptr;
      frame && hasLanes &&
      static_cast<int64_t>(frame.getCopies().size()) != getLanes())
    return emitOpError("(C3) has ") << getLanes() << " lanes in a frame of "
                                    << frame.getCopies().size() << " copies";
  PARTITA_TRY(verifyLane());
  PARTITA_TRY(verifyMembers());
  if (!getOffset())
    return success();
  if (hasWeight())
    return emitOpError("(C1) in ") << stringifySpace(space) << " has an offset";
  const int64_t offset = *getOffset();
  if (!isAligned(offset))
    return emitOpError("(C1) offset ")
           << offset << " is not a multiple of 64 that is at least 0";
  auto program = (*this)->getParentOfType<ProgramOp>();
  int64_t bytes = program.getArenaBytes().value_or(0);
  if (space == Space::constant)
    bytes = program.getConstantBytes().value_or(0);
  else if (space == Space::frame)
    if (auto frame = getFrame().getDefiningOp<FrameOp>())
      bytes = frame.getBytes();
  if (offset + getByteSize() > bytes)
    return emitOpError("(C2) ends at byte ")
           << offset + getByteSize() << " of " << stringifySpace(space)
           << ", which has " << bytes << " bytes";
  return success();
}

//===----------------------------------------------------------------------===//
// Units and instructions
//===----------------------------------------------------------------------===//

/// C1 of units and of the load program.
static LogicalResult verifyInstructions(Operation *of) {
  for (Operation &op : of->getRegion(0).front())
    if (!isa<InstructionOpInterface>(op))
      return of->emitOpError("(C1) holds '")
             << op.getName() << "', which is not an instruction";
  return success();
}

LogicalResult UnitOp::verifyRegions() { return verifyInstructions(*this); }
LogicalResult LoadOp::verifyRegions() { return verifyInstructions(*this); }

LogicalResult CallOp::verify() {
  auto check = [&](ViewAttr view) -> LogicalResult {
    if (!view)
      return success();
    if (view.getValue() < 0 ||
        view.getValue() >= static_cast<int64_t>(getNumOperands()))
      return emitOpError("(C1) view ") << view << " names none of its "
                                       << getNumOperands() << " operands";
    int64_t last = view.getOffset();
    if (view.getShape().size() != view.getStrides().size())
      return emitOpError("(C2) view ")
             << view << " has another number of strides than of dimensions";
    for (auto [size, stride] : llvm::zip(view.getShape(), view.getStrides())) {
      if (size == 0)
        return success();
      last += (size - 1) * stride;
    }
    auto slot = cast<SlotType>(getOperand(view.getValue()).getType());
    if (view.getOffset() < 0 || last < 0 ||
        last >= slot.getTensor().getNumElements())
      return emitOpError("(C2) view ")
             << view << " leaves its slot of type " << slot.getTensor();
    return success();
  };
  for (ViewAttr view : getCall().getOperands())
    PARTITA_TRY(check(view));
  for (ViewAttr view : getCall().getViewsOfDetails())
    PARTITA_TRY(check(view));
  for (PostOpAttr post : getCall().getPostOps())
    PARTITA_TRY(check(post.getView()));
  return success();
}

LogicalResult CopyOp::verify() {
  int64_t from = getSource().getType().getByteSize(),
          to = getDestination().getType().getByteSize();
  if (from != to)
    return emitOpError("(C1) copies ")
           << from << " bytes into a slot of " << to << " bytes";
  return success();
}

LogicalResult SliceOp::verify() {
  RankedTensorType from = getSource().getType().getTensor(),
                   to = getDestination().getType().getTensor();
  // Beyond 64 bits: as many as no tensor has.
  const int64_t elements = llvm::checkedMul(getRows(), getPart()).value_or(-1),
                devices = ::getGroupSize(*this, getAxes());
  if (from.getElementType() != to.getElementType() ||
      to.getNumElements() != elements ||
      from.getNumElements() > elements * devices ||
      (elements && from.getNumElements() % getRows()))
    return emitOpError("(C1) makes ")
           << getRows() << " rows of " << getPart() << " elements, " << to
           << ", of " << from << " over " << devices << " devices";
  return success();
}
