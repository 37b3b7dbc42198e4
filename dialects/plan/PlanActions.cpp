//===- PlanActions.cpp - The entries of a program -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/plan/PlanDialect.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace partita::plan;

/// It has a slot unless its kind uses none, and a number unless its subject has
/// a symbol.
template <typename OpT>
static void create(OpBuilder &builder, Location loc, int64_t microBatch,
                   StringRef subject, int64_t port, Value slot) {
  using Subject = partita::abi::ActionSubject;
  constexpr partita::abi::ActionInfo info = getInfo(OpT::kActionKind);
  if constexpr (info.access == partita::abi::SlotAccess::none)
    OpT::create(builder, loc, subject, microBatch);
  else if constexpr (info.subject == Subject::input ||
                     info.subject == Subject::output ||
                     info.subject == Subject::check)
    OpT::create(builder, loc, port, microBatch, slot);
  else
    OpT::create(builder, loc, subject, microBatch, slot);
}

void partita::plan::createAction(OpBuilder &builder, Location loc,
                                 abi::ActionKind kind, int64_t microBatch,
                                 StringRef subject, int64_t port, Value slot) {
  switch (kind) {
#define PARTITA_ACTION(name, op, subjectKind, access)                          \
  case abi::ActionKind::name:                                                  \
    static_assert(op::kActionKind == abi::ActionKind::name);                   \
    return create<op>(builder, loc, microBatch, subject, port, slot);
#include "runtime/abi/Actions.def"
#undef PARTITA_ACTION
  }
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupSymbolIn<UnitOp>((*this)->getParentOp(), getUnitAttr()))
    return emitOpError("(C1) ")
           << getUnitAttr() << " is not a unit of its program";
  return success();
}

//===----------------------------------------------------------------------===//
// Send, recv, release, wait
//===----------------------------------------------------------------------===//

/// Checks the channel of an action, that the action's program is on the right
/// end of it, and the bytes of its slot, which a token has none of.
static LogicalResult verifyChannel(ActionOpInterface action,
                                   FlatSymbolRefAttr name,
                                   SymbolTableCollection &symbols) {
  const partita::abi::ActionInfo &info = getInfo(action.getActionKind());
  auto program = action->getParentOfType<ProgramOp>();
  auto channel =
      symbols.lookupNearestSymbolFrom<ChannelOp>(program->getParentOp(), name);
  if (!channel)
    return action->emitOpError("(C1) ") << name << " is not a channel";
  const bool atSource =
      info.subject == partita::abi::ActionSubject::sent_channel;
  StringRef end = atSource ? channel.getSource() : channel.getTarget();
  if (end != program.getSymName())
    return action->emitOpError("(C1) stands in @")
           << program.getSymName() << ", but the "
           << (atSource ? "source" : "target") << " of channel " << name
           << " is @" << end;
  if (info.access == partita::abi::SlotAccess::none)
    return success();
  Value slot = action.getActionSlot();
  int64_t bytes = slot ? cast<SlotType>(slot.getType()).getByteSize() : 0;
  if (bytes != channel.getBytes())
    return action->emitOpError("(C2) has a slot of ")
           << bytes << " bytes, channel " << name << " carries "
           << channel.getBytes();
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), symbols);
}
LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), symbols);
}
LogicalResult ReleaseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), symbols);
}
LogicalResult WaitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), symbols);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static LogicalResult verifyCollective(Operation *op, FlatSymbolRefAttr name,
                                      Value slot, bool isStart,
                                      SymbolTableCollection &symbols) {
  auto program = op->getParentOfType<ProgramOp>();
  auto collective = symbols.lookupNearestSymbolFrom<CollectiveOp>(
      program->getParentOp(), name);
  if (!collective)
    return op->emitOpError("(C1) ") << name << " is not a collective";
  if (collective.getProgram() != program.getSymName())
    return op->emitOpError("(C1) stands in @")
           << program.getSymName() << ", but collective " << name << " is of @"
           << collective.getProgram();
  // On this side each device has the parts of all.
  const CollectiveKind kind = collective.getKind();
  const bool isWhole = kind == CollectiveKind::all_to_all ||
                       kind == (isStart ? CollectiveKind::reduce_scatter
                                        : CollectiveKind::all_gather);
  std::optional<int64_t> product =
      llvm::checkedMul(collective.getRows(), collective.getPart());
  if (product && isWhole)
    product = llvm::checkedMul(*product, collective.getGroupSize());
  const int64_t wanted = product.value_or(-1); // no tensor has so many
  RankedTensorType held = cast<SlotType>(slot.getType()).getTensor();
  if (held.getNumElements() != wanted ||
      held.getElementType() != collective.getElement())
    return op->emitOpError("(C2) has a slot of ")
           << held << ", collective " << name << " has " << wanted
           << " elements of " << collective.getElement() << " there";
  return success();
}

LogicalResult StartOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyCollective(*this, getCollectiveAttr(), getSlot(), true, symbols);
}
LogicalResult FinishOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyCollective(*this, getCollectiveAttr(), getSlot(), false,
                          symbols);
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

static LogicalResult verifyPort(Operation *op, PortKind kind, int64_t index,
                                Value slot) {
  Operation *module = op->getParentOp()->getParentOp();
  int64_t seen = 0;
  for (Operation &candidate : module->getRegion(0).front()) {
    auto port = dyn_cast<PortOp>(candidate);
    if (!port || port.getKind() != kind || seen++ != index)
      continue;
    int64_t bytes = getByteSize(cast<RankedTensorType>(port.getType()));
    int64_t held = cast<SlotType>(slot.getType()).getByteSize();
    if (bytes != held)
      return op->emitOpError("(C1) has a slot of ")
             << held << " bytes, port '" << port.getPortName() << "' has "
             << bytes;
    return success();
  }
  return op->emitOpError("(C1) names ")
         << stringifyPortKind(kind) << " " << index << " of " << seen;
}

LogicalResult LoadInputOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyPort(*this, PortKind::input, getPort(), getSlot());
}
LogicalResult StoreOutputOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyPort(*this, PortKind::output, getPort(), getSlot());
}

LogicalResult ExamineOp::verifySymbolUses(SymbolTableCollection &) {
  RankedTensorType held = cast<SlotType>(getSlot().getType()).getTensor();
  int64_t seen = 0;
  for (CheckOp check : (*this)->getParentOfType<ModuleOp>().getOps<CheckOp>()) {
    if (seen++ != getCheck())
      continue;
    const int64_t rows = check.getRows();
    // Parts of a tensor that was cut may have been put together by a view.
    if (held.getNumElements() != 2 * rows ||
        !held.getElementType().isInteger(64))
      return emitOpError("(C1) has a slot of ")
             << held << ", check " << getCheck() << " has " << rows << " rows";
    return success();
  }
  return emitOpError("(C1) names check ") << getCheck() << " of " << seen;
}
