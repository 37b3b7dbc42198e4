//===- KernelGroup.cpp - Kernels that start as one ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/grid/KernelGroup.h"

#include "compiler/codegen/cuda/grid/EmitGrid.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace partita::codegen::cuda {

int64_t KernelGroup::countInputs() const {
  GroupMember last = members.back();
  return last.firstInput + last.countInputs();
}

int64_t KernelGroup::getBlocks() const {
  int64_t blocks = 0;
  for (const GroupMember &member : members)
    blocks += member.schedule.getBlocks();
  return blocks;
}

SmallVector<int64_t> KernelGroup::getInPlace() const {
  SmallVector<int64_t> pairs;
  for (const GroupMember &member : members)
    for (auto [place, number] : llvm::enumerate(member.schedule.kernel.inPlace))
      pairs.push_back(
          number + (place % 2 == 0 ? member.firstInput : member.firstResult));
  return pairs;
}

bool isGroup(func::FuncOp kernel) {
  return !kernel.isExternal() &&
         !kernel.getBody().front().getOps<func::CallOp>().empty();
}

FailureOr<KernelGroup> formGroup(ArrayRef<func::FuncOp> kernels) {
  KernelGroup group;
  int64_t inputs = 0, results = 0, sharedBytes = 0;
  llvm::SmallDenseSet<Operation *> known;
  for (func::FuncOp kernel : kernels) {
    FailureOr<GridSchedule> schedule = readGrid(kernel);
    if (failed(schedule))
      return failure();
    // Each kernel's code has its own shared memory.
    if (known.insert(kernel).second)
      sharedBytes += getSharedBytes(*schedule);
    group.members.push_back({kernel, std::move(*schedule), inputs, results});
    inputs += group.members.back().countInputs();
    results += group.members.back().countResults();
    if (group.members.back().schedule.threads != group.getThreads())
      return failure();
  }
  if (sharedBytes > kMostSharedBytes || inputs + results > kMostGroupOperands ||
      static_cast<int64_t>(kernels.size()) > kMostMembers)
    return failure();
  return group;
}

func::FuncOp buildGroup(OpBuilder &b, KernelGroup &group) {
  SmallVector<Type> inputs, outputs;
  SmallVector<Attribute> attributes, outputAttributes;
  SmallVector<Location> locations;
  for (GroupMember &member : group.members) {
    const int64_t count = member.countInputs();
    locations.push_back(member.kernel.getLoc());
    for (auto [number, type] :
         llvm::enumerate(member.kernel.getArgumentTypes())) {
      const bool isInput = static_cast<int64_t>(number) < count;
      (isInput ? inputs : outputs).push_back(type);
      Attribute attribute = member.kernel.getArgAttrDict(number);
      (isInput ? attributes : outputAttributes)
          .push_back(attribute ? attribute : b.getDictionaryAttr({}));
    }
  }
  SmallVector<Type> arguments(inputs);
  llvm::append_range(arguments, outputs);
  llvm::append_range(attributes, outputAttributes);
  OpBuilder::InsertionGuard guard(b);
  const Location loc = b.getFusedLoc(locations);
  auto function = func::FuncOp::create(b, loc, "group",
                                       b.getFunctionType(arguments, outputs));
  function.setAllArgAttrs(attributes);
  function->setAttr(kGridAttr,
                    b.getDictionaryAttr(b.getNamedAttr(
                        "threads", b.getI64IntegerAttr(group.getThreads()))));
  b.setInsertionPointToEnd(function.addEntryBlock());
  SmallVector<Value> returned;
  for (GroupMember &member : group.members) {
    SmallVector<Value> operands(
        function.getArguments().slice(member.firstInput, member.countInputs()));
    llvm::append_range(operands, function.getArguments().slice(
                                     inputs.size() + member.firstResult,
                                     member.countResults()));
    auto call = func::CallOp::create(b, member.kernel.getLoc(), member.kernel,
                                     operands);
    llvm::append_range(returned, call.getResults());
  }
  func::ReturnOp::create(b, loc, returned);
  return function;
}

FailureOr<KernelGroup> readGroup(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  SmallVector<func::FuncOp> kernels;
  SmallVector<Value> inputs, outputs, returned;
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto call = dyn_cast<func::CallOp>(op);
    auto kernel =
        call ? module.lookupSymbol<func::FuncOp>(call.getCallee()) : nullptr;
    if (!kernel || kernel.isExternal() || isGroup(kernel))
      return op.emitError("a group of kernels holds nothing but calls of "
                          "kernels");
    kernels.push_back(kernel);
    const size_t count = kernel.getNumArguments() - kernel.getNumResults();
    llvm::append_range(inputs, call.getOperands().take_front(count));
    llvm::append_range(outputs, call.getOperands().drop_front(count));
    llvm::append_range(returned, call.getResults());
  }
  FailureOr<KernelGroup> group = formGroup(kernels);
  llvm::append_range(inputs, outputs);
  if (failed(group) || !llvm::equal(inputs, function.getArguments()) ||
      !llvm::equal(returned,
                   function.getBody().front().getTerminator()->getOperands()))
    return function.emitError("the kernel is no group: its members do not fit "
                              "one grid, or it passes on their operands and "
                              "results in another order");
  return group;
}

namespace {

/// Members that are the same kernel.
using Alike = SmallVector<GroupMember *>;

/// The buffers of the member of this number, of those that are alike. `which`:
/// null if there is one.
SmallVector<Value> selectBuffers(OpBuilder &b, func::FuncOp group,
                                 int64_t inputs, ArrayRef<GroupMember *> alike,
                                 Value which) {
  const Location loc = group.getLoc();
  SmallVector<Value> buffers;
  auto argument = [&](GroupMember &member, int64_t number) -> Value {
    const int64_t own = member.countInputs();
    return group.getArgument(number < own
                                 ? member.firstInput + number
                                 : inputs + member.firstResult + number - own);
  };
  for (unsigned i = 0; i < alike.front()->kernel.getNumArguments(); ++i)
    buffers.push_back(argument(*alike.front(), i));
  for (size_t other = 1; other < alike.size(); ++other) {
    Value number =
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(other));
    Value isOther =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, which, number);
    for (auto [i, buffer] : llvm::enumerate(buffers))
      buffer = arith::SelectOp::create(b, loc, isOther,
                                       argument(*alike[other], i), buffer);
  }
  return buffers;
}

} // namespace

LogicalResult emitGroup(func::FuncOp function, ModuleOp target) {
  FailureOr<KernelGroup> group = readGroup(function);
  if (failed(group))
    return failure();
  const Location loc = function.getLoc();
  func::FuncOp func = declareKernel(function, group->getInPlace(), target);
  OpBuilder b(func.getBody().front().getTerminator());
  Value block = NVVM::BlockIdXOp::create(b, loc, b.getI32Type());
  llvm::MapVector<Operation *, Alike> kernels;
  for (GroupMember &member : group->members)
    kernels[member.kernel].push_back(&member);
  llvm::SmallDenseSet<Value> unaligned;
  int64_t first = 0;
  size_t number = 0;
  for (auto &[op, alike] : kernels) {
    func::FuncOp kernel = alike.front()->kernel;
    const GridSchedule &schedule = alike.front()->schedule;
    const int64_t blocks = schedule.getBlocks(), count = alike.size();
    auto constant = [&](OpBuilder &at, int64_t value) -> Value {
      return arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(value));
    };
    // Blocks before the first one wrap around.
    Value own = arith::SubIOp::create(b, loc, block, constant(b, first));
    Value isHere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, own,
                                         constant(b, blocks * count));
    auto branch = scf::IfOp::create(b, loc, isHere, /*withElseRegion=*/false);
    OpBuilder inner(branch.thenBlock()->getTerminator());
    Value which;
    if (count > 1) {
      which = arith::DivUIOp::create(inner, loc, own, constant(inner, blocks));
      own = arith::RemUIOp::create(inner, loc, own, constant(inner, blocks));
    }
    SmallVector<Value> buffers =
        selectBuffers(inner, func, group->countInputs(), alike, which);
    for (auto [i, buffer] : llvm::enumerate(buffers))
      if (kernel.getArgAttr(i, kUnalignedAttr))
        unaligned.insert(buffer);
    emitThread(inner, kernel, schedule, target,
               (function.getName() + "_" + Twine(number++)).str(), buffers,
               own);
    first += blocks * count;
  }
  alignVectors(func, unaligned);
  return success();
}

} // namespace partita::codegen::cuda
